"""Which of given rows of a table pass a predicate, asked while DataFusion runs a query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, reduce
from operator import and_
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.dataset
from datafusion import DataFrame, SessionContext
from datafusion.catalog import Table
from datafusion.expr import Expr
from datafusion.plan import LogicalPlan

from ..indexes.errors import InvalidArgumentError
from ..indexes.row_set import RowSet
from ..rewrites.names import column, quoted
from .filter_pushdown import is_inexpressible
from .lance_table import LanceTable, projected
from .own_thread import in_own_thread
from .pushed_filter import HandedOver, Predicate, PushedFilter, columns_of

# Lance refuses it as the name of a column.
_ADDRESS: Final = "_rowaddr"
_ROWS_A_BATCH: Final = 8192
# Some text may have it, too.
_SUBQUERY: Final = "<subquery>"
# Without it a plan shows a subquery: as a join.
_NESTED_SUBQUERIES: Final = "datafusion.optimizer.enable_physical_uncorrelated_scalar_subquery"


class PredicateFilter:
    """The rows of `table` on which each of `predicates` is TRUE, as DataFusion evaluates them.

    `predicates`, without subqueries, are over the table's columns, qualified with `reference`
    (catalog, schema and name, None for those left out) or not at all. Functions are those that
    the predicates were planned with, the configuration is that of `context` as it is now.

    A call of `passing` reads only the given rows, and of them the columns that the predicates
    read. It may come from any thread, those of DataFusion's runtime included: where DataFusion
    has to evaluate the predicates, each call plans and runs on a thread of its own, in one
    partition, which starts no task that would wait for a free thread of the runtime. Threads
    may share a filter.
    """

    def __init__(
        self,
        table: LanceTable,
        reference: Sequence[str | None],
        predicates: Sequence[Expr],
        context: SessionContext,
    ) -> None:
        self._table = table
        self._reference = tuple(reference)
        self._predicates = tuple(predicates)
        config = context.copied_config().with_target_partitions(1)
        self._config = config.set(_NESTED_SUBQUERIES, "false")
        self._handed_over: Predicate | None = None

    def __str__(self) -> str:
        return " AND ".join(predicate.canonical_name() for predicate in self._predicates)

    def check(self) -> None:
        """Plans the predicates, and raises what DataFusion raises where it cannot.

        What it would leave to the table is evaluated without it from then on. Raises
        InvalidArgumentError for a subquery. To be called on a thread that DataFusion does not
        wait for.
        """
        if not self._predicates:
            return
        context = SessionContext(self._config)
        rows = _GivenRows(self._table, RowSet.EMPTY)
        frame = self._frame(context, rows)
        shown = " AND ".join(predicate.canonical_name() for predicate in self._predicates)
        if _SUBQUERY in shown and _joins(frame.optimized_logical_plan()):
            raise InvalidArgumentError("predicate", shown, "no subqueries")
        try:
            plan = frame.execution_plan().display_indent()
        except Exception as error:
            if not is_inexpressible(error):
                raise
            self._frame(self._context, rows).execution_plan()
            return
        predicate = None if rows.handed is None else rows.handed.predicate
        if predicate is not None and columns_of(predicate) and "FilterExec" not in plan:
            self._handed_over = predicate

    def passing(self, rows: RowSet) -> RowSet:
        """Those of `rows`, live rows of the table, on which the predicates are TRUE.

        Raises what DataFusion raises on evaluating them, a failing cast for one.
        """
        if not rows or not self._predicates:
            return rows
        handed_over = self._handed_over
        if handed_over is not None:
            return self._table.row_reader.passing(rows, handed_over)
        given = _GivenRows(self._table, rows)
        batches = in_own_thread(lambda: self._frame(self._context, given).collect())
        parts = [batch.column(0).to_numpy() for batch in batches if batch.num_rows]
        return RowSet.from_addresses(np.concatenate(parts)) if parts else RowSet.EMPTY

    @cached_property
    def _context(self) -> SessionContext:
        context = SessionContext(self._config)
        # DataFusion evaluates the predicates itself, all of them: not every filter that it hands
        # to a table can be written down for it.
        context.remove_optimizer_rule("push_down_filter")
        return context

    def _frame(self, context: SessionContext, rows: _GivenRows) -> DataFrame:
        """The addresses of the passing rows."""
        frame = context.read_table(Table(rows)).alias(quoted(self._reference))
        # As one filter: DataFusion makes one of two, and then a lambda in the upper one reads
        # another column.
        return frame.filter(reduce(and_, self._predicates)).select(
            column(*self._reference, _ADDRESS)
        )


def _joins(plan: LogicalPlan) -> bool:
    inputs = plan.inputs()
    return len(inputs) > 1 or any(map(_joins, inputs))


class _GivenRows(pyarrow.dataset.Dataset):
    """Some rows of a table as a table: its columns, and at the end the rows' addresses.

    A filter that is handed over is kept in `handed`, and not applied.
    """

    def __init__(self, table: LanceTable, rows: RowSet) -> None:
        self._table = table
        self._rows = rows
        self.handed: HandedOver | None = None
        self._schema = table.full_schema.append(pa.field(_ADDRESS, pa.uint64(), nullable=False))

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def get_fragments(self, filter: PushedFilter = None) -> list[_GivenRows]:
        self.handed = None if filter is None else HandedOver(filter)
        return [self]

    def scanner(
        self,
        schema: pa.Schema | None = None,
        columns: Sequence[str] | None = None,
        filter: PushedFilter = None,
        batch_size: int | None = None,
    ) -> _GivenRowsScan:
        fields = projected(self._schema, columns)
        return _GivenRowsScan(self._table, self._rows, fields, batch_size)


class _GivenRowsScan:
    """One read of the rows."""

    def __init__(
        self,
        table: LanceTable,
        rows: RowSet,
        schema: pa.Schema,
        batch_size: int | None,
    ) -> None:
        self._table = table
        self._rows = rows
        self._batch_size = batch_size or _ROWS_A_BATCH
        self.projected_schema = schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        addresses = pa.array(self._rows.addresses())
        stored = [field for field in self.projected_schema if field.name != _ADDRESS]
        if not stored:
            table = pa.table([addresses], schema=self.projected_schema)
            yield from table.to_batches(self._batch_size)
            return
        reader = self._table.row_reader
        start = 0
        for batch in reader.fetch(self._rows, pa.schema(stored), None, self._batch_size):
            at = addresses.slice(start, batch.num_rows)
            start += batch.num_rows
            arrays = [
                at if name == _ADDRESS else batch.column(name)
                for name in self.projected_schema.names
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.projected_schema)
