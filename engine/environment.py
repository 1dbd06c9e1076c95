"""The session's side of a rewrite."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
from datafusion import DataFrame, SessionConfig, SessionContext
from datafusion.catalog import Table
from datafusion.expr import Expr
from datafusion.plan import LogicalPlan

from ..indexes.query import Query
from ..rewrites.analysis import Analysis
from ..rewrites.environment import DistanceFunction, SearchableTable
from ..rewrites.plan_memory import PlanMemory, tables_behind
from ..rewrites.rewrite import rewrite
from ..udfs.minhash.recognized import distance_call, similarity_call
from .execution import Execution
from .index_scan import IndexScan
from .lance_table import LanceTable
from .registry import RegisteredTable
from .row_filter import PredicateFilter
from .scan_identity import ScanKey, stand_ins, watch, watch_scans

_NESTED_SUBQUERIES = "datafusion.optimizer.enable_physical_uncorrelated_scalar_subquery"
_PUSH_LEAF_EXPRESSIONS = "datafusion.optimizer.enable_leaf_expression_pushdown"


class SessionEnvironment:
    """Makes what a rewrite of one of the context's plans asks for."""

    def __init__(
        self,
        context: SessionContext,
        plans: PlanMemory | None = None,
        *,
        names_scans: bool = False,
        runs_unchanged: bool = True,
        rebuilds: bool = True,
    ) -> None:
        self._context = context
        self._plans = plans
        self.names_scans = names_scans
        self.runs_unchanged = runs_unchanged
        self.rebuilds = rebuilds

    def flat_context(self) -> SessionContext:
        return self._analysing(self._context.copied_config().set(_NESTED_SUBQUERIES, "false"))

    def nested_context(self) -> SessionContext:
        return self._analysing(self._context.copied_config().set(_NESTED_SUBQUERIES, "true"))

    def own_context(self) -> SessionContext:
        return self._context

    def _analysing(self, config: SessionConfig) -> SessionContext:
        # A session may have been made without a default catalog; here, scans need one.
        config = config.with_create_default_catalog_and_schema(True)
        context = SessionContext(config.set(_PUSH_LEAF_EXPRESSIONS, "false"))
        # It would take predicates out of their filters; it runs when the plan runs.
        context.remove_optimizer_rule("common_sub_expression_eliminate")
        return context

    def scan(self, context: SessionContext, name: str, provider: Any) -> DataFrame:
        if context is self._context:
            return context.read_table(Table(provider))
        context.register_table(name, Table(provider))
        return context.table(name)

    def recall(self, plan: LogicalPlan) -> Analysis | None:
        if self._plans is None:
            return None
        known = self._plans.get(plan, lambda: self._tables(plan))
        return None if known is None else replace(known, context=self._context)

    def keep(self, plan: LogicalPlan, analysis: Analysis) -> None:
        if self._plans is not None:
            self._plans.put(plan, lambda: self._tables(plan), analysis)

    def _tables(self, plan: LogicalPlan) -> tuple[SearchableTable, ...] | None:
        return tables_behind(plan, self._context, self.watch)

    def watch(self) -> AbstractContextManager[list[Any]]:
        return watch(RegisteredTable)

    def distance_function(self, name: str, plan: str) -> DistanceFunction | None:
        for call, similar in ((distance_call, False), (similarity_call, True)):
            parameters = call(name, plan)
            if parameters is not None:
                return DistanceFunction(parameters, similar)
        return None

    def row_filter(
        self,
        table: SearchableTable,
        reference: tuple[str | None, str | None, str],
        predicates: Sequence[Expr],
    ) -> PredicateFilter:
        made = PredicateFilter(_registered(table), reference, predicates, self._context)
        with suppress(Exception):  # what DataFusion cannot plan it says of the query itself
            made.check()
        return made

    def scan_key(self, context: SessionContext, scan: LogicalPlan) -> ScanKey | None:
        with watch_scans() as planned, suppress(Exception):
            context.create_dataframe_from_logical_plan(scan).execution_plan()
        return planned[0] if len(planned) == 1 else None

    def index_scan(self, table: SearchableTable, query: Query, covered: frozenset[int]) -> Any:
        return IndexScan(_registered(table), table.snapshot, query, covered)

    def rest_scan(self, table: SearchableTable, fragment_ids: frozenset[int]) -> Any:
        return _registered(table).restricted(fragment_ids)

    def bound_scan(self, table: SearchableTable, query: Query, covered: frozenset[int]) -> Any:
        rest = table.shown_fragments - covered
        # What is handed over is what the plan's own scans apply, which the query has read.
        scan = IndexScan(_registered(table), table.snapshot, query, covered, foreseen=True)
        return BoundScan(
            _registered(table),
            scan,
            self.rest_scan(table, rest) if rest else None,
        )


def _registered(table: SearchableTable) -> RegisteredTable:
    """The table as the watch found it: no others tell it that they are asked."""
    assert isinstance(table, RegisteredTable)
    return table


class BoundScan(pyarrow.dataset.Dataset):
    """A table's candidate rows: those of an index scan, and all of the uncovered fragments."""

    def __init__(self, table: LanceTable, index_scan: IndexScan, rest: LanceTable | None) -> None:
        self.index_scan = index_scan
        self._table = table
        self._rest = rest

    @property
    def schema(self) -> pa.Schema:
        return self._table.schema

    def scanner(self, columns: Sequence[str] | None = None, **scan: Any) -> Any:
        return self._table.scanner(columns=columns, **scan)

    def get_fragments(self, filter: pc.Expression | pa.Scalar | bool | None = None) -> list[Any]:
        rest = [] if self._rest is None else self._rest.get_fragments(filter)
        return [*self.index_scan.get_fragments(filter), *rest]


def execution_of(
    dataframe: DataFrame,
    context: SessionContext,
    plans: PlanMemory | None = None,
    *,
    names_scans: bool = False,
    runs_unchanged: bool = True,
    rebuilds: bool = True,
) -> Execution:
    """What to run for a DataFrame of the context: its plan with index scans where they serve.

    `plans` are those that came before in the session as it is, if it remembers any. With
    `names_scans` the index scans are found in its text by the names of `Execution.index_scans`.
    `runs_unchanged` says that just this DataFrame is planned, and none built on it. Without
    `rebuilds` the plan stays as it is, and only other rows come from its tables.
    """
    environment = SessionEnvironment(
        context,
        plans,
        names_scans=names_scans,
        runs_unchanged=runs_unchanged,
        rebuilds=rebuilds,
    )
    rewritten = rewrite(dataframe, environment)
    if rewritten.plan is None:
        return Execution(dataframe, notes=rewritten.notes)
    return Execution(
        context.create_dataframe_from_logical_plan(rewritten.plan),
        rewritten.index_scans,
        rewritten.bound,
        rewritten.notes,
        lambda: stand_ins(rewritten.bound),
    )
