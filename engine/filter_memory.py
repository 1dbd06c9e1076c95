"""The filters of table functions that were planned last: the same one comes with many a text."""

from __future__ import annotations

from typing import Final

from datafusion.plan import LogicalPlan

from ..indexes.minhash_lsh.search import RowFilter
from ..rewrites.plan_memory import is_settled
from ..udfs.elements.memory import Memory
from .indexed_row_filter import IndexedFilter
from .registry import RegisteredTable

_KEPT: Final = 64


class FilterMemory:
    """What predicates, as texts over a table of a name, were planned as while a session stays as
    it is.

    What they mean depends on its configuration and functions: for another state of it there is
    another memory. Predicates whose functions may give another value the next time are not kept.
    Threads may share it.
    """

    def __init__(self) -> None:
        self._known = Memory[tuple[str, str], tuple[RegisteredTable, RowFilter]](_KEPT)

    def get(self, name: str, text: str, table: RegisteredTable) -> RowFilter | None:
        """The filter, if the name still stood for `table` when it was planned."""
        known = self._known.get((name, text))
        return _unsearched(known[1]) if known is not None and known[0] is table else None

    def put(
        self, name: str, text: str, table: RegisteredTable, filter: RowFilter, plan: LogicalPlan
    ) -> None:
        """Keeps a filter; `plan` is that of the table with it."""
        if is_settled(plan):
            self._known.put((name, text), (table, _unsearched(filter)))


def _unsearched(filter: RowFilter) -> RowFilter:
    """Without what was found for it in indexes, which may be much."""
    return filter.again() if isinstance(filter, IndexedFilter) else filter
