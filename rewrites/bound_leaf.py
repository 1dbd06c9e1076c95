"""DataFusion's own plan, over tables that show only the rows that its filters may keep."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from ..indexes.query import Or
from .analysis import Analysis, Notes
from .environment import Environment, SearchableTable
from .hidden_scans import PlannedScan, every_scan
from .rewritten import Rewritten, StandIn

_NOT_REBUILT = "the plan cannot be rebuilt around an index scan, and"


@dataclass(frozen=True, slots=True)
class _Bound:
    stand_in: StandIn
    scans: int


def with_bound_leaves(
    own: Analysis, flat: Analysis, environment: Environment, notes: Notes
) -> Rewritten | None:
    """The plan that `own` is of, with stand-ins for tables; None where no table can have one.

    `flat` is an analysis of the same plan with every subquery out of its expression. The filters
    stay above the scans and recheck. A stand-in serves the scans of a table of which the table
    is asked the same, with the rows that any of them may keep; so each of these has to have a
    filter that an index answers.
    """
    scans = every_scan(own, flat)
    if scans is None:
        notes["a scan inside a subquery expression cannot be told from the others"] = None
        return None
    tables = dict.fromkeys(scan.table for scan in scans if scan.queries and scan.table is not None)
    for served in flat.served:
        if served.table not in tables:
            reason = f"{_NOT_REBUILT} as it is no filter over the table holds the predicate"
            notes[f"table {served.found.reference[-1]}: {reason}"] = None
    bound = [
        one
        for table in tables
        for one in _bound(table, [s for s in scans if s.table is table], environment, notes)
    ]
    if not bound:
        return None
    return Rewritten(
        own.plan, bound=tuple(one.stand_in for one in bound), served=sum(one.scans for one in bound)
    )


def _bound(
    table: SearchableTable,
    scans: Sequence[PlannedScan],
    environment: Environment,
    notes: Notes,
) -> Iterable[_Bound]:
    """Stand-ins for a table, some of whose scans are served."""
    all_served = all(scan.queries for scan in scans)
    name = next(scan.name for scan in scans if scan.queries)
    if not environment.runs_unchanged or len(scans) == 1:
        if all_served:
            yield _for_all(table, None, scans, environment)
        else:
            notes[
                f"table {name}: {_NOT_REBUILT} it scans the table without such a predicate, too"
            ] = None
        return
    by_key: dict[Hashable, list[PlannedScan]] = {}
    for scan in scans:
        by_key.setdefault(environment.scan_key(scan.context, scan.plan), []).append(scan)
    for key, alike in by_key.items():
        if key is not None and all(scan.queries for scan in alike):
            yield _for_all(table, key, alike, environment)
        elif any(scan.queries for scan in alike):
            notes[
                f"table {name}: {_NOT_REBUILT} it scans the same columns of the table without "
                "such a predicate, too"
            ] = None


def _for_all(
    table: SearchableTable,
    key: Hashable | None,
    scans: Sequence[PlannedScan],
    environment: Environment,
) -> _Bound:
    queries = tuple(dict.fromkeys(query for scan in scans for query in scan.queries))
    query = queries[0] if len(queries) == 1 else Or(queries)
    covered = table.shown_fragments.intersection(
        *(table.snapshot.covered_fragments(index) for index in query.indexes)
    )
    provider = environment.bound_scan(table, query, covered)
    printed = frozenset(scan.plan.display() for scan in scans)
    return _Bound(StandIn(table, key, provider, printed), len(scans))
