"""EXPLAIN of a query that uses indexes: DataFusion's own, with the index scans by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from datafusion import DataFrame, SessionContext
from datafusion.expr import Expr

from ..rewrites.names import quoted, requoted
from ..rewrites.rewritten import StandIn
from .environment import execution_of
from .execution import Execution, is_query, writes
from .explain_calls import called_in, calls_in_turn, name_calls
from .explain_options import ExplainOptions
from .explain_probe import probed
from .explain_text import (
    label_graphviz,
    label_logical,
    label_logical_json,
    label_physical,
    label_physical_json,
    label_scan_lines,
    number_of_fragments,
    under_table_name,
    without_view,
)
from .explain_tree import label_tree
from .function_scan import FunctionScan
from .private_session import CATALOG, SCHEMA, private_session
from .registry import RegisteredTable
from .scan_identity import stand_ins
from .scan_label import ScanLabel, function_label, label_of

Rows = list[tuple[str, str]]

NOTES = "index_notes"

_SCHEMA = pa.schema(
    [pa.field("plan_type", pa.string(), False), pa.field("plan", pa.string(), False)]
)
_VIEW = f"{CATALOG}.{SCHEMA}.query"


def explain_statement(dataframe: DataFrame, context: SessionContext) -> DataFrame:
    """What to run for an EXPLAIN statement: itself, or its rows with the index scans by name.

    EXPLAIN makes plans and reads no index; EXPLAIN ANALYZE runs the query here.
    """
    plan = dataframe.logical_plan()
    query = context.create_dataframe_from_logical_plan(plan.inputs()[0])
    options = ExplainOptions.of(plan)
    if is_query(query):
        rows = explain(query, options, context)
    elif writes(query):
        rows = _explained_as_it_is(dataframe, query, options, context)
    else:
        rows = None
    return dataframe if rows is None else context.read_batch(rows)


def explain(
    query: DataFrame, options: ExplainOptions, context: SessionContext
) -> pa.RecordBatch | None:
    """The rows of a query's EXPLAIN: `plan_type` and `plan`, both text and not null.

    A last row `index_notes` says why predicates are not served. None where DataFusion's own
    EXPLAIN has nothing to add to.
    """
    explained = _Explained(query, execution_of(query, context, names_scans=True))
    if not explained.adds_to_datafusion:
        return None
    with explained.activate():
        rows = _datafusion_rows(explained.execution.dataframe, options, context)
    return _finished(rows, explained, options, context)


def _explained_as_it_is(
    statement: DataFrame, query: DataFrame, options: ExplainOptions, context: SessionContext
) -> pa.RecordBatch | None:
    """The rows of the EXPLAIN of a statement that writes, which is no part of a query."""
    execution = execution_of(query, context, names_scans=True, rebuilds=False)
    explained = _Explained(query, execution)
    if not explained.adds_to_datafusion:
        return None
    with explained.activate():
        printed = statement.to_pydict()
    rows = list(zip(printed["plan_type"], printed["plan"], strict=True))
    return _finished(rows, explained, options, context)


class _Call:
    """The scan of a table function in a plan, and the same scan for one run of it.

    The plan's own may have run before, and would count on.
    """

    def __init__(self, scan: FunctionScan) -> None:
        self.scan = scan
        self.run = scan.again()


class _Explained:
    """A statement with what runs for it, and the calls of table functions in that."""

    def __init__(self, query: DataFrame, execution: Execution) -> None:
        self.query = query
        self.execution = execution
        self.calls = tuple(map(_Call, called_in(execution.dataframe)))
        of_calls = (note for call in self.calls for note in call.scan.notes)
        self.notes = (*execution.notes, *dict.fromkeys(of_calls))

    @property
    def names_scans(self) -> bool:
        """Whether there is a scan that DataFusion's EXPLAIN does not name."""
        return self.execution.uses_index or bool(self.calls)

    @property
    def adds_to_datafusion(self) -> bool:
        """Whether there is anything that DataFusion's EXPLAIN does not tell."""
        return self.names_scans or bool(self.notes)

    @contextmanager
    def activate(self) -> Iterator[None]:
        """Lets the statement be planned, and run, with the scans that are told of."""
        runs = [StandIn(call.scan, None, call.run) for call in self.calls]
        with self.execution.activate(), stand_ins(runs):
            yield


def _finished(
    rows: Rows, explained: _Explained, options: ExplainOptions, context: SessionContext
) -> pa.RecordBatch:
    if explained.names_scans:
        rows = _labelled(rows, explained, options, context)
    if explained.notes:
        rows.append((NOTES, "\n".join(explained.notes)))
    return pa.RecordBatch.from_arrays(
        [pa.array(column, pa.string()) for column in zip(*rows, strict=True)], schema=_SCHEMA
    )


