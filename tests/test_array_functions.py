"""Every way to write an array predicate gives DataFusion's answer, on every element type.

Each predicate of the corpus here stands alone and under every test that SQL has, over a table
with NULL lists, NULL elements, empty lists, deleted rows and a fragment without index. Where it
fails in plain DataFusion, it fails here too.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa
import pytest
from datafusion import Expr, SessionContext, col, lit
from datafusion import functions as f

from datafusion_lance.engine import LanceSessionContext

from .oracle_rows import (
    Comparison,
    TwiceStored,
    assert_same_answer,
    index_scans,
    memory_context,
    store_twice,
)

NAN = float("nan")


def lists(element: pa.DataType, *labels: object, large: bool = False) -> pa.Array:
    """28 lists over the labels: NULL, empty, of NULL alone, of all, duplicates, pairs, ones."""
    first, last = labels[0], labels[-1]
    of_each: list[list[object]] = [[label] for label in labels]
    pairs: list[list[object]] = [[a, b] for a, b in pairwise(labels)]
    values = [
        None,
        [],
        [None],
        list(labels),
        [first, first, last],
        [None, first],
        [last, None, None],
        *of_each,
        *pairs,
    ]
    values = (values * 28)[:28]
    return pa.array(values, pa.large_list(element) if large else pa.list_(element))


def typed_rows() -> pa.Table:
    """One list column for each element type; the columns are named after the types."""
    noon = dt.datetime(2024, 3, 31, 12)
    return pa.table(
        {
            "key": pa.array(range(28), pa.int64()),
            "word": pa.array(["a", "", "night", None] * 7),
            "number": pa.array([1, 300, None, -1] * 7, pa.int64()),
            "text": lists(pa.string(), "night", "rain", "", "1", "NULL", "1.50"),
            "large_text": lists(pa.large_string(), "night", "rain", "", large=True),
            "int8": lists(pa.int8(), 0, 1, -1, 127, -128, 44),
            "int32": lists(pa.int32(), 0, 1, 300, -(2**31), 16777217, large=True),
            "int64": lists(pa.int64(), 0, 1, 2**53, 2**53 + 1, -(2**63)),
            "uint8": lists(pa.uint8(), 0, 1, 255, 44),
            "uint64": lists(pa.uint64(), 0, 1, 2**63, 2**64 - 1),
            "float32": lists(pa.float32(), 0.0, -0.0, 0.9, 1.0, NAN, 16777216.0),
            "float64": lists(pa.float64(), 0.0, -0.0, 0.9, 1.0, NAN, float("inf")),
            "flag": lists(pa.bool_(), True, False),
            "day": lists(pa.date32(), dt.date(2024, 3, 31), dt.date(1969, 12, 31)),
            "moment": lists(pa.timestamp("us"), noon, noon.replace(microsecond=1)),
            "zoned": lists(pa.timestamp("ms", "UTC"), noon, noon.replace(hour=10)),
            "money": lists(pa.decimal128(10, 2), Decimal("1.50"), Decimal("0.00"), Decimal(-3)),
            "blob": lists(pa.binary(), b"night", b"", b"\x00\xff"),
        }
    )


INDEXED = tuple(name for name in typed_rows().schema.names if name not in ("key", "word", "number"))


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> TwiceStored:
    rows = typed_rows()
    more = rows.set_column(0, "key", pa.array(range(100, 128), pa.int64()))
    return store_twice(
        tmp_path_factory.mktemp("typed"),
        "t",
        rows,
        key="key",
        rows_per_fragment=11,
        indexed=INDEXED,
        deleted_before=(8, 9),
        deleted_after=(3, 20),
        appended=more,
    )


@pytest.fixture(scope="module")
def memory(typed: TwiceStored) -> SessionContext:
    return memory_context([typed])


@pytest.fixture(scope="module")
def indexed(typed: TwiceStored) -> LanceSessionContext:
    context = LanceSessionContext()
    context.register_lance("t", str(typed.path))
    return context


# Every name and operator; the index serves each of them.
SPELLINGS = (
    "array_has(text, 'night')",
    "list_has(text, 'night')",
    "array_contains(text, 'night')",
    "list_contains(text, 'night')",
    "'night' = ANY(text)",
    "array_has_any(text, ['night', 'rain'])",
    "list_has_any(text, ['night', 'rain'])",
    "arrays_overlap(text, ['night', 'rain'])",
    "array_has_all(text, ['night', 'rain'])",
    "list_has_all(text, ['night', 'rain'])",
    "text @> ['night', 'rain']",
    "['night', 'rain'] <@ text",
    "array_has_any(['night', 'rain'], text)",
    "arrays_overlap(make_array('night'), text)",
    "array_has_all(text, make_array('night'))",
    "array_has(text, '')",
    "array_has(text, 'no such label')",
    "array_has(large_text, 'night')",
    "array_has_any(large_text, ['night', 'rain'])",
    "array_has_all(large_text, ['night', 'rain'])",
    "array_has(flag, true)",
    "array_has_all(flag, [true, false])",
    "array_has(blob, X'00ff')",
)

# Needles of other types: what DataFusion casts, and which elements it then finds.
NEEDLES = (
    "array_has(text, NULL)",
    "array_has(text, CAST(NULL AS VARCHAR))",
    "array_has(NULL, 'night')",
    "array_has_any(text, NULL)",
    "array_has_all(text, NULL)",
    "array_has_any(text, [NULL])",
    "array_has_all(text, [NULL])",
    "array_has_any(text, ['zz', NULL])",
    "array_has_any(text, ['night', NULL])",
    "array_has_all(text, ['night', NULL])",
    "array_has_any([NULL], text)",
    "array_has_any(['zz', NULL], text)",
    "array_has_all(['night', 'rain', NULL], text)",
    "array_has_any(text, [])",
    "array_has_all(text, [])",
    "array_has_any([], text)",
    "array_has_all([], text)",
    "text @> []",
    "text <@ []",
    "array_has_any(text, make_array())",
    "array_has_any(text, ['night', 'night', 'night'])",
    "array_has_all(text, ['night', 'night'])",
    "array_has_any(large_text, [])",
    "array_has_all(large_text, [])",
    "array_has_any(large_text, [NULL])",
    "array_has_all(large_text, ['night', NULL])",
    "array_has_any(int8, [NULL, 1])",
    "array_has_any(int8, [NULL])",
    "array_has_all(int8, [NULL, 0])",
    "array_has_any(int8, [])",
    "array_has_all(int8, [])",
    "array_has(text, 1)",
    "array_has(text, 1.5)",
    "array_has_any(text, [1])",
    "array_has(int8, 1)",
    "array_has(int8, 300)",
    "array_has(int8, -129)",
    "array_has(int8, 1.0)",
    "array_has(int8, 1.5)",
    "array_has(int8, '1')",
    "array_has(int8, 'night')",
    "array_has(int8, true)",
    "array_has_any(int8, [1, 300])",
    "array_has_any(int8, [300, 301])",
    "array_has_all(int8, [1, 300])",
    "array_has_all(int8, [0, 1])",
    "array_has_any(int8, [1.0, 0.5])",
    "array_has_any(int8, ['1', '0'])",
    "array_has(int8, arrow_cast(1, 'UInt8'))",
    "array_has(int8, arrow_cast(1, 'UInt64'))",
    "array_has(int8, CAST(1 AS DECIMAL(20, 0)))",
    "array_has(int8, CAST(1.5 AS DECIMAL(20, 1)))",
    "array_has(int32, 300)",
    "array_has(int32, 16777217)",
    "array_has(int32, arrow_cast(16777216, 'Float32'))",
    "array_has(int32, 16777217.0)",
    "array_has(int32, 5000000000)",
    "array_has_any(int32, [5000000000, 1])",
    "array_has_all(int32, [0, 1, 300])",
    "array_has(int64, 9007199254740993)",
    "array_has(int64, 9007199254740992.0)",
    "array_has(int64, arrow_cast(18446744073709551615, 'UInt64'))",
    "array_has(int64, 99999999999999999999)",
    "array_has(uint8, 255)",
    "array_has(uint8, -1)",
    "array_has(uint8, 256)",
    "array_has(uint64, 18446744073709551615)",
    "array_has(uint64, 9223372036854775808)",
    "array_has(uint64, -1)",
    "array_has(uint64, 0)",
    "array_has(uint64, 18446744073709551616.0)",
    "array_has(float32, 0.9)",
    "array_has(float32, arrow_cast(0.9, 'Float32'))",
    "array_has(float32, 0.0)",
    "array_has(float32, -0.0)",
    "array_has(float32, 1)",
    "array_has(float32, 16777217)",
    "array_has(float32, CAST('NaN' AS DOUBLE))",
    "array_has(float32, CAST('NaN' AS FLOAT))",
    "array_has_any(float32, [0.9, 1.0])",
    "array_has_all(float32, [1.0, 0.0])",
    "array_has(float64, 0.9)",
    "array_has(float64, 0.0)",
    "array_has(float64, -0.0)",
    "array_has(float64, 1)",
    "array_has(float64, CAST('NaN' AS DOUBLE))",
    "array_has(float64, -CAST('NaN' AS DOUBLE))",
    "array_has(float64, CAST('inf' AS DOUBLE))",
    "array_has(float64, '0.9')",
    "array_has(float64, CAST(0.9 AS DECIMAL(4, 1)))",
    "array_has_any(float64, [0.0])",
    "array_has_any(float64, [-0.0, CAST('NaN' AS DOUBLE)])",
    "array_has_all(float64, [0.0, -0.0])",
    "array_has(flag, 1)",
    "array_has(flag, 'true')",
    "array_has(flag, NULL)",
    "array_has(day, DATE '2024-03-31')",
    "array_has(day, '2024-03-31')",
    "array_has(day, 'no day')",
    "array_has(day, TIMESTAMP '2024-03-31 00:00:00')",
    "array_has(day, TIMESTAMP '2024-03-31 12:00:00')",
    "array_has_any(day, ['2024-03-31', '1969-12-31'])",
    "array_has_any(day, [DATE '2024-03-31', NULL])",
    "array_has(moment, TIMESTAMP '2024-03-31 12:00:00')",
    "array_has(moment, TIMESTAMP '2024-03-31 12:00:00.000001')",
    "array_has(moment, TIMESTAMP '2024-03-31 12:00:00.000000001')",
    "array_has(moment, '2024-03-31 12:00:00')",
    "array_has(moment, '2024-03-31T12:00:00')",
    "array_has(moment, DATE '2024-03-31')",
    "array_has(moment, TIMESTAMPTZ '2024-03-31 12:00:00+00:00')",
    "array_has_any(moment, ['2024-03-31 12:00:00'])",
    "array_has(zoned, TIMESTAMP '2024-03-31 12:00:00')",
    "array_has(zoned, TIMESTAMPTZ '2024-03-31 12:00:00+02:00')",
    "array_has(zoned, '2024-03-31T12:00:00+02:00')",
    "array_has(zoned, '2024-03-31T12:00:00Z')",
    "array_has(zoned, arrow_cast('2024-03-31T12:00:00Z', 'Timestamp(ms, \"Europe/Oslo\")'))",
    "array_has(money, 1.5)",
    "array_has(money, CAST(1.50 AS DECIMAL(10, 2)))",
    "array_has(money, CAST(1.505 AS DECIMAL(10, 3)))",
    "array_has(money, CAST(1.5 AS DECIMAL(4, 1)))",
    "array_has(money, -3)",
    "array_has(money, '1.50')",
    "array_has_any(money, [1.5, 0])",
    "array_has_all(money, [1.5, 0])",
    "array_has(blob, 'night')",
    "array_has_any(blob, ['night', ''])",
    "array_has(blob, X'6e69676874')",
    "array_has(text, X'6e69676874')",
    "array_has(text, arrow_cast('night', 'Utf8View'))",
    "array_has(text, arrow_cast('night', 'LargeUtf8'))",
    "array_has(text, arrow_cast('night', 'Dictionary(Int32, Utf8)'))",
    "array_has_any(text, arrow_cast(['night'], 'LargeList(Utf8)'))",
    "array_has_any(text, arrow_cast(['night'], 'FixedSizeList(1, Utf8)'))",
    "array_has_any(large_text, arrow_cast(['night'], 'LargeList(LargeUtf8)'))",
)

# The column is cast, computed on, or the needle is not a literal.
EXPRESSIONS = (
    "'night' <> ALL(text)",
    "'night' = ALL(text)",
    "array_has(arrow_cast(text, 'List(Utf8View)'), 'night')",
    "array_has(arrow_cast(text, 'List(LargeUtf8)'), 'night')",
    "array_has(arrow_cast(text, 'LargeList(Utf8)'), 'night')",
    "array_has_any(arrow_cast(text, 'LargeList(Utf8)'), ['night', 'rain'])",
    "array_has(arrow_cast(int8, 'List(Int64)'), 300)",
    "array_has(arrow_cast(int8, 'List(Int64)'), 1)",
    "array_has(arrow_cast(int8, 'List(Utf8)'), '1')",
    "array_has(arrow_cast(int8, 'List(Utf8)'), '01')",
    "array_has(arrow_cast(int32, 'LargeList(Int8)'), 44)",
    "array_has(arrow_cast(int32, 'LargeList(Boolean)'), true)",
    "array_has(arrow_cast(float32, 'List(Float64)'), 0.9)",
    "array_has(arrow_cast(float64, 'List(Float32)'), arrow_cast(0.9, 'Float32'))",
    "array_has(arrow_cast(float64, 'List(Int64)'), 0)",
    "array_has(arrow_cast(moment, 'List(Timestamp(s))'), TIMESTAMP '2024-03-31 12:00:00')",
    "array_has(arrow_cast(moment, 'List(Date32)'), DATE '2024-03-31')",
    "array_has(arrow_cast(money, 'List(Float64)'), 1.5)",
    "array_has(arrow_cast(money, 'List(Int64)'), 1)",
    "array_has(arrow_cast(int64, 'List(Float64)'), 9007199254740992.0)",
    "array_has(text, word)",
    "array_has(int64, number)",
    "array_has(int8, number)",
    "array_has(text, lower('NIGHT'))",
    "array_has(text, 'ni' || 'ght')",
    "array_has(int8, 1 + 0)",
    "array_has(text, CASE WHEN number > 0 THEN 'night' ELSE 'rain' END)",
    "array_has_any(text, [word, 'rain'])",
    "array_has_all(text, [word])",
    "array_has_any(text, text)",
    "array_has_any(text, string_to_array('night,rain', ','))",
    "array_has_all(['night', 'rain', '', '1', 'NULL'], text)",
    "text <@ ['night', 'rain']",
    "array_has(['night', 'rain'], word)",
    "array_has(array_append(text, 'rain'), 'rain')",
    "array_has(array_distinct(text), 'night')",
    "array_has(coalesce(text, ['night']), 'night')",
    "array_has(text[1:1], 'night')",
    "array_position(text, 'night') IS NOT NULL",
    "text[1] = 'night'",
    "text IS NULL",
    "text IS NOT NULL",
    "text = ['night']",
    "cardinality(text) = 0",
    "array_has(text, 'night') = true",
    "array_has(text, 'night') = false",
    "array_has(text, 'night') <> true",
    "array_has(text, 'night') = array_has(text, 'rain')",
    "array_has(text, 'night') IS DISTINCT FROM array_has(text, 'rain')",
    "array_has(text, 'night') IS NOT DISTINCT FROM NULL",
    "array_has(text, 'night') IN (true, NULL)",
    "coalesce(array_has(text, 'night'), true)",
    "coalesce(array_has(text, 'night'), false)",
    "nullif(array_has(text, 'night'), false)",
    "CASE WHEN array_has(text, 'night') THEN array_has(text, 'rain') ELSE word = 'a' END",
    "CASE WHEN array_has(text, 'night') THEN false ELSE true END",
    "CAST(array_has(text, 'night') AS INT) = 1",
    "array_has(text, 'night') > array_has(text, 'rain')",
    "array_has(text, 'night') AND array_has(text, 'rain')",
    "array_has(text, 'night') AND NOT array_has(text, 'rain')",
    "array_has(text, 'night') OR array_has(text, 'rain')",
    "array_has(text, 'night') AND array_has(text, NULL)",
    "array_has(text, 'night') OR array_has(text, NULL)",
    "array_has(text, 'night') OR text IS NULL",
    "array_has(text, 'night') OR NULL",
    "array_has(text, 'night') AND NULL",
    "array_has(text, 'night') AND true",
    "array_has(text, 'night') AND NOT array_has(text, 'night')",
    "array_has(text, 'night') OR NOT array_has(text, 'night')",
    "NOT (array_has(text, 'night') OR array_has(int8, 1)) AND number > 0",
    "array_has(text, 'night') AND number > 0",
    "array_has(text, 'night') OR number > 0",
    "(array_has(text, 'night') OR number > 0) AND array_has(int8, 0)",
    "array_has(text, 'night') AND word = 'a' OR array_has(text, 'rain') AND word = ''",
    "array_has(text, 'night') OR array_has_all(int8, [1, 300]) OR array_has_any(float64, [0.9])",
    "array_has(text, 'night') OR array_has(text, word)",
    "array_has(text, 'night') AND array_has(text, word)",
    "array_has_any(text, ['night']) AND array_has_any(text, ['rain'])",
    "array_has_any(text, ['night']) AND array_has_all(text, ['rain', ''])",
)

UNDER = (
    "{}",
    "NOT ({})",
    "({}) IS TRUE",
    "({}) IS NOT TRUE",
    "({}) IS FALSE",
    "({}) IS NOT FALSE",
    "({}) IS UNKNOWN",
    "({}) IS NOT UNKNOWN",
    "({}) IS NULL",
    "({}) IS NOT NULL",
    "NOT (({}) IS TRUE)",
    "(({}) IS NULL) IS FALSE AND word IS NOT NULL",
    "NOT (({}) AND array_has(flag, true))",
    "({}) OR array_has(flag, true)",
)


@pytest.mark.parametrize("predicate", SPELLINGS)
def test_spelling_under_every_test(
    predicate: str, indexed: LanceSessionContext, memory: SessionContext
) -> None:
    for under in UNDER:
        assert_same_answer(f"SELECT key FROM t WHERE {under.format(predicate)}", indexed, memory)


@pytest.mark.parametrize("predicate", [*NEEDLES, *EXPRESSIONS])
def test_predicate_in_each_of_its_three_values(
    predicate: str, indexed: LanceSessionContext, memory: SessionContext
) -> None:
    for under in ("{}", "NOT ({})", "({}) IS NULL", "({}) OR array_has(flag, true)"):
        assert_same_answer(f"SELECT key FROM t WHERE {under.format(predicate)}", indexed, memory)


@pytest.mark.parametrize("predicate", [*SPELLINGS, *NEEDLES, *EXPRESSIONS])
def test_predicate_as_a_value(
    predicate: str, indexed: LanceSessionContext, memory: SessionContext
) -> None:
    assert_same_answer(
        f"SELECT key, {predicate} AS p FROM t WHERE array_has(int8, 0) OR array_has(flag, false)",
        indexed,
        memory,
    )


@pytest.mark.parametrize("predicate", SPELLINGS)
def test_every_spelling_is_served(predicate: str, indexed: LanceSessionContext) -> None:
    for under in ("{}", "NOT ({})", "({}) IS NULL", "({}) IS NOT TRUE"):
        assert index_scans(indexed.sql(f"SELECT key FROM t WHERE {under.format(predicate)}"))


SERVED_NEEDLES = (
    "array_has(int8, 300)",
    "array_has(int8, 1.0)",
    "array_has_any(int8, [1, 300])",
    "array_has_all(int8, [1, 300])",
    "array_has_any(text, ['zz', NULL])",
    "array_has(float32, 0.9)",
    "array_has(float64, -0.0)",
    "array_has(day, DATE '2024-03-31')",
    "array_has(moment, TIMESTAMP '2024-03-31 12:00:00')",
    "array_has_any(money, [1.5, 0])",
    "array_has(arrow_cast(text, 'List(Utf8View)'), 'night')",
    "array_has(text, 'ni' || 'ght')",
)


@pytest.mark.parametrize("predicate", SERVED_NEEDLES)
def test_coerced_needles_are_served(predicate: str, indexed: LanceSessionContext) -> None:
    assert index_scans(indexed.sql(f"SELECT key FROM t WHERE {predicate}"))


PARAMETERS = (
    ("array_has(text, $1)", "TEXT", "'night'"),
    ("array_has(text, $1)", "TEXT", "NULL"),
    ("array_has(int8, $1)", "BIGINT", "1"),
    ("array_has(int8, $1)", "BIGINT", "300"),
    ("array_has(int8, $1)", "DOUBLE", "1.0"),
    ("array_has(float32, $1)", "DOUBLE", "0.9"),
    ("array_has_any(text, ['rain', $1])", "TEXT", "'night'"),
    ("array_has_all(text, ['rain', $1])", "TEXT", "NULL"),
    ("NOT array_has_any(int8, [$1])", "SMALLINT", "127"),
    ("$1 = ANY(text)", "TEXT", "'rain'"),
)


@pytest.mark.parametrize(("predicate", "kind", "value"), PARAMETERS)
def test_parameter_of_a_prepared_statement(
    predicate: str,
    kind: str,
    value: str,
    indexed: LanceSessionContext,
    memory: SessionContext,
) -> None:
    for context in (indexed, memory):
        context.sql(f"PREPARE p({kind}) AS SELECT key FROM t WHERE {predicate}").collect()
    try:
        assert_same_answer(f"EXECUTE p({value})", indexed, memory)
    finally:
        for context in (indexed, memory):
            context.sql("DEALLOCATE p").collect()


@pytest.mark.parametrize("value", ["night", None, 1, 1.5, ["night"]])
def test_named_parameter(
    value: object, indexed: LanceSessionContext, memory: SessionContext
) -> None:
    text = "SELECT key FROM t WHERE array_has(text, $label)"
    answers = []
    for context in (indexed, memory):
        try:
            frame = context.sql(text, param_values={"label": value})
            answers.append(sorted(frame.to_pydict()["key"]))
        except Exception:
            answers.append("fails")
    assert answers[0] == answers[1]


CHAINED = (
    f.array_has(col("text"), lit("night")),
    f.list_has(col("text"), lit("night")),
    f.array_contains(col("text"), lit("night")),
    f.list_contains(col("text"), lit("night")),
    f.array_has_any(col("text"), f.make_array(lit("night"), lit("rain"))),
    f.list_has_any(col("text"), f.make_array(lit("night"), lit("rain"))),
    f.arrays_overlap(col("text"), f.make_array(lit("night"))),
    f.array_has_all(col("text"), f.make_array(lit("night"), lit("rain"))),
    f.list_has_all(col("text"), f.make_array(lit("night"))),
    f.array_has(col("int8"), lit(pa.scalar(1, pa.int8()))),
    f.array_has(col("int8"), lit(300)),
    f.array_has(col("float64"), lit(-0.0)),
    f.array_has(col("float64"), lit(NAN)),
    f.array_has(col("day"), lit(pa.scalar(dt.date(2024, 3, 31)))),
    f.array_has(col("money"), lit(pa.scalar(Decimal("1.50"), pa.decimal128(10, 2)))),
    f.array_has(col("text").cast(pa.list_(pa.string_view())), lit("night")),
    f.array_has_any(col("int8"), lit(pa.scalar([1, None], pa.list_(pa.int8())))),
    f.array_has_any(col("text"), lit(pa.scalar([], pa.list_(pa.string())))),
)


@pytest.mark.parametrize("predicate", CHAINED, ids=str)
@pytest.mark.parametrize("negated", [False, True])
def test_predicate_of_a_chain(
    predicate: Expr, negated: bool, indexed: LanceSessionContext, memory: SessionContext
) -> None:
    wanted = ~predicate if negated else predicate
    actual = indexed.table("t").filter(wanted).select("key")
    expected = memory.table("t").filter(wanted).select("key")
    Comparison().assert_equal(actual, expected, str(wanted))
    assert index_scans(actual)
