"""Which DatasetExec of a physical plan reads which index scan.

A physical plan prints no table, but it prints how many partitions a table has. So the query is
rewritten and planned once more, never to run, with index scans that claim odd numbers of
partitions; the order of the plan's leaves does not depend on those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.dataset
from datafusion import DataFrame, SessionContext

from ..indexes.query import Query
from ..rewrites.environment import SearchableTable
from ..rewrites.rewrite import rewrite
from ..rewrites.rewritten import StandIn
from .environment import SessionEnvironment
from .execution import Execution
from .function_scan import FunctionScan
from .scan_identity import stand_ins

# More partitions than tables have, few enough to plan with.
_FIRST_NUMBER = 20_011


class ProbeScan(pyarrow.dataset.Dataset):
    """A table that can be planned, and that says it has `number` partitions."""

    def __init__(self, schema: pa.Schema, number: int) -> None:
        self._schema = schema
        self.number = number
        # It stands for an index scan, bound or not, that never runs and so never fails.
        self.error = None
        self.index_scan = self

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def scanner(self, columns: Sequence[str] | None = None, **_scan: Any) -> _ProbedColumns:
        names = self._schema.names if columns is None else columns
        return _ProbedColumns(pa.schema([self._schema.field(name) for name in names]))

    def get_fragments(self, filter: Any = None) -> list[None]:
        return [None] * self.number


@dataclass(frozen=True, slots=True)
class _ProbedColumns:
    projected_schema: pa.Schema


class _ProbeEnvironment(SessionEnvironment):
    """Gives every index scan a number of partitions of its own."""

    def __init__(self, context: SessionContext) -> None:
        super().__init__(context, names_scans=True)
        self._next = _FIRST_NUMBER

    def index_scan(self, table: SearchableTable, query: Query, covered: frozenset[int]) -> Any:
        return self.numbered(table.schema)

    def bound_scan(self, table: SearchableTable, query: Query, covered: frozenset[int]) -> Any:
        return self.numbered(table.schema)

    def numbered(self, schema: pa.Schema) -> ProbeScan:
        self._next += 1
        return ProbeScan(schema, self._next)


def probed(
    query: DataFrame, calls: Sequence[FunctionScan], context: SessionContext
) -> tuple[Execution, Mapping[int, Any]]:
    """What `query` runs with numbered scans, the `calls` of table functions among them.

    Second, by number, the names of its index scans, its stand-ins and its calls.
    """
    environment = _ProbeEnvironment(context)
    rewritten = rewrite(query, environment)
    called = [StandIn(call, None, environment.numbered(call.schema)) for call in calls]
    scans = [
        *rewritten.index_scans.items(),
        *((one, one.provider) for one in rewritten.bound),
        *((one.table, one.provider) for one in called),
    ]
    plan = query.logical_plan() if rewritten.plan is None else rewritten.plan
    execution = Execution(
        context.create_dataframe_from_logical_plan(plan),
        rewritten.index_scans,
        rewritten.bound,
        binding=lambda: stand_ins((*rewritten.bound, *called)),
    )
    return execution, {scan.number: key for key, scan in scans}
