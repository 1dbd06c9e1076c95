"""Building an index on a column of a Lance dataset, by the name of its kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lance import LanceDataset

from ..indexes.errors import InvalidArgumentError
from ..indexes.label_list.builder import create_label_list

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
    dataset: LanceDataset, column: str, *, name: str | None, replace: bool, **parameters: Any
) -> None:
    for parameter, value in parameters.items():
        raise InvalidArgumentError(parameter, value, "nothing: LABEL_LIST has no parameters")
    create_label_list(dataset, column, name, replace)


_BUILDERS: dict[str, Builder] = {"LABEL_LIST": _build_label_list}
