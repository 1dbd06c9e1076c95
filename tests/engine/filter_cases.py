"""Tables over every type that Lance stores, and random predicates on them in SQL."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st


@dataclass(frozen=True)
class Domain:
    """A column's type, the values that it takes and the literals it is compared with."""

    values: pa.Array
    literals: tuple[str, ...]


def _cast(kind: str, *texts: str) -> tuple[str, ...]:
    return tuple(f"arrow_cast('{text}', '{kind}')" for text in texts)


def _integers(kind: pa.DataType, name: str, *values: int) -> Domain:
    return Domain(pa.array(values, kind), _cast(name, *map(str, values)))


def _numbered(kind: pa.DataType, name: str, *values: int) -> Domain:
    """Dates, times and durations, by the numbers that stand for them."""
    width = "Int32" if kind.bit_width == 32 else "Int64"
    return Domain(
        pa.array(values, kind),
        tuple(f"arrow_cast(arrow_cast({v}, '{width}'), '{name}')" for v in values),
    )


def _floats(bits: np.dtype, floats: np.dtype, patterns: list[int], name: str) -> Domain:
    # By bits: negative NaN, -inf, -1, -0.0, 0.0, 1, inf, NaN.
    values = np.array(patterns, bits).view(floats)
    return Domain(pa.array(values), _cast(name, "-1", "-0.0", "0", "1", "inf", "-inf", "NaN", "2"))


def _decimals(kind: pa.DataType, name: str) -> Domain:
    texts = ("-1.20", "0.00", "1.20", "999.99")
    return Domain(pa.array([Decimal(text) for text in texts], kind), _cast(name, *texts))


def _text(kind: pa.DataType, name: str) -> Domain:
    return Domain(
        pa.array(["", "a", "ab", "it's", "a\\b", "é", "%", "null"], kind),
        _cast(name, "", "a", "ab", "it''s", "a\\b", "é", "%", "null"),
    )


def _binary(kind: pa.DataType, name: str) -> Domain:
    values = [b"ab", b"a\0", b"\xff\x00"]
    return Domain(
        pa.array(values, kind), tuple(f"arrow_cast(X'{v.hex()}', '{name}')" for v in values)
    )


DOMAINS: dict[str, Domain] = {
    "i8": _integers(pa.int8(), "Int8", -128, -1, 0, 5, 127),
    "i16": _integers(pa.int16(), "Int16", -(2**15), 0, 5),
    "i32": _integers(pa.int32(), "Int32", -(2**31), 0, 5),
    "i64": _integers(pa.int64(), "Int64", -(2**63), -1, 0, 5, 2**63 - 1),
    "u8": _integers(pa.uint8(), "UInt8", 0, 5, 255),
    "u64": _integers(pa.uint64(), "UInt64", 0, 5, 2**63, 2**64 - 1),
    "f16": _floats(
        np.dtype(np.uint16),
        np.dtype(np.float16),
        [0xFE00, 0xFC00, 0xBC00, 0x8000, 0, 0x3C00, 0x7C00, 0x7E00],
        "Float16",
    ),
    "f32": _floats(
        np.dtype(np.uint32),
        np.dtype(np.float32),
        [0xFFC00000, 0xFF800000, 0xBF800000, 0x80000000, 0, 0x3F800000, 0x7F800000, 0x7FC00000],
        "Float32",
    ),
    "f64": _floats(
        np.dtype(np.uint64),
        np.dtype(np.float64),
        [
            0xFFF8000000000000,
            0xFFF0000000000000,
            0xBFF0000000000000,
            0x8000000000000000,
            0,
            0x3FF0000000000000,
            0x7FF0000000000000,
            0x7FF8000000000000,
        ],
        "Float64",
    ),
    "d128": _decimals(pa.decimal128(20, 2), "Decimal128(20, 2)"),
    "d256": _decimals(pa.decimal256(50, 2), "Decimal256(50, 2)"),
    "text": _text(pa.string(), "Utf8"),
    "large_text": _text(pa.large_string(), "LargeUtf8"),
    "dictionary": _text(pa.dictionary(pa.int32(), pa.string()), "Utf8"),
    "binary": _binary(pa.binary(), "Binary"),
    "large_binary": _binary(pa.large_binary(), "LargeBinary"),
    "fixed_binary": _binary(pa.binary(2), "FixedSizeBinary(2)"),
    "flag": Domain(pa.array([True, False]), ("true", "false")),
    "date32": _numbered(pa.date32(), "Date32", -1, 0, 20_000),
    "date64": _numbered(pa.date64(), "Date64", -86_400_000, 0, 86_400_000),
    "time32": _numbered(pa.time32("ms"), "Time32(Millisecond)", 0, 1, 86_399_999),
    "time64": _numbered(pa.time64("ns"), "Time64(Nanosecond)", 0, 1, 86_399_999_999_999),
    "stamp": _numbered(pa.timestamp("us"), "Timestamp(Microsecond, None)", -1, 0, 1, 2**50),
    "berlin": _numbered(
        pa.timestamp("ms", "Europe/Berlin"),
        'Timestamp(Millisecond, Some("Europe/Berlin"))',
        -1,
        0,
        1_600_000_000_000,
    ),
    "utc": _numbered(pa.timestamp("ns", "UTC"), 'Timestamp(Nanosecond, Some("UTC"))', -1, 0, 2**60),
    "offset": _numbered(pa.timestamp("s", "+02:00"), 'Timestamp(Second, Some("+02:00"))', -1, 0, 9),
    "duration": _numbered(pa.duration("ms"), "Duration(Millisecond)", -1, 0, 5),
    "labels": Domain(
        pa.array([[], ["a"], ["a", None], ["a", "b"], [None]], pa.list_(pa.string())),
        ("['a']", "['a', 'b']", "['a', NULL]"),
    ),
    "vector": Domain(
        pa.array([[0.0, 1.0], [-0.0, 1.0], [float("nan"), 2.0]], pa.list_(pa.float32(), 2)),
        ("arrow_cast([0.0, 1.0], 'FixedSizeList(2, Float32)')",),
    ),
    "pair": Domain(
        pa.array(
            [{"x": 1, "y": "a"}, {"x": None, "y": "b"}, {"x": 1, "y": None}],
            pa.struct([("x", pa.int64()), ("y", pa.string())]),
        ),
        ("named_struct('x', 1, 'y', 'a')",),
    ),
    "nothing": Domain(pa.nulls(1), ("NULL",)),
}

