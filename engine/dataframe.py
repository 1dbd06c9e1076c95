"""A DataFrame that is rewritten when it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from datafusion import DataFrame, functions
from datafusion.catalog import Table
from datafusion.dataframe import ExplainAnalyzeLevel, ExplainFormat, ExplainMetricCategory
from datafusion.expr import Expr
from datafusion.plan import ExecutionPlan

from ..udfs.elements.deferred import Binding, bound
from .adoption import Method, inherit
from .execution import Execution, explains, is_query
from .explain import explain
from .explain_options import ExplainOptions
from .filter_pushdown import is_inexpressible, without_pushdown

if TYPE_CHECKING:
    from .session import LanceSessionContext

# They do not return a DataFrame, but only look at the plan as it was built.
LOOKING = frozenset(
    {
        "col",
        "column",
        "find_qualified_columns",
        "logical_plan",
        "optimized_logical_plan",
        "schema",
    }
)

# They return a DataFrame, but run this one for it.
RUNNING = frozenset({"cache", "describe"})

# They plan this DataFrame as it is, and none built on it: a count, say, reads other columns.
UNCHANGED = frozenset(
    {
        "collect",
        "collect_column",
        "collect_partitioned",
        "execute_stream",
        "execute_stream_partitioned",
        "execution_plan",
        "to_arrow_table",
        "to_pandas",
        "to_polars",
        "to_pydict",
        "to_pylist",
    }
)

# Its arguments are those of the function that it calls.
PASSING_ON = frozenset({"transform"})


def _wrap(name: str, method: Method) -> Method:
    """The method as it is, with its result adopted, or run on the rewritten plan."""
    chained = method.__annotations__.get("return") in ("DataFrame", DataFrame)
    if name in LOOKING or (chained and name not in RUNNING):

        def looking(self: LanceDataFrame, *args: Any, **kwargs: Any) -> Any:
            if name not in PASSING_ON:
                args, kwargs = self._bound(args, kwargs)
            result = method(self, *args, **kwargs)
            return self.session.adopt(result)

        return looking

    def running(self: LanceDataFrame, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = self._bound(args, kwargs)
        return self._run(
            lambda dataframe: method(dataframe, *args, **kwargs),
            runs_unchanged=name in UNCHANGED,
        )

    return running


@inherit(DataFrame, _wrap)
class LanceDataFrame(DataFrame):
    """A DataFusion DataFrame that reads Lance tables through their indexes.

    It is built like any other; its plan is rewritten whenever a method runs or explains it.
    Methods that return a DataFrame return a LanceDataFrame of the same session.
    """

    def __init__(self, df: Any, session: LanceSessionContext) -> None:
        """`df` is the DataFrame of DataFusion's own, compiled part."""
        super().__init__(df)
        self.session = session
        self._last: Execution | None = None

    def parse_sql_expr(self, expr: str) -> Expr:
        """The expression that a text is; it may call `any_element(list, 'predicate')`.

        So may the texts that `filter`, `with_column` and the like take.
        """
        return self.session.parse(self, expr)

    def select_exprs(self, *args: str) -> DataFrame:
        """The columns that the texts are; they may call `any_element(list, 'predicate')`."""
        return self.select(*map(self.parse_sql_expr, args))

    def execution_plan(self) -> ExecutionPlan:
        """The physical plan; after a run the one that ran, with its metrics."""
        if explains(self):
            # Its rows are made by explaining, and by running for ANALYZE; this asks for neither.
            return DataFrame(self.df).execution_plan()
        return self._run(
            lambda dataframe: dataframe.execution_plan(), self._last, runs_unchanged=True
        )

    def count(self) -> int:
        """The number of rows; of a query's, by a query that counts them."""
        if not is_query(self):
            return self._run(lambda dataframe: dataframe.count())
        counted = self.aggregate([], [functions.count_star().alias("rows")])
        return counted.to_pydict()["rows"][0]

    def show(self, num: int = 20) -> None:
        """Prints the first `num` rows; of an EXPLAIN all of them, as DataFusion does."""
        rows = _ALL_ROWS if explains(self) else num
        self._run(lambda dataframe: dataframe.show(rows))

    def explain(
        self,
        verbose: bool = False,
        analyze: bool = False,
        format: ExplainFormat | None = None,
        show_statistics: bool | None = None,
        analyze_level: ExplainAnalyzeLevel | None = None,
        analyze_categories: Iterable[ExplainMetricCategory] | None = None,
    ) -> None:
        """Prints the plans, with the index scans by name; `analyze` runs the query, too."""
        if analyze_categories is not None:
            analyze_categories = tuple(analyze_categories)
        asked = (verbose, analyze, format, show_statistics, analyze_level, analyze_categories)
        plain = DataFrame(self.df)
        rows = None
        # What DataFusion refuses it is to refuse itself.
        refused = (
            show_statistics is not None
            if analyze
            else analyze_level is not None or analyze_categories is not None
        )
        if self.session.use_indexes and is_query(plain) and not refused:
            options = ExplainOptions.of_arguments(*asked)
            try:
                rows = explain(plain, options, self.session.undisclosed)
            except Exception as error:
                if not is_inexpressible(error):
                    raise
                plain = without_pushdown(plain, self.session.undisclosed)
        if rows is None:
            plain.explain(*asked)
        else:
            self.session.undisclosed.read_batch(rows).show(_ALL_ROWS)

    def into_view(self, temporary: bool = False) -> Table:
        """A table that stands for this DataFrame's query.

        A temporary view is a wall to DataFusion's optimizer, and so to an index. Where the
        query reads a Lance table it is therefore planned as part of the query that reads it,
        like the other kind; only its `kind` says `temporary`.
        """
        if temporary and self.session.reads_lance(self):
            return _InlinedTemporaryView(super().into_view())
        return super().into_view(temporary)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The result as an Arrow C stream, in the order of its partitions, read as it is asked.

        DataFusion's own reads one partition after the other, for which a partitioned join
        waits for ever, and plans on another thread, where tables that are bound to this one
        could not be found. Where a Lance table is read it is made of one stream instead.
        """
        if not self.session.reads_lance(self):
            return DataFrame(self.df).__arrow_c_stream__(requested_schema)
        schema = self.schema()
        stream = self.execute_stream()

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in stream:
                yield _declared(batch.to_pyarrow(), schema)

        reader = pa.RecordBatchReader.from_batches(schema, batches())
        return reader.__arrow_c_stream__(requested_schema)

    def _bound(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A method's arguments with their deferred expressions bound to this DataFrame.

        Where another one is among them, to its columns next.
        """
        others = [value for value in (*args, *kwargs.values()) if isinstance(value, DataFrame)]
        return bound((args, kwargs), Binding((self, *others), self.session.undisclosed))

    def _run(
        self,
        run: Callable[[DataFrame], Any],
        execution: Execution | None = None,
        *,
        runs_unchanged: bool = False,
    ) -> Any:
        """What `run` gives for the rewritten DataFrame; `execution` where it is known.

        `runs_unchanged` says that it plans just that one, and none built on it.
        """
        try:
            execution = execution or self._execution(runs_unchanged)
            with execution.activate():
                result = run(execution.dataframe)
        except Exception as error:
            if not is_inexpressible(error):
                raise
            plain = without_pushdown(DataFrame(self.df), self.session.undisclosed)
            return self.session.adopt(run(plain))
        return execution.adopt(self.session.adopt(result))

    def _execution(self, runs_unchanged: bool) -> Execution:
        self._last = execution = self.session.execution(self, runs_unchanged=runs_unchanged)
        return execution


class _InlinedTemporaryView(Table):
    """A view that is planned with the query that reads it, and that calls itself temporary."""

    @property
    def kind(self) -> str:
        return "temporary"


_ALL_ROWS = 2**62


def _declared(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch under the plan's schema, of which the physical plan may relax nullability."""
    if batch.schema.equals(schema):
        return batch
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema)
