"""Tables that exist twice, as Lance tables and as rows in memory, and how two answers compare.

Every test of "an index never changes an answer" takes its rows from here. The rows in memory
are made with pyarrow alone: what Lance appends and deletes is done to them again, so that
nothing of what is under test has a part in the expected answer.
"""

from __future__ import annotations

import io
import math
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType

import lance
import pyarrow as pa
import pyarrow.compute as pc
from datafusion import DataFrame, SessionConfig, SessionContext

from datafusion_lance.indexes.list_element.builder import create_list_element


@dataclass(frozen=True, slots=True)
class TwiceStored:
    """One table: a Lance dataset at `path`, and the same live rows in memory."""

    name: str
    path: Path
    rows: pa.Table


def store_twice(
    folder: Path,
    name: str,
    rows: pa.Table,
    *,
    key: str,
    rows_per_fragment: int,
    indexed: Sequence[str] = (),
    indexed_structs: Mapping[str, Sequence[str]] = MappingProxyType({}),
    deleted_before: Sequence[int] = (),
    deleted_after: Sequence[int] = (),
    appended: pa.Table | None = None,
    enable_stable_row_ids: bool = False,
) -> TwiceStored:
    """Write `rows` to `folder`/`name`.lance, and give back the same table in memory.

    `key` names a column of distinct integers without NULL. The rows whose keys are in
    `deleted_before` and `deleted_after` are deleted before and after the label list indexes on
    the columns `indexed` are built, and the list element indexes on `indexed_structs`, which
    gives their keys. `appended` comes last: its fragments are in no index.
    """
    path = folder / f"{name}.lance"
    dataset = lance.write_dataset(
        rows,
        path,
        max_rows_per_file=rows_per_fragment,
        enable_stable_row_ids=enable_stable_row_ids,
    )
    _delete(dataset, key, deleted_before)
    for column in indexed:
        dataset.create_scalar_index(column, "LABEL_LIST", name=f"{column}_labels")
    for column, keys in indexed_structs.items():
        name_of_index = f"{column}_elements"
        create_list_element(lance.dataset(path), column, keys, name_of_index, progress=False)
        dataset = lance.dataset(path)
    _delete(dataset, key, deleted_after)
    gone = pa.array([*deleted_before, *deleted_after], rows.schema.field(key).type)
    live = rows.filter(pc.invert(pc.is_in(rows[key], value_set=gone)))
    if appended is not None and appended.num_rows:
        lance.write_dataset(appended, path, mode="append", max_rows_per_file=rows_per_fragment)
        live = pa.concat_tables([live, appended])
    return TwiceStored(name, path, live)


def _delete(dataset: lance.LanceDataset, key: str, keys: Sequence[int]) -> None:
    if keys:
        dataset.delete(f"{key} IN ({', '.join(map(str, keys))})")


def memory_context(
    tables: Sequence[TwiceStored], config: SessionConfig | None = None
) -> SessionContext:
    """Plain DataFusion over the rows in memory: the oracle."""
    context = SessionContext(config)
    for table in tables:
        none = pa.RecordBatch.from_pylist([], schema=table.rows.schema)
        context.register_record_batches(table.name, [table.rows.to_batches() or [none]])
    return context


