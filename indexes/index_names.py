"""The name of an index to create, and what it replaces."""

from __future__ import annotations

from .errors import InvalidArgumentError
from .manifest import IndexSegment, Manifest


def chosen_name(manifest: Manifest, column: str, name: str | None, replace: bool) -> str:
    """`name`, or the column's with `_idx`.

    Raises `InvalidArgumentError` for an empty name, and for one in use unless `replace`.
    """
    if name is not None and not name:
        raise InvalidArgumentError("name", name, "a name, or None for the column's name and _idx")
    chosen = name if name is not None else f"{column}_idx"
    if not replace and any(index.name == chosen for index in manifest.indexes):
        raise InvalidArgumentError("name", chosen, "a name that no index has yet, or replace=True")
    return chosen


def replaced(manifest: Manifest, name: str) -> list[IndexSegment]:
    """The segments of the index of that name; none where there is no such index."""
    return [s for index in manifest.indexes if index.name == name for s in index.segments]