# A second column of the same values, to compare columns with one another.
COLUMNS = {**DOMAINS, **{f"{name}_2": domain for name, domain in DOMAINS.items()}}


@st.composite
def tables(draw: st.DrawFn, min_rows: int = 1, max_rows: int = 25) -> pa.Table:
    """All columns, with NULLs, and the row number as `n`."""
    rows = draw(st.integers(min_rows, max_rows))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    columns: dict[str, pa.Array] = {"n": pa.array(np.arange(rows))}
    for name, domain in COLUMNS.items():
        chosen = random.integers(0, len(domain.values), rows)
        null = random.random(rows) < draw(st.sampled_from([0.0, 0.2, 0.9]))
        columns[name] = domain.values.take(pa.array(chosen, mask=null))
    return pa.table(columns)


def predicates(names: list[str], depth: int = 2) -> st.SearchStrategy[str]:
    """Predicates in SQL on some of the columns, as deep as `depth`."""
    leaf = st.sampled_from(names).flatmap(_test_of)
    if depth == 0:
        return leaf
    inner = predicates(names, depth - 1)
    return st.one_of(
        leaf,
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda t: f"({' '.join(t)})"),
        inner.map(lambda p: f"NOT ({p})"),
    )


def _test_of(name: str) -> st.SearchStrategy[str]:
    literal = st.sampled_from(DOMAINS[name].literals)
    operator = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
    negation = st.sampled_from(["", "NOT "])
    tests = [
        st.tuples(st.just(name), operator, literal).map(" ".join),
        st.tuples(literal, operator, st.just(name)).map(" ".join),
        st.tuples(st.just(name), operator, st.just(f"{name}_2")).map(" ".join),
        negation.map(lambda word: f"{name} IS {word}NULL"),
        st.tuples(negation, literal, literal).map(
            lambda t: f"{name} {t[0]}BETWEEN {t[1]} AND {t[2]}"
        ),
        st.tuples(negation, st.lists(literal, min_size=1, max_size=6)).map(
            lambda t: f"{name} {t[0]}IN ({', '.join(t[1])})"
        ),
        st.tuples(negation, st.lists(literal, min_size=1, max_size=5)).map(
            lambda t: f"{name} {t[0]}IN (NULL, {', '.join(t[1])})"
        ),
    ]
    if name == "flag":
        tests += [
            st.just("flag"),
            st.just("NOT flag"),
            st.just("flag = (i64 > 0)"),
            st.sampled_from(["true", "false", "NULL", "1 = 1"]),
        ]
    return st.one_of(tests)