def _labelled(
    rows: Rows, explained: _Explained, options: ExplainOptions, context: SessionContext
) -> Rows:
    execution, calls = explained.execution, explained.calls
    ran = options.measures
    by_name = {name: label_of(scan, ran=ran) for name, scan in execution.index_scans.items()}
    bound = {one: label_of(one.provider.index_scan, ran=ran) for one in execution.bound}
    lines = {
        line: label for one, label in bound.items() if one.key is not None for line in one.printed
    }
    by_call = {call.scan: function_label(call.run, ran=ran) for call in calls}
    in_turn = [by_call.get(scan) for scan in calls_in_turn(execution.dataframe, context)]
    orders = _orders(rows, explained, options, context)
    labelled = []
    for (kind, plan), numbered in zip(rows, orders, strict=True):
        order = [by_name.get(key) or bound.get(key) or by_call.get(key) for key in numbered]
        plan, called = name_calls(plan, in_turn)
        names = {**by_name, **_printed_names(plan, bound), **called}
        text = _label(kind, plan, options.format, names, lines, order)
        for name, label in by_name.items():
            text = under_table_name(text, name, label.table)
        labelled.append((kind, text))
    return labelled


def _label(
    kind: str,
    plan: str,
    format: str,
    names: Mapping[str, ScanLabel],
    lines: Mapping[str, ScanLabel],
    order: Sequence[ScanLabel | None],
) -> str:
    physical = _is_physical(kind)
    if format == "pgjson" and plan.startswith("["):
        if physical:
            return label_physical_json(plan, order)
        return label_logical_json(plan, names, lines)
    if format == "graphviz":
        quoted_lines = {line: label.quoted() for line, label in lines.items()}
        return label_scan_lines(label_graphviz(plan, names), quoted_lines)
    if format == "tree":
        return label_tree(plan, order)
    if physical:
        return label_physical(plan, order)
    return label_scan_lines(label_logical(plan, names), lines)


def _is_physical(kind: str) -> bool:
    return "physical" in kind or "Metrics" in kind


def _printed_names(plan: str, bound: Mapping[StandIn, ScanLabel]) -> dict[str, ScanLabel]:
    """The labels of bound tables by the names that their scans have in the plan."""
    scans = re.compile(r'TableScan: (.+?)(?= projection=\[|, \w+=|["\\]|$)', re.MULTILINE)
    found = set(scans.findall(plan))
    found.update(re.findall(r'"Relation Name": "([^"]+)"', plan))
    return {
        name: label
        for one, label in bound.items()
        for name in found
        if one.key is None and name.rpartition(".")[2] == _bare_name(one)
    }


def _bare_name(bound: StandIn) -> str:
    assert isinstance(bound.table, RegisteredTable)
    return bound.table.bare_name


def _orders(
    rows: Rows, explained: _Explained, options: ExplainOptions, context: SessionContext
) -> Iterator[list[Any]]:
    """For each row, the scans that the leaves of its physical plan read, in their order."""
    kinds = [kind for kind, _ in rows]
    if any(kind.endswith("_error") for kind in kinds) or not any(map(_is_physical, kinds)):
        # What is not or cannot be planned has no leaves.
        yield from ([] for _ in rows)
        return
    query = explained.query
    execution, by_number = probed(query, [call.scan for call in explained.calls], context)
    with execution.activate():
        if options.verbose and not options.analyze and is_query(query):
            plans = [plan for _, plan in _datafusion_rows(execution.dataframe, options, context)]
        else:
            plans = [execution.dataframe.execution_plan().display_indent()] * len(rows)
    for plan in plans:
        yield [by_number.get(number) for number in number_of_fragments(plan)]


def _datafusion_rows(
    dataframe: DataFrame, options: ExplainOptions, context: SessionContext
) -> Rows:
    """DataFusion's own EXPLAIN of a DataFrame.

    There is no EXPLAIN of a DataFrame that returns its rows, so the DataFrame becomes a view in
    a private catalog, and what the view adds at the top of the plans is taken off again.
    """
    private = private_session(context)
    private.sql("SET datafusion.sql_parser.dialect = 'generic'")
    # The query's own ORDER BY is not one of a subquery, though it is in a view here.
    private.sql("SET datafusion.sql_parser.enable_subquery_sort_elimination = 'false'")
    for key, value in options.settings:
        private.sql(f"SET datafusion.explain.{key} = '{value}'")
    private.register_table(_VIEW, _distinctly_named(dataframe))
    explained = private.sql(options.statement(f"SELECT * FROM {_VIEW}")).to_pydict()
    return [
        (kind, without_view(plan, _VIEW))
        for kind, plan in zip(explained["plan_type"], explained["plan"], strict=True)
    ]


def _distinctly_named(dataframe: DataFrame) -> DataFrame:
    """The DataFrame with a number added to names that it has twice, as no view can have them."""
    names = dataframe.schema().names
    if len(set(names)) == len(names):
        return dataframe
    plan = dataframe.optimized_logical_plan()
    while not hasattr(node := plan.to_variant(), "schema"):
        plan = plan.inputs()[0]
    columns = []
    for i, (name, full_name) in enumerate(zip(names, node.schema().field_names(), strict=True)):
        qualifier = full_name.removesuffix(name).removesuffix(".")
        column = Expr.column(
            f"{requoted(qualifier)}.{quoted([name])}" if qualifier else quoted([name])
        )
        columns.append(column.alias(f"{name}:{i}") if name in names[:i] else column)
    return dataframe.select(*columns)
