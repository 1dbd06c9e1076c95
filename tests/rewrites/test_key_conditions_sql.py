"""Literals as users write them: DataFusion chooses the casts, and conditions give its answer."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence

import pyarrow as pa
import pytest
from datafusion import DataFrame, SessionContext
from datafusion.expr import Expr, Filter

from datafusion_lance.indexes.list_element.key_encoding import KeyCodec, key_codec
from datafusion_lance.indexes.list_element.key_range import Between, In
from datafusion_lance.rewrites.conjunction import conjuncts, disjuncts
from datafusion_lance.rewrites.key_conditions import compared_with, equal_to

NOON = datetime.datetime(2024, 1, 1, 12)
NEW_YEAR = datetime.datetime(2024, 1, 1)
DAYS = [datetime.date(1969, 12, 31), datetime.date(2023, 12, 31), datetime.date(2024, 1, 1)]
TIMES = [
    NEW_YEAR,
    NOON,
    NEW_YEAR - datetime.timedelta(microseconds=1),
    datetime.datetime(1960, 1, 1),
]
WHOLE = [0, 1, 2, 3, 5, 100, 127]

KEYS: dict[str, Sequence[object]] = {
    "bool": [False, True],
    "int8": [*WHOLE, -1, -128],
    "int16": [*WHOLE, -1, 300],
    "int32": [*WHOLE, -1, 300, 2**31 - 1],
    "int64": [*WHOLE, -1, 300, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)],
    "uint8": [*WHOLE, 255],
    "uint16": [*WHOLE, 300],
    "uint32": [*WHOLE, 300, 2**32 - 1],
    "uint64": [*WHOLE, 300, 2**53, 2**53 + 1, 2**63, 2**64 - 1],
    "float": [0.0, -0.0, 0.5, 0.9, 1.0, 1.1, 2.5, -1.0, math.inf, -math.inf, math.nan],
    "double": [0.0, -0.0, 0.5, 0.9, 1.0, 1.1, 2.5, -1.0, math.inf, -math.inf, math.nan],
    "date32:day": DAYS,
    "date64:ms": DAYS,
    "timestamp:s:-": TIMES,
    "timestamp:us:-": TIMES,
    "timestamp:ns:-": TIMES,
    "timestamp:us:UTC": TIMES,
    "timestamp:ms:Europe/Berlin": TIMES,
    "timestamp:us:+02:00": TIMES,
    "string": ["", "a", "ab", "b", "1", "é", "\U0001f600"],
    "large_string": ["", "a", "ab", "b"],
    "binary": [b"", b"a", b"ab", b"\xff", b"b"],
    "large_binary": [b"", b"a", b"\xff"],
}

NUMBERS = [
    *("k = 1", "k > 0.9", "0.9 < k", "k >= 2.5", "k < 2.5", "k <= -0.5", "k = 2.5", "k = 1e3"),
    *("k = 300", "k > 300", "k < 300", "k = -1", "k > -1", "k IN (1, 2, 3)", "k IN (1, 2.5)"),
    *("k IN (1, 2.5, 3, 4.5, 100, 300)", "k = '1'", "k < CAST(2 AS SMALLINT)", "k = 0.0"),
    *("k = -0.0", "k = 18446744073709551615", "k < 9007199254740993", "k = 9007199254740992.0"),
    *("k > 9007199254740992.0", "NOT (k <> 5)", "k = 1 OR k = 3", "CAST(k AS DOUBLE) > 1.5"),
    *("CAST(k AS REAL) > 1.1", "k > CAST(1.1 AS REAL)", "k < 1e400", "k > -1e400"),
]
DECIMALS = [
    *("k = CAST('1.00' AS DECIMAL(5,2))", "k = CAST('1.10' AS DECIMAL(5,2))"),
    *("k > CAST('1.10' AS DECIMAL(5,2))", "k < CAST('2.5' AS DECIMAL(40,2))"),
    *("k IN (CAST('1.00' AS DECIMAL(5,2)), 3)", "CAST(k AS DECIMAL(30,5)) >= 1.5"),
]
MOMENTS = [
    *("k = '2024-01-01'", "k < DATE '2024-01-01'", "k >= DATE '2024-01-01'", "'2024-01-01' <= k"),
    *("k = DATE '2024-01-01'", "k IN ('2024-01-01', '2023-12-31')", "k <= '2024-01-01T12:00:00'"),
    *("k < TIMESTAMP '2024-01-01 12:00:00'", "k = TIMESTAMP '2024-01-01 12:00:00'"),
    *("k >= TIMESTAMP '2024-01-01 00:00:00.000000001'", "k < now()"),
    "k = arrow_cast('2024-01-01', 'Date64')",
    "k > arrow_cast('2024-01-01T12:00:00', 'Timestamp(us, \"UTC\")')",
    "k = arrow_cast('2024-01-01T02:00:00', 'Timestamp(us, \"+02:00\")')",
    "k <= arrow_cast('2024-01-01T12:00:00', 'Timestamp(ns, \"Europe/Berlin\")')",
]
TEXT = [
    *("k = 'a'", "k > 'a'", "k <= 'a'", "k IN ('a', 'b')", "k IN ('a', 'b', 'c', 'd', 'é')"),
    *("k = X'61'", "k > X'61'", "k < X'ff'", "k = X'ff'", "k = arrow_cast('a', 'Utf8View')"),
]

CASES = [
    *((name, sql) for name in KEYS if name.removeprefix("u")[:3] == "int" for sql in NUMBERS),
    *((name, sql) for name in KEYS if name.removeprefix("u")[:3] == "int" for sql in DECIMALS),
    *((name, sql) for name in ("float", "double") for sql in NUMBERS),
    *((name, sql) for name in ("float", "double") for sql in ("k = 'NaN'", "k > 'inf'")),
    *((name, sql) for name in KEYS if name[:4] in ("date", "time") for sql in MOMENTS),
    *((name, sql) for name in KEYS if "string" in name or "binary" in name for sql in TEXT),
    *(
        ("bool", sql)
        for sql in ("k", "NOT k", "k = TRUE", "k IN (TRUE)", "k > FALSE", "k <= FALSE")
    ),
    *(("timestamp:ns:-", f"CAST(k AS DATE) {op} '2024-01-01'") for op in ("=", "<", ">=")),
    *(("timestamp:us:-", f"CAST(k AS DATE) {op} '2024-01-01'") for op in ("=", "<", ">=")),
    ("timestamp:us:-", "EXTRACT(YEAR FROM k) = 2024"),
    ("timestamp:us:-", "CAST(k AS BIGINT) > 5"),
    ("timestamp:us:-", "CAST(k AS TIMESTAMP) < '2024-01-01'"),
]


@pytest.mark.parametrize(("name", "sql"), CASES)
def test_a_literal_finds_what_datafusion_finds(name: str, sql: str) -> None:
    codec = key_codec(name)
    assert codec is not None
    keys = pa.array([*KEYS[name], None], codec.arrow_type)
    context = SessionContext()
    rows = pa.table({"i": range(len(keys)), "k": keys})
    context.register_record_batches("t", [rows.to_batches()])
    plan = context.sql(f"SELECT i FROM t WHERE {sql}").optimized_logical_plan()
    found = set(context.create_dataframe_from_logical_plan(plan).to_pydict()["i"])
    while not isinstance(node := plan.to_variant(), Filter):
        (plan,) = plan.inputs()
    scan = context.create_dataframe_from_logical_plan(plan.inputs()[0])
    predicate = Expr(node.predicate())

    encoded = codec.encode(keys).to_pylist()
    matches = set(range(len(keys)))
    for conjunct in conjuncts(predicate):
        sides = [bind(codec, side, scan) for side in disjuncts(conjunct)]
        matches &= {i for i, e in enumerate(encoded) if any(holds(side, e) for side in sides)}
    assert matches == found, predicate.canonical_name()


def bind(codec: KeyCodec, conjunct: Expr, scan: DataFrame) -> In | Between:
    """The condition of one comparison of `k`."""
    bound: In | Between | None
    match conjunct.variant_name():
        case "Column":
            bound = equal_to(codec, [], pa.array([True]))
        case "Not":
            bound = equal_to(codec, [], pa.array([False]))
        case "InList":
            tested, *literals = conjunct.rex_call_operands()
            values = [literal.python_value() for literal in literals]
            array = pa.array(values, values[0].type)
            bound = equal_to(codec, casts_of(tested, scan), array, partial=True)
        case _:
            left, right = conjunct.rex_call_operands()
            operator = conjunct.rex_call_operator()
            if left.variant_name() == "Literal":
                left, right = right, left
                operator = operator.translate(str.maketrans("<>", "><"))
            value, casts = right.python_value(), casts_of(left, scan)
            if operator == "=":
                bound = equal_to(codec, casts, pa.array([value], value.type), partial=True)
            else:
                bound = compared_with(codec, casts, operator, value, partial=True)
    assert bound is not None, conjunct.canonical_name()
    return bound


def casts_of(tested: Expr, scan: DataFrame) -> list[pa.DataType]:
    """The types that the key is cast to, from the innermost on."""
    if tested.variant_name() == "Column":
        return []
    assert tested.variant_name() == "Cast"
    outermost = scan.select(tested.alias("x")).schema().field("x").type
    return [*casts_of(tested.rex_call_operands()[0], scan), outermost]


def holds(condition: In | Between, encoded: bytes) -> bool:
    if isinstance(condition, In):
        return encoded in condition.encoded
    return condition.low <= encoded < condition.high
