"""Building an index in parts, by several processes, and committing the parts together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from ..indexes.cancellation import cancellable
from ..indexes.errors import InvalidArgumentError
from ..indexes.label_list.builder import build_label_list_segment
from ..indexes.leftovers import mark_waiting
from ..indexes.list_element import builder as list_element
from ..indexes.list_element.details import TYPE_URL as LIST_ELEMENT
from ..indexes.manifest import own_files
from ..indexes.minhash_lsh.builder import build_minhash_segment
from ..indexes.segment_commit import BuiltSegment
from ..indexes.segment_commit import commit_segments as commit_any
from .registry import Terms, source_of


def _list_element_segment(*arguments: Any, **parameters: Any) -> BuiltSegment:
    return cancellable(lambda: list_element.build_segment(*arguments, **parameters))


_BUILDERS: Final[Mapping[str, Callable[..., BuiltSegment]]] = {
    "LABEL_LIST": build_label_list_segment,
    "LIST_ELEMENT": _list_element_segment,
    "MINHASHLSH": build_minhash_segment,
}
_TAKES: Final[Mapping[str, tuple[str, ...]]] = {
    "LABEL_LIST": (),
    "LIST_ELEMENT": ("keys", "sort_memory", "progress"),
    "MINHASHLSH": ("num_hashes", "num_bands", "shingle_size", "tokenizer"),
}


def build_segment(
    path_or_dataset: Any,
    column: str,
    kind: str,
    fragment_ids: Collection[int] | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
    **parameters: Any,
) -> BuiltSegment:
    """Builds the part of an index that is over some fragments of a Lance table.

    For tables that are too large for one process, or one machine: each builds a segment over
    fragments of its own, hands it on (a segment is a small value that can be pickled; its files
    are in the table's storage already), and one of them commits all with `commit_segments`. Until
    then the table is as it was.

    `path_or_dataset` and `storage_options` are as in `register_lance`; the newest version is read.
    `fragment_ids` are those of pylance's `get_fragments()`; None stands for all. `kind` and
    `parameters` are as in `create_lance_index`: LIST_ELEMENT with `keys`, `sort_memory` and
    `progress`; MINHASHLSH with `num_hashes`, `num_bands`, `shingle_size` and `tokenizer`;
    LABEL_LIST with none.

    A segment that is not committed within a week is taken for given up: its files are removed by
    an upkeep of the table, or by Lance's cleanup.

    Raises InvalidArgumentError for an unknown kind or parameter, a column that the kind does not
    take, and fragments that the table has not.
    """
    build = _BUILDERS.get(kind.upper()) if isinstance(kind, str) else None
    if build is None:
        raise InvalidArgumentError("kind", kind, f"one of {', '.join(sorted(_BUILDERS))}")
    takes = _TAKES[kind.upper()]
    for name, value in parameters.items():
        if name not in takes:
            known = ", ".join(takes) or "no parameters"
            raise InvalidArgumentError(name, value, f"nothing: {kind} takes {known}")
    if "keys" in takes:
        parameters.setdefault("keys", ())
    dataset = Terms(source_of(path_or_dataset), storage_options=storage_options).open()
    built = build(dataset, column, fragment_ids=fragment_ids, **parameters)
    mark_waiting(own_files(dataset), built.uuid)
    return built


def commit_segments(
    path_or_dataset: Any,
    segments: Sequence[BuiltSegment],
    name: str | None = None,
    replace: bool = False,
    *,
    storage_options: Mapping[str, str] | None = None,
) -> int:
    """Commits segments that `build_segment` has built as one index; returns the new version.

    `name` is the index's, by default the column's with `_idx`; `replace` allows that it exists.
    Rows that were appended meanwhile are not covered, until `optimize_lance_index`. Sessions see
    the index after `refresh`. The files stay where it fails, so that it can be tried again.

    Raises InvalidArgumentError where the segments are not of one kind, on one column and with the
    same keys or parameters, where two have a fragment in common, and for a taken name; and
    LanceIndexError where the files of one are gone, or where another writer has changed the table
    since in a way that does not go with the index: a compaction of the fragments, an overwrite,
    or an index of the same name.
    """
    dataset = Terms(source_of(path_or_dataset), storage_options=storage_options).open()
    parts = list(segments)
    if parts and all(segment.type_url == LIST_ELEMENT for segment in parts):
        list_element.commit_segments(dataset, parts, name, replace)
        return dataset.version
    if any(segment.details != parts[0].details for segment in parts):
        raise InvalidArgumentError(
            "segments",
            [segment.uuid for segment in parts],
            "segments that were built with the same parameters",
        )
    commit_any(dataset, parts, name, replace)
    return dataset.version
