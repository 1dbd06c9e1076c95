"""Builds a label list index, through pylance."""

from __future__ import annotations

import lance
import pyarrow as pa

from ..errors import InvalidArgumentError
from ..manifest import read_manifest

_TAKES = "a list column of elements that are not nested"


def create_label_list(
    dataset: lance.LanceDataset, column: str, name: str | None = None, replace: bool = False
) -> None:
    """Index the labels of a list column; `dataset` is at the new version afterwards.

    Raises `InvalidArgumentError` for a column that is not there, is no List or LargeList,
    or has nested elements, and for a name in use without `replace`. Whatever else pylance
    raises (a failed write, a lost race) comes through.
    """
    if column not in dataset.schema.names:
        known = ", ".join(dataset.schema.names)
        raise InvalidArgumentError("column", column, f"a column of the table: {known}")
    kind = dataset.schema.field(column).type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        raise InvalidArgumentError("column", f"{column}: {kind}", _TAKES)
    if pa.types.is_nested(kind.value_type):
        raise InvalidArgumentError("column", f"{column}: {kind}", _TAKES)
    if name is not None and (not isinstance(name, str) or not name):
        raise InvalidArgumentError("name", name, "a name, or None for Lance's own choice")
    if not replace:
        taken = name if name is not None else f"{column}_idx"
        if any(index.name == taken for index in read_manifest(dataset).indexes):
            raise InvalidArgumentError(
                "name", taken, "a name that no index has yet, or replace=True"
            )
    dataset.create_scalar_index(column, "LABEL_LIST", name=name, replace=replace)
