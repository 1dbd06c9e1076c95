"""A plan as DataFusion's optimizer leaves it, and which of its scans indexes serve."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from datafusion import SessionContext
from datafusion.expr import Expr
from datafusion.plan import LogicalPlan

from ..indexes.query import And, Nearest, Query, Superset
from .environment import Environment, SearchableTable
from .indexed_scan import IndexedScan
from .nearest import read_nearest
from .predicate import Leaf, ReadPredicate, read_predicate
from .row_demands import RowDemand, row_demands, true_on_missing_row
from .rules import read_leaf
from .scans import FoundScan, find_scans

_GENERATED = re.compile("__common_expr_|__datafusion_extracted_")

Notes = dict[str, None]
"""Why predicates are not served: a set that keeps its order."""


@dataclass(frozen=True, slots=True)
class ServedScan:
    """A scan that indexes answer on the fragments in `covered`.

    `read` is the filter right above it. `query` also holds what predicates further up demand.
    """

    found: FoundScan
    table: SearchableTable
    read: ReadPredicate
    query: Query
    covered: frozenset[int]

    @property
    def remaining(self) -> tuple[Expr, ...]:
        """What the rows that the query finds are still to be filtered by."""
        if isinstance(self.query, Nearest):
            return ()
        return (*self.found.pushed, *self.read.leftover, *self.read.recheck)


@dataclass(frozen=True, slots=True)
class Analysis:
    """`tables` are the Lance tables behind `scans`, None for other tables.

    `context` optimized `plan`; what is built around it is built there. `notes` say why
    predicates are not served.
    """

    context: SessionContext
    plan: LogicalPlan
    optimized: LogicalPlan
    scans: tuple[FoundScan, ...]
    tables: tuple[SearchableTable | None, ...]
    served: tuple[ServedScan, ...]
    notes: Notes

    @property
    def shows_all_scans(self) -> bool:
        """Whether no scan hides in a subquery expression, where `scans` does not reach."""
        return self.scan_count == len(self.scans)

    @property
    def scan_count(self) -> int:
        """How many scans there are, those in subquery expressions included."""
        return _count_scans(self.optimized)

    @property
    def optimized_plainly(self) -> bool:
        """Whether each of the environment's contexts would optimize it to the same plan.

        They differ in scalar subqueries, and in whether parts of expressions are computed
        below the node that needs them, under made-up names.
        """
        return self.shows_all_scans and not _GENERATED.search(self.optimized.display_indent())

    @property
    def reads_lance_alone(self) -> bool:
        """Whether every scan of the plan is known, and of a Lance table."""
        return self.shows_all_scans and None not in self.tables

    @property
    def schema(self) -> pa.Schema:
        """The optimized plan's, which may be laxer about NULLs than the plan was."""
        return self.context.create_dataframe_from_logical_plan(self.optimized).schema()


def analyse(plan: LogicalPlan, context: SessionContext, environment: Environment) -> Analysis:
    """Optimizes the plan in the context and reads the filters above its scans."""
    with environment.watch() as touched:
        optimized = context.create_dataframe_from_logical_plan(plan).optimized_logical_plan()
    if not touched:
        return Analysis(context, plan, optimized, (), (), (), {})
    scans = tuple(find_scans(optimized))
    if len(scans) == _count_scans(optimized) == 1 and all(one is touched[0] for one in touched):
        tables = (touched[0],)
    else:
        tables = tuple(_asked(scan, context, environment) for scan in scans)
    notes: Notes = {}
    demands = row_demands(optimized, context)
    served = tuple(
        one
        for scan, table in zip(scans, tables, strict=True)
        if table is not None
        and (one := _serve(scan, table, demands.get(scan.path, ()), environment, notes)) is not None
    )
    return Analysis(context, plan, optimized, scans, tables, served, notes)


def _count_scans(plan: LogicalPlan) -> int:
    """How many scans the plan prints: those in subquery expressions, too.

    A literal with that text inside makes it more, which only costs the plan an index.
    """
    return plan.display_indent().count("TableScan:")


