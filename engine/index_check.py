"""Proving an index against its table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ..indexes.check_report import IndexCheck
from ..indexes.errors import InvalidArgumentError
from ..indexes.label_list.check import check_label_list
from ..indexes.label_list.reader import KIND as LABEL_LIST
from ..indexes.list_element.check import check_list_element
from ..indexes.list_element.details import KIND as LIST_ELEMENT
from ..indexes.manifest import LanceIndex
from ..indexes.snapshot import Snapshot

_CHECKS: Final[Mapping[str, Callable[[LanceIndex, Snapshot], IndexCheck]]] = {
    LIST_ELEMENT: check_list_element,
    LABEL_LIST: check_label_list,
}
CHECKED: Final = frozenset(_CHECKS)
"""The kinds of indexes that can be checked."""


def check_index(snapshot: Snapshot, name: str) -> IndexCheck:
    """The check of the index of that name in the snapshot's version.

    Raises InvalidArgumentError where there is none of a kind that can be checked.
    """
    found = {index.name: index for index in snapshot.indexes if index.kind in _CHECKS}
    if name not in found:
        known = ", ".join(found) or "there is none"
        raise InvalidArgumentError(
            "name", name, f"the name of a list element or label list index of the table: {known}"
        )
    return _CHECKS[found[name].kind](found[name], snapshot)
