"""DataFusion's own plan, over tables that show only the rows that its filters may keep."""

from __future__ import annotations

from typing import Any

from datafusion.plan import LogicalPlan

from ..indexes.query import Or
from .analysis import Analysis, Notes, ServedScan
from .environment import Environment, SearchableTable
from .rewritten import Rewritten


def with_bound_leaves(
    analysis: Analysis, plan: LogicalPlan, environment: Environment, notes: Notes
) -> Rewritten | None:
    """`plan`, which optimizes to the analysed one, with stand-ins for the tables served.

    The filters stay above the scans and recheck. A table has one stand-in for all of its
    scans, with the rows that any of them may keep; so each has to have a filter that an
    index answers. None where no table can have one.
    """
    if not analysis.shows_all_scans:
        notes["a scan inside a subquery expression cannot be told from the others"] = None
        return None
    bound = {
        table: stand_in
        for table in dict.fromkeys(served.table for served in analysis.served)
        if (stand_in := _stand_in(table, analysis, environment, notes)) is not None
    }
    return Rewritten(plan, bound=bound) if bound else None


def _stand_in(
    table: SearchableTable, analysis: Analysis, environment: Environment, notes: Notes
) -> Any | None:
    served: list[ServedScan] = [one for one in analysis.served if one.table is table]
    if len(served) < sum(one is table for one in analysis.tables):
        notes[
            f"table {served[0].found.reference[-1]}: the plan cannot be rebuilt around an "
            "index scan, and it scans the table without such a predicate, too"
        ] = None
        return None
    queries = tuple(dict.fromkeys(one.query for one in served))
    query = queries[0] if len(queries) == 1 else Or(queries)
    covered = frozenset.intersection(*(one.covered for one in served))
    return environment.bound_scan(table, query, covered)
