"""Builds a label list index, through pylance."""

from __future__ import annotations

from collections.abc import Collection
from uuid import uuid4

import lance
import pyarrow as pa

from ..conflicts import FASTER, with_retries
from ..errors import InvalidArgumentError
from ..fragment_choice import chosen_fragments
from ..index_names import chosen_name
from ..leftovers import mark
from ..manifest import own_files, read_manifest
from ..segment_commit import BuiltSegment, built_by_pylance

_TAKES = "a list column of elements that are not nested"


def create_label_list(
    dataset: lance.LanceDataset, column: str, name: str | None = None, replace: bool = False
) -> None:
    """Index the labels of a list column; `dataset` is at the new version afterwards.

    Where another writer compacts the table or creates an index of the same name meanwhile, the
    build begins again from the new version, up to three times.

    Raises `InvalidArgumentError` for a column that is not there, is no List or LargeList,
    or has nested elements, and for a name in use without `replace`, and `LanceIndexError` where
    other writers were faster every time. Whatever else pylance raises (a failed write) comes
    through.
    """
    if name is not None and (not isinstance(name, str) or not name):
        raise InvalidArgumentError("name", name, "a name, or None for Lance's own choice")

    def attempt() -> None:
        _check_column(dataset, column)
        chosen = chosen_name(read_manifest(dataset), column, name, replace)
        dataset.create_scalar_index(column, "LABEL_LIST", name=chosen, replace=replace)

    with_retries(dataset, attempt, f"the index on {column!r} was not created: {FASTER}")


def build_label_list_segment(
    dataset: lance.LanceDataset, column: str, *, fragment_ids: Collection[int] | None = None
) -> BuiltSegment:
    """Write the files of one segment over some fragments, or all, without committing it.

    Raises `InvalidArgumentError` as `create_label_list` does, and for fragments that are not in
    the table.
    """
    _check_column(dataset, column)
    chosen = chosen_fragments(dataset, fragment_ids)
    # pylance chooses where the files are: what it leaves when it is killed is Lance's to clean.
    built = built_by_pylance(
        dataset.create_index_uncommitted(
            column,
            "LABEL_LIST",
            # Not that of the index, which pylance would not have twice.
            name=str(uuid4()),
            fragment_ids=[fragment.fragment_id for fragment in chosen],
        )
    )
    mark(own_files(dataset), built.uuid)
    return built


def _check_column(dataset: lance.LanceDataset, column: str) -> None:
    if column not in dataset.schema.names:
        known = ", ".join(dataset.schema.names)
        raise InvalidArgumentError("column", column, f"a column of the table: {known}")
    kind = dataset.schema.field(column).type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        raise InvalidArgumentError("column", f"{column}: {kind}", _TAKES)
    if pa.types.is_nested(kind.value_type):
        raise InvalidArgumentError("column", f"{column}: {kind}", _TAKES)
