"""Building an index on a column of a Lance dataset, by the name of its kind."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from lance import LanceDataset

from ..indexes.errors import InvalidArgumentError
from ..indexes.label_list.builder import create_label_list
from ..indexes.list_element.builder import SORT_MEMORY, create_list_element
from ..indexes.minhash_lsh.builder import create_minhash_lsh
from ..indexes.minhash_lsh.parameters import NUM_BANDS, NUM_HASHES, SHINGLE_SIZE
from ..indexes.progress import elapsed

Builder = Callable[..., Any]


def create_index(
    dataset: LanceDataset,
    column: str,
    kind: str,
    *,
    name: str | None,
    replace: bool,
    **parameters: Any,
) -> LanceDataset:
    """Builds and commits the index; the result is the dataset at the version that has it.

    `kind` is read without regard to case. Raises InvalidArgumentError for an unknown kind, a
    parameter that it does not take, and whatever its builder finds wrong with the column.
    """
    build = _BUILDERS.get(kind.upper()) if isinstance(kind, str) else None
    if build is None:
        raise InvalidArgumentError("kind", kind, f"one of {', '.join(sorted(_BUILDERS))}")
    build(dataset, column, name=name, replace=replace, **parameters)
    return dataset.checkout_version(dataset.latest_version)


def _build_label_list(
    dataset: LanceDataset,
    column: str,
    *,
    name: str | None,
    replace: bool,
    progress: bool = True,
    **parameters: Any,
) -> None:
    for parameter, value in parameters.items():
        raise InvalidArgumentError(parameter, value, "nothing: LABEL_LIST takes progress alone")
    with elapsed(f"indexing {column}", progress):
        create_label_list(dataset, column, name, replace)


def _build_list_element(
    dataset: LanceDataset,
    column: str,
    *,
    name: str | None,
    replace: bool,
    keys: Sequence[str] = (),
    fragment_ids: Collection[int] | None = None,
    sort_memory: int = SORT_MEMORY,
    progress: bool = True,
    **parameters: Any,
) -> None:
    for parameter, value in parameters.items():
        raise InvalidArgumentError(
            parameter,
            value,
            "nothing: LIST_ELEMENT takes keys, fragment_ids, sort_memory and progress",
        )
    create_list_element(
        dataset,
        column,
        keys,
        name,
        replace,
        fragment_ids=fragment_ids,
        sort_memory=sort_memory,
        progress=progress,
    )


def _build_minhash_lsh(
    dataset: LanceDataset,
    column: str,
    *,
    name: str | None,
    replace: bool,
    num_hashes: int = NUM_HASHES,
    num_bands: int = NUM_BANDS,
    shingle_size: int = SHINGLE_SIZE,
    tokenizer: Mapping[str, Any] | None = None,
    progress: bool = True,
    **parameters: Any,
) -> None:
    for parameter, value in parameters.items():
        raise InvalidArgumentError(
            parameter,
            value,
            "nothing: MINHASHLSH takes num_hashes, num_bands, shingle_size, tokenizer and progress",
        )
    with elapsed(f"indexing {column}", progress):
        create_minhash_lsh(
            dataset,
            column,
            name,
            replace,
            num_hashes=num_hashes,
            num_bands=num_bands,
            shingle_size=shingle_size,
            tokenizer=tokenizer,
        )


_BUILDERS: dict[str, Builder] = {
    "LABEL_LIST": _build_label_list,
    "LIST_ELEMENT": _build_list_element,
    "MINHASHLSH": _build_minhash_lsh,
}