def plan_text(frame: DataFrame) -> str:
    """What `explain()` prints for `frame`."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        frame.explain()
    return printed.getvalue()


def index_scans(frame: DataFrame) -> tuple[str, ...]:
    """What EXPLAIN says of the indexes that serve `frame`, once for each scan of the physical plan.

    Empty where none does.
    """
    _logical, _, physical = plan_text(frame).partition("physical_plan")
    return tuple(line.strip(" |+-") for line in physical.splitlines() if "IndexScan:" in line)


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two answers to one statement compare.

    `ordered` where the statement orders totally, so that rows must come in the same order.
    `rounded` where it aggregates floats: their last digits depend on the order of summing.
    Everything else is compared bit by bit: -0.0 is not 0.0, and NaN is NaN.
    """

    ordered: bool = False
    rounded: bool = False

    def difference(self, actual: pa.Table, expected: pa.Table) -> str | None:
        """What differs, in words, or None. Names, types and nullability count.

        Of two answers without rows only names and types do: DataFusion gives them the schema
        that the plan declares or, where an empty batch came, that of the batch.
        """
        if not actual.num_rows and not expected.num_rows:
            expected = expected.cast(_nullable(expected.schema))
            actual = actual.cast(_nullable(actual.schema))
        if not actual.schema.equals(expected.schema):
            return f"schema\n{actual.schema}\nexpected\n{expected.schema}"
        got, wanted = self._rows(actual), self._rows(expected)
        if self.ordered and got != wanted:
            at = next(
                (i for i, (g, w) in enumerate(zip(got, wanted, strict=False)) if g != w),
                min(len(got), len(wanted)),
            )
            return (
                f"row {at} of {len(wanted)} in order: {got[at : at + 1]}, "
                f"expected {wanted[at : at + 1]}; {len(got)} rows came"
            )
        missing = Counter(wanted) - Counter(got)
        surplus = Counter(got) - Counter(wanted)
        if missing or surplus:
            return (
                f"{len(got)} rows, expected {len(wanted)}; "
                f"missing {missing.total()}: {list(missing)[:3]}; "
                f"too many {surplus.total()}: {list(surplus)[:3]}"
            )
        return None

    def assert_equal(self, actual: DataFrame, expected: DataFrame, what: str) -> None:
        """Both frames declare one schema and give one answer, or the test fails on `what`."""
        declared, wanted = actual.schema(), expected.schema()
        assert declared.equals(wanted), f"{what}\ndeclares\n{declared}\nexpected\n{wanted}"
        difference = self.difference(actual.to_arrow_table(), expected.to_arrow_table())
        assert difference is None, f"{what}\n{difference}"

    def _rows(self, table: pa.Table) -> list[tuple[object, ...]]:
        columns = [[self._value(v) for v in column.to_pylist()] for column in table.columns]
        return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows

    def _value(self, value: object) -> object:
        match value:
            case float():
                return self._float(value)
            case dict():
                return tuple((key, self._value(item)) for key, item in value.items())
            case list() | tuple():
                return tuple(self._value(item) for item in value)
            case None | bool() | int() | str() | bytes() | Decimal():
                return value
            case date() | datetime() | time() | timedelta():
                return value
            case _:
                return repr(value)

    def _float(self, value: float) -> object:
        if math.isnan(value):
            return "NaN"
        if self.rounded:
            return float(f"{value:.10g}") + 0.0
        return struct.pack("<d", value)


@dataclass(frozen=True, slots=True)
class Failed:
    """A statement that DataFusion refuses, when it plans or when it runs."""

    why: str


def assert_same_answer(statement: str, session: SessionContext, memory: SessionContext) -> None:
    """A statement, unordered, gives in `session` what it gives in `memory`, failures included."""
    expected, actual = _answer(statement, memory), _answer(statement, session)
    if isinstance(expected, Failed):
        assert isinstance(actual, Failed), f"{statement}\nfails in DataFusion: {expected.why}"
        return
    assert not isinstance(actual, Failed), f"{statement}\n{actual.why}"
    difference = Comparison().difference(actual, expected)
    assert difference is None, f"{statement}\n{difference}"


def _answer(statement: str, context: SessionContext) -> pa.Table | Failed:
    try:
        return context.sql(statement).to_arrow_table()
    except Exception as error:  # DataFusion raises nothing more special
        return Failed(str(error))


def rows_of(columns: Mapping[str, Sequence[object]], schema: pa.Schema) -> pa.Table:
    """A table of `schema` from Python values by column."""
    return pa.Table.from_pydict({name: list(columns[name]) for name in schema.names}, schema=schema)


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in schema])
