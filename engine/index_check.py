"""Proving an index against its table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from ..indexes.check_report import IndexCheck
from ..indexes.errors import InvalidArgumentError
from ..indexes.label_list.check import check_label_list
from ..indexes.label_list.reader import KIND as LABEL_LIST
from ..indexes.list_element.check import check_list_element
from ..indexes.list_element.details import KIND as LIST_ELEMENT
from ..indexes.manifest import LanceIndex
from ..indexes.minhash_lsh.check import check_minhash_lsh
from ..indexes.minhash_lsh.details import KIND as MINHASH_LSH
from ..indexes.snapshot import Snapshot


class _Check(Protocol):
    def __call__(self, index: LanceIndex, snapshot: Snapshot, *, progress: bool) -> IndexCheck: ...


_CHECKS: Final[Mapping[str, _Check]] = {
    LIST_ELEMENT: check_list_element,
    LABEL_LIST: check_label_list,
    MINHASH_LSH: check_minhash_lsh,
}
CHECKED: Final = frozenset(_CHECKS)
"""The kinds of indexes that can be checked."""


def check_index(snapshot: Snapshot, name: str, *, progress: bool) -> IndexCheck:
    """The check of the index of that name in the snapshot's version; `progress` shows a bar.

    Raises InvalidArgumentError where there is none of a kind that can be checked.
    """
    found = {index.name: index for index in snapshot.indexes if index.kind in _CHECKS}
    if name not in found:
        known = ", ".join(found) or "there is none"
        raise InvalidArgumentError(
            "name",
            name,
            "the name of a list element, label list or MinHash LSH index of the table: " + known,
        )
    return _CHECKS[found[name].kind](found[name], snapshot, progress=progress)