def _asked(
    found: FoundScan, context: SessionContext, environment: Environment
) -> SearchableTable | None:
    """The Lance table behind a scan; None for other tables.

    A plan does not show its tables, and a name may since have been given to another; so the
    scan is planned alone, to see which table answers.
    """
    with environment.watch() as asked, suppress(Exception):
        # A recursive query's own work table cannot be planned by itself.
        context.create_dataframe_from_logical_plan(found.scan).execution_plan()
    return asked[0] if asked else None


def _serve(
    found: FoundScan,
    table: SearchableTable,
    demands: Sequence[RowDemand],
    environment: Environment,
    notes: Notes,
) -> ServedScan | None:
    read = ReadPredicate(None, (), ())
    if found.predicate is not None or found.top is not None:
        scan = IndexedScan(
            found.reference[-1],
            found.plan if found.top is None else found.top.sort,
            table.schema,
            table.snapshot,
            recognize=environment.distance_function,
        )
        if found.predicate is not None:
            read = _read(found.predicate, scan, notes, lambda leaf: read_leaf(leaf, scan))
        nearest = _nearest(found, table, read, scan, environment)
        notes.update(dict.fromkeys(scan.notes))
        if nearest is not None:
            return nearest
    wanted = [] if read.query is None else [read.query]
    wanted += _demanded(found, table, demands, environment, notes)
    query, covered = None, frozenset[int]()
    # What is demanded from above only narrows, so it is left out where it covers less.
    for one in wanted:
        both = one if query is None else And((query, one))
        shared = _covered(both, table)
        if query is None or shared == covered:
            query, covered = both, shared
    if query is None:
        return None
    if not covered:
        notes[f"table {found.reference[-1]}: no fragment is covered by all of the indexes"] = None
        return None
    return ServedScan(found, table, read, query, covered)


def _nearest(
    found: FoundScan,
    table: SearchableTable,
    read: ReadPredicate,
    scan: IndexedScan,
    environment: Environment,
) -> ServedScan | None:
    """The scan by what a Sort above it keeps; a demand from above that says nothing of this."""
    for query in read_nearest(found, read, scan, partial(environment.row_filter, table)):
        covered = _covered(query, table)
        if covered:
            return ServedScan(found, table, ReadPredicate(query, (), ()), query, covered)
    return None


def _covered(query: Query, table: SearchableTable) -> frozenset[int]:
    """The fragments that every index of the query covers."""
    return table.shown_fragments.intersection(
        *(table.snapshot.covered_fragments(index) for index in query.indexes)
    )


def _demanded(
    found: FoundScan,
    table: SearchableTable,
    demands: Sequence[RowDemand],
    environment: Environment,
    notes: Notes,
) -> Iterator[Query]:
    """What predicates further up say of the rows of a scan, as supersets."""
    for demand in demands:
        scan = IndexedScan(
            found.reference[-1],
            demand.stated_by,
            table.schema,
            table.snapshot,
            demand.names,
            environment.distance_function,
        )
        read = _read(
            demand.predicate,
            scan,
            notes,
            lambda leaf, demand=demand, scan=scan: (
                read_leaf(leaf, scan) if demand.concerns(leaf) else None
            ),
        )
        if read.query is None:
            continue
        reason = demand.barrier
        if reason is None and demand.may_miss and true_on_missing_row(read.query):
            reason = "it is TRUE where an outer join finds no row of the table"
        if reason is None:
            yield Superset(read.query)
        else:
            notes[f"table {scan.table_name}: {read.query}: {reason}"] = None


def _read(predicate: Expr, scan: IndexedScan, notes: Notes, leaf: Leaf) -> ReadPredicate:
    read = read_predicate(
        predicate, leaf, lambda reason: scan.notes.append(f"table {scan.table_name}: {reason}")
    )
    notes.update(dict.fromkeys(scan.notes))
    return read
