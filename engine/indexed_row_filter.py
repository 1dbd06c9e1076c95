"""A row filter that asks the indexes where that is cheaper than to look at the rows."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Final

from datafusion import DataFrame, SessionContext
from datafusion.expr import Expr
from datafusion.plan import LogicalPlan

from ..indexes.evaluation import evaluate
from ..indexes.label_list import reader as label_list
from ..indexes.list_element import details as list_element
from ..indexes.minhash_lsh.search import RowFilter
from ..indexes.query import Query
from ..indexes.row_set import RowSet
from ..indexes.search_stats import SearchStats
from ..indexes.snapshot import Snapshot
from ..rewrites.analysis import ServedScan, analyse
from ..rewrites.scans import find_scans
from .environment import SessionEnvironment
from .registry import RegisteredTable
from .row_filter import PredicateFilter

# A search of the indexes costs a millisecond and more; so do the lists of so many rows.
_WORTH_A_SEARCH: Final = 512


class IndexedFilter:
    """The rows that pass a predicate, of which indexes answer `query` on `covered` fragments.

    `rest` tells of the rows on which `query` is TRUE whether they pass, `whole` of any rows.
    Few rows are left to `whole`. For more of them the indexes are searched, once, which `stats`
    counts. Threads may share it.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        query: Query,
        covered: frozenset[int],
        rest: RowFilter,
        whole: RowFilter,
    ) -> None:
        self._snapshot = snapshot
        self._query = query
        self._covered = covered
        self._rest = rest
        self._whole = whole
        self.stats = SearchStats()
        self._lock = threading.Lock()
        self._found: RowSet | None = None

    @property
    def index_names(self) -> tuple[str, ...]:
        """The names of the indexes that are asked, in order."""
        return tuple(sorted(index.name for index in self._query.indexes))

    def again(self) -> IndexedFilter:
        """The same filter, for which no index has been searched yet."""
        return IndexedFilter(self._snapshot, self._query, self._covered, self._rest, self._whole)

    def passing(self, rows: RowSet) -> RowSet:
        """Those of `rows` that pass; raises what the search or the evaluation raises."""
        if len(rows) < _WORTH_A_SEARCH and self._found is None:
            return self._whole.passing(rows)
        inside = self._rest.passing(rows & self._search())
        outside = frozenset(rows.fragment_ids) - self._covered
        return inside | self._whole.passing(rows.restrict(outside)) if outside else inside

    def _search(self) -> RowSet:
        with self._lock:
            if self._found is None:
                answer = evaluate(self._query, self._snapshot, self._covered, self.stats)
                self._found = answer.true
            return self._found


def filter_of(
    table: RegisteredTable,
    scanned: DataFrame,
    predicate: Expr,
    context: SessionContext,
    *,
    use_indexes: bool = True,
) -> RowFilter:
    """Which rows of `table` pass `predicate`, a boolean expression over `scanned`.

    `scanned` is the table as `context` gives it. Raises what DataFusion raises for a predicate
    that it cannot plan. Not to be called on a thread that DataFusion waits for.
    """
    plan = scanned.filter(predicate).logical_plan()
    (scan,) = find_scans(scanned.logical_plan())
    whole = PredicateFilter(table, scan.reference, (predicate,), context)
    whole.check()
    served = _served(plan, table, context) if use_indexes else None
    if served is None:
        return whole
    read = served.read
    rest = (*served.found.pushed, *read.leftover, *read.recheck)
    return IndexedFilter(
        table.snapshot,
        served.query,
        served.covered,
        PredicateFilter(table, scan.reference, rest, context),
        whole,
    )


def _served(
    plan: LogicalPlan, table: RegisteredTable, context: SessionContext
) -> ServedScan | None:
    # Most predicates are no business of an index: no need to optimize them to see that.
    if not any(name in plan.display() for name in _indexed_columns(table)):
        return None
    environment = SessionEnvironment(context)
    served = analyse(plan, environment.flat_context(), environment).served
    return served[0] if len(served) == 1 and served[0].table is table else None


def _indexed_columns(table: RegisteredTable) -> Iterator[str]:
    for index in table.snapshot.indexes:
        if index.kind in (label_list.KIND, list_element.KIND):
            # An index has at least one field; a leaf's name is that of its list in front.
            name = table.snapshot.column_name(index.field_ids[0])
            if name is not None:
                yield name.partition(".")[0]
