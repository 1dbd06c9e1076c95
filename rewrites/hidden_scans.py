"""All scans of a plan, those in subquery expressions included.

DataFusion's Python side does not show the plan of a subquery that is part of an expression; it
only prints it. Another analysis of the plan, in which the subqueries are joins, shows a scan
there that is printed alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from datafusion import SessionContext
from datafusion.plan import LogicalPlan

from ..indexes.query import Query
from .analysis import Analysis, ServedScan
from .environment import SearchableTable
from .scans import FoundScan


@dataclass(frozen=True, slots=True)
class PlannedScan:
    """A scan of a plan. Each of its rows that matters is one of an answer to one of `queries`.

    `queries` are empty where no index says. `plan` is the scan alone, or one like it, for
    `context` to plan.
    """

    name: str
    table: SearchableTable | None
    queries: tuple[Query, ...]
    context: SessionContext
    plan: LogicalPlan


_Printed = tuple[str | None, str]
"""A scan's line in a printed plan, after that of the filter right above."""


def every_scan(own: Analysis, flat: Analysis) -> tuple[PlannedScan, ...] | None:
    """The scans of the plan that `own` analysed; None where one of them stays unknown."""
    served = {one.found.path: one for one in own.served}
    seen = [
        _planned(own.context, found, table, served.get(found.path))
        for found, table in zip(own.scans, own.tables, strict=True)
    ]
    if own.shows_all_scans:
        return tuple(seen)
    hidden = Counter(_printed_scans(own.optimized)) - Counter(map(_printed, own.scans))
    if hidden.total() + len(own.scans) != own.scan_count:
        return None
    for printed in hidden.elements():
        alike = _like(printed, flat)
        if alike is None:
            return None
        seen.append(alike)
    return tuple(seen)


def _planned(
    context: SessionContext,
    found: FoundScan,
    table: SearchableTable | None,
    served: ServedScan | None,
) -> PlannedScan:
    queries = () if served is None else (served.query,)
    return PlannedScan(found.reference[-1], table, queries, context, found.scan)


def _like(printed: _Printed, flat: Analysis) -> PlannedScan | None:
    """A scan that stands for those in `flat` that are printed so, whichever of them it is."""
    alike = [
        (found, table)
        for found, table in zip(flat.scans, flat.tables, strict=True)
        if _printed(found) == printed
    ]
    if not alike or len({id(table) for _, table in alike}) > 1:
        return None
    # Only the filter right above is printed with a scan, so only what it asks is known here.
    queries = {one.found.path: one.read.query for one in flat.served}
    known = [queries.get(found.path) for found, _ in alike]
    found, table = alike[0]
    return PlannedScan(
        found.reference[-1],
        table,
        tuple(query for query in known if query is not None) if None not in known else (),
        flat.context,
        found.scan,
    )


def _printed(found: FoundScan) -> _Printed:
    above = None if found.predicate is None else found.plan.display()
    return above, _unfiltered(found.scan.display())


def _unfiltered(scan: str) -> str:
    """The line of a scan without a filter that is TRUE, which a subquery as a join may have."""
    return scan.removesuffix(", full_filters=[Boolean(true)]")


def _printed_scans(plan: LogicalPlan) -> Iterator[_Printed]:
    lines = plan.display_indent().split("\n")
    for at, line in enumerate(lines):
        if line.lstrip(" ").startswith("TableScan:"):
            parent = _parent(lines, at)
            above = parent if parent is not None and parent.startswith("Filter:") else None
            yield above, _unfiltered(line.lstrip(" "))


def _parent(lines: Sequence[str], at: int) -> str | None:
    depth = _depth(lines[at])
    return next((line.lstrip(" ") for line in reversed(lines[:at]) if _depth(line) < depth), None)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
