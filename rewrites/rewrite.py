"""A logical plan in, the same answer's plan with index scans out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from datafusion import DataFrame, SessionContext
from datafusion.catalog import Table
from datafusion.expr import Expr
from datafusion.plan import LogicalPlan

from ..indexes.query import Or, Query
from .environment import Environment, SearchableTable
from .guard import same_plan
from .indexed_scan import IndexedScan
from .names import column, quoted
from .predicate import ReadPredicate, read_predicate
from .rules import read_leaf
from .scans import FoundScan, find_scans
from .spine import NotRebuildableError, Path, rebuild


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What to run in place of a plan.

    `plan` is None where the plan is to run as it was. `index_scans` are the index scans in
    the plan by the names of their tables. `bound` are stand-ins for tables, to be put in
    their place while `plan` is planned. `notes` say why predicates are not served.
    """

    plan: LogicalPlan | None = None
    index_scans: Mapping[str, Any] = field(default_factory=dict)
    bound: Mapping[SearchableTable, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Served:
    """A filtered scan that indexes answer on the fragments in `covered`."""

    found: FoundScan
    table: SearchableTable
    read: ReadPredicate
    query: Query
    covered: frozenset[int]


def rewrite(dataframe: DataFrame, environment: Environment) -> Rewritten:
    """Finds the filters that an index answers and puts index scans in their place.

    The rewritten plan has the schema of `dataframe` and gives the same rows.
    """
    plan = dataframe.logical_plan()
    notes: dict[str, None] = {}
    for flatten_subqueries in (True, False):
        analysis = _Analysis.of(plan, environment, flatten_subqueries, notes)
        if not analysis.served:
            break
        if analysis.context.create_dataframe_from_logical_plan(
            analysis.optimized
        ).schema() != dataframe.schema():
            # Taken out of an expression, a scalar subquery's count becomes nullable.
            continue
        rebuilt = analysis.rebuilt(environment) or analysis.bound(environment, notes)
        if rebuilt is not None:
            return Rewritten(rebuilt.plan, rebuilt.index_scans, rebuilt.bound, tuple(notes))
        break
    return Rewritten(notes=tuple(notes))


@dataclass(frozen=True, slots=True)
class _Analysis:
    """A plan as DataFusion's optimizer leaves it, and the scans in it."""

    context: SessionContext
    optimized: LogicalPlan
    scans: tuple[FoundScan, ...]
    tables: tuple[SearchableTable | None, ...]
    served: tuple[_Served, ...]

    @classmethod
    def of(
        cls,
        plan: LogicalPlan,
        environment: Environment,
        flatten_subqueries: bool,
        notes: dict[str, None],
    ) -> _Analysis:
        context = environment.analysis_context(flatten_subqueries=flatten_subqueries)
        with environment.watch() as touched:
            optimized = context.create_dataframe_from_logical_plan(plan).optimized_logical_plan()
        if not touched:
            return cls(context, optimized, (), (), ())
        scans = tuple(find_scans(optimized))
        tables = _identify(scans, touched, context, environment)
        served = tuple(
            one
            for scan, table in zip(scans, tables, strict=True)
            if table is not None and (one := _serve(scan, table, notes)) is not None
        )
        return cls(context, optimized, scans, tables, served)

    def rebuilt(self, environment: Environment) -> Rewritten | None:
        """The plan with index scans in place of the served scans; None where that fails."""
        leaves: dict[Path, DataFrame] = {}
        originals: dict[Path, DataFrame] = {}
        index_scans: dict[str, Any] = {}
        for number, served in enumerate(self.served):
            name = f"index_scan_{number}"
            index_scans[name] = scan = environment.index_scan(
                served.table, served.query, served.covered
            )
            leaves[served.found.path] = self._leaf(served, name, scan, environment)
            originals[served.found.path] = self.context.create_dataframe_from_logical_plan(
                served.found.plan
            )
        try:
            compared = rebuild(self.optimized, originals, self.context)
            if not same_plan(self.optimized, compared):
                return None
            result = rebuild(self.optimized, leaves, self.context)
        except NotRebuildableError:
            return None
        if result.schema() != compared.schema():
            return None
        return Rewritten(result.logical_plan(), index_scans)

    def _leaf(
        self, served: _Served, name: str, scan: Any, environment: Environment
    ) -> DataFrame:
        """The filtered scan, from the index where it covers and by scanning where not."""
        found, read = served.found, served.read
        pushed = list(found.pushed)
        leaf = self._scan(found, name, scan, [*pushed, *read.leftover, *read.recheck])
        rest = served.table.shown_fragments - served.covered
        if not rest:
            return leaf
        assert found.predicate is not None
        other = self._scan(
            found,
            f"{name}_rest",
            environment.rest_scan(served.table, rest),
            [*pushed, found.predicate],
        )
        return leaf.union(other).alias(quoted(found.reference))

    def _scan(
        self, found: FoundScan, name: str, provider: Any, predicates: Sequence[Expr]
    ) -> DataFrame:
        self.context.register_table(name, Table(provider))
        leaf = self.context.table(name).alias(quoted(found.reference))
        for predicate in predicates:
            leaf = leaf.filter(predicate)
        return leaf.select(*(column(*found.reference, name) for name in found.projection))

    def bound(self, environment: Environment, notes: dict[str, None]) -> Rewritten | None:
        """DataFusion's own plan, over tables that show candidate rows only."""
        if self.optimized.display_indent().count("TableScan:") != len(self.scans):
            notes["a scan inside a subquery expression cannot be told from the others"] = None
            return None
        bound: dict[SearchableTable, Any] = {}
        for table in dict.fromkeys(served.table for served in self.served):
            served = [one for one in self.served if one.table is table]
            if len(served) < sum(one is table for one in self.tables):
                notes[
                    f"table {served[0].found.reference[-1]}: the plan cannot be rebuilt around "
                    "an index scan, and it scans the table without such a predicate, too"
                ] = None
                continue
            queries = tuple(dict.fromkeys(one.query for one in served))
            covered = frozenset.intersection(*(one.covered for one in served))
            query = queries[0] if len(queries) == 1 else Or(queries)
            bound[table] = environment.bound_scan(table, query, covered)
        return Rewritten(self.optimized, bound=bound) if bound else None


def _identify(
    scans: Sequence[FoundScan],
    touched: Sequence[SearchableTable],
    context: SessionContext,
    environment: Environment,
) -> tuple[SearchableTable | None, ...]:
    """The Lance table behind each scan; None for scans of other tables.

    A plan does not show its tables, and a name may since have been given to another. Where
    there is one scan, it is of the table that the optimizer asked; else each is planned
    alone, to see which table answers.
    """
    if len(scans) == 1 and all(table is touched[0] for table in touched):
        return (touched[0],)
    tables = []
    for scan in scans:
        with environment.watch() as asked, suppress(Exception):
            # A recursive query's own work table cannot be planned by itself.
            context.create_dataframe_from_logical_plan(scan.scan).execution_plan()
        tables.append(asked[0] if asked else None)
    return tuple(tables)


def _serve(found: FoundScan, table: SearchableTable, notes: dict[str, None]) -> _Served | None:
    if found.predicate is None:
        return None
    scan = IndexedScan(found.reference[-1], found.plan, table.schema, table.snapshot)
    read = read_predicate(
        found.predicate,
        lambda leaf: read_leaf(leaf, scan),
        lambda reason: scan.notes.append(f"table {scan.table_name}: {reason}"),
    )
    notes.update(dict.fromkeys(scan.notes))
    if read.query is None:
        return None
    covered = table.shown_fragments.intersection(
        *(table.snapshot.covered_fragments(index) for index in read.query.indexes)
    )
    if not covered:
        notes[f"table {scan.table_name}: no fragment is covered by all of the indexes"] = None
        return None
    return _Served(found, table, read, read.query, covered)
