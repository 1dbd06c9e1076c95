"""Conditions on keys find the keys for which DataFusion's comparison of the cast key is TRUE."""

from __future__ import annotations

import pyarrow as pa
import pytest
from datafusion import SessionContext
from hypothesis import given
from hypothesis import strategies as st

from datafusion_lance.indexes.errors import InvalidArgumentError
from datafusion_lance.indexes.list_element.key_encoding import KeyCodec, key_codec
from datafusion_lance.indexes.list_element.key_range import Between, In
from datafusion_lance.rewrites.key_conditions import (
    OPERATORS,
    compared_with,
    equal_to,
    starting_with,
)

from ..indexes.effort import one_in
from .key_values import arrow_name, bits, bits_of, interesting, of_bits

NUMBERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
TOTAL: list[tuple[str, list[pa.DataType]]] = [
    *((name, []) for name in [*NUMBERS, "bool", "float", "double", "date32:day", "date64:ms"]),
    *((f"timestamp:{unit}:{zone}", []) for unit in ("s", "ns") for zone in ("-", "UTC")),
    *((name, [kind]) for name in NUMBERS for kind in (pa.float32(), pa.float64())),
    *((name, [pa.decimal128(20, 0)]) for name in NUMBERS),
    *((name, [pa.decimal128(35, 15)]) for name in NUMBERS),
    ("int64", [pa.decimal128(22, 2)]),
    ("int32", [pa.decimal256(40, 2)]),
    ("uint64", [pa.decimal128(20, 0), pa.decimal128(35, 15)]),
    ("int8", [pa.decimal128(5, 2)]),
    *((name, [pa.int64()]) for name in ("bool", "int8", "int32", "uint8", "uint32")),
    ("uint8", [pa.uint64()]),
    ("bool", [pa.int32()]),
    ("bool", [pa.float64()]),
    ("int32", [pa.float32(), pa.float64()]),
    ("int8", [pa.int16(), pa.int64(), pa.float64()]),
    ("float", [pa.float64()]),
    ("double", [pa.float32()]),
    ("double", [pa.float32(), pa.float64()]),
    ("date32:day", [pa.date64()]),
    ("date32:day", [pa.timestamp("s")]),
    ("date32:day", [pa.timestamp("ms")]),
    ("date32:day", [pa.int32()]),
    ("date32:day", [pa.int64()]),
    ("date64:ms", [pa.timestamp("ms")]),
    ("date64:ms", [pa.timestamp("s")]),
    ("date64:ms", [pa.int64(), pa.float64()]),
    ("timestamp:ns:-", [pa.date32()]),
    ("timestamp:ns:UTC", [pa.date32()]),
    ("timestamp:ns:-", [pa.timestamp("us")]),
    ("timestamp:ns:-", [pa.timestamp("ns", "UTC")]),
    ("timestamp:us:-", [pa.date64()]),
    ("timestamp:us:-", [pa.timestamp("s")]),
    ("timestamp:us:UTC", [pa.timestamp("us", "Europe/Berlin")]),
    ("timestamp:us:Europe/Berlin", [pa.timestamp("us", "+02:00")]),
    ("timestamp:us:Europe/Berlin", [pa.timestamp("us")]),
    ("timestamp:us:+02:00", [pa.timestamp("ms")]),
    ("timestamp:us:+02:00", [pa.date64()]),
    ("timestamp:us:+02:00", [pa.int64()]),
]
"""Keys and casts of them that never raise."""

RAISING: list[tuple[str, list[pa.DataType]]] = [
    ("int32", [pa.int8()]),
    ("int64", [pa.uint64()]),
    ("uint64", [pa.int64()]),
    ("uint64", [pa.int64(), pa.float64()]),
    ("int64", [pa.decimal128(5, 2)]),
    ("int8", [pa.decimal128(20, 0), pa.decimal128(4, 2)]),
    ("date32:day", [pa.timestamp("us")]),
    ("date32:day", [pa.timestamp("ns")]),
    ("date32:day", [pa.timestamp("ns", "UTC")]),
    ("date64:ms", [pa.timestamp("ns")]),
    ("date64:ms", [pa.date32()]),
    ("date64:ms", [pa.timestamp("s", "UTC")]),
    ("timestamp:s:-", [pa.timestamp("ns")]),
    ("timestamp:s:-", [pa.date64()]),
    *((f"timestamp:{unit}:-", [pa.date32()]) for unit in ("s", "ms", "us")),
    ("timestamp:us:UTC", [pa.date32()]),
    ("timestamp:ms:-", [pa.timestamp("ms", "UTC")]),
    ("timestamp:us:-", [pa.timestamp("ms", "UTC")]),
    ("timestamp:us:Europe/Berlin", [pa.timestamp("ns", "UTC")]),
]
"""Keys and casts of them that raise on some keys."""


def codec_of(name: str) -> KeyCodec:
    codec = key_codec(name)
    assert codec is not None
    return codec


def name_of(case: object) -> str | None:
    return " → ".join(map(str, case)) or "itself" if isinstance(case, list) else None


def castable(keys: pa.Array, casts: list[pa.DataType], first: int = 0) -> list[int]:
    """The positions, from `first` on, of the keys on which DataFusion's casts do not raise."""
    try:
        cast(keys, casts)
    except Exception as error:
        if "error" not in str(error):
            raise
        if len(keys) == 1:
            return []
        half = len(keys) // 2
        left = castable(keys.slice(0, half), casts, first)
        return left + castable(keys.slice(half), casts, first + half)
    return list(range(first, first + len(keys)))


def cast(keys: pa.Array, casts: list[pa.DataType]) -> pa.Array:
    """The keys as DataFusion casts them."""
    return _query({"t": pa.table({"k": keys})}, f"SELECT {_casting(casts)} AS r FROM t")["r"]


def comparisons(
    keys: pa.Array, casts: list[pa.DataType], literals: pa.Array
) -> dict[tuple[str, int], set[int]]:
    """The positions of the keys for which DataFusion's comparison with each literal is TRUE.

    A cast raises on none of the keys.
    """
    # Both are columns, so that the optimizer sees no literal that it could cast instead.
    tables = {
        "t": pa.table({"i": range(len(keys)), "k": keys}),
        "q": pa.table({"j": range(len(literals)), "v": literals}),
    }
    tests = ", ".join(
        f'coalesce({_casting(casts)} {operator} v, false) AS "{operator}"'
        for operator in ("=", *OPERATORS)
    )
    rows = _query(tables, f"SELECT i, j, {tests} FROM t, q")
    i, j = (rows[name].to_numpy() for name in "ij")
    return {
        (operator, n): set(i[rows[operator].to_numpy(zero_copy_only=False) & (j == n)].tolist())
        for operator in ("=", *OPERATORS)
        for n in range(len(literals))
    }


def _casting(casts: list[pa.DataType]) -> str:
    sql = "k"
    for kind in casts:
        sql = f"arrow_cast({sql}, '{arrow_name(kind)}')"
    return sql


def _query(tables: dict[str, pa.Table], sql: str) -> dict[str, pa.Array]:
    context = SessionContext()
    for name, table in tables.items():
        context.register_record_batches(name, [table.to_batches()])
    result = context.sql(sql).to_arrow_table()
    return {name: result[name].combine_chunks() for name in result.column_names}


def finds(condition: In | Between, keys: pa.Array) -> set[int]:
    """The positions of the keys whose encoding is in the condition."""
    codec = condition.codec
    encoded = codec.encode(keys).to_pylist()
    if isinstance(condition, In):
        wanted = set(condition.encoded)
        return {i for i, e in enumerate(encoded) if e in wanted}
    return {i for i, e in enumerate(encoded) if condition.low <= e < condition.high}


def around(values: pa.Array) -> list[int]:
    """The bits of the values, and of those just beside them."""
    present = set(bits_of(values.drop_null()))
    return sorted(present | {n + 1 for n in present} | {n - 1 for n in present})


def draw_case(
    data: st.DataObject, codec: KeyCodec, casts: list[pa.DataType]
) -> tuple[pa.Array, pa.Array]:
    """Keys, NULL among them, and literals of the type that they are cast to."""
    kind, target = codec.arrow_type, [codec.arrow_type, *casts][-1]
    drawn = of_bits(target, data.draw(st.lists(bits(target), max_size=4)))
    chosen = of_bits(kind, interesting(kind) + data.draw(st.lists(bits(kind), max_size=8)))
    # Keys beside what equals a literal: only where the way back is defined.
    ends = {
        n
        for literal in drawn
        for operator in OPERATORS
        if (range_ := compared_with(codec, casts, operator, literal, partial=True)) is not None
        for end in (range_.low, range_.high.removesuffix(b"\xff"))
        if len(end) == len(codec.null)
        for n in around(pa.array([codec.decode(end, 0)[0]], kind))
    }
    chosen = of_bits(kind, [*bits_of(chosen), *ends])
    keys = pa.concat_arrays([chosen, pa.nulls(1, kind)])
    near = around(cast(chosen.take(castable(chosen, casts)), casts)) or [0]
    near = data.draw(st.lists(st.sampled_from(near), max_size=12))
    special = data.draw(st.lists(st.sampled_from(interesting(target)), max_size=6))
    return keys, of_bits(target, [0, *bits_of(drawn), *near, *special])


def check(name: str, casts: list[pa.DataType], data: st.DataObject, *, partial: bool) -> None:
    codec = codec_of(name)
    keys, literals = draw_case(data, codec, casts)
    compared = castable(keys, casts)
    positions = dict(enumerate(compared))
    true = {
        case: {positions[i] for i in found}
        for case, found in comparisons(keys.take(compared), casts, literals).items()
    }
    for j, literal in enumerate(literals):
        nan = pa.types.is_floating(literals.type) and literal.as_py() != literal.as_py()
        one = equal_to(codec, casts, literals.slice(j, 1), partial=partial)
        assert (one is None) == bool(nan and casts)
        if one is not None:
            assert finds(one, keys) == true["=", j], literal
            one.describe("k")
        for operator in OPERATORS:
            condition = compared_with(codec, casts, operator, literal, partial=partial)
            assert (condition is None) == bool(nan and casts)
            if condition is not None:
                assert finds(condition, keys) == true[operator, j], (operator, literal)
                condition.describe("k")
    every = equal_to(codec, casts, literals, partial=partial)
    if every is not None:
        assert finds(every, keys) == {i for j in range(len(literals)) for i in true["=", j]}


@pytest.mark.parametrize(("name", "casts"), TOTAL, ids=name_of)
@one_in(15)
@given(data=st.data())
def test_a_condition_finds_what_datafusion_finds(
    name: str, casts: list[pa.DataType], data: st.DataObject
) -> None:
    check(name, casts, data, partial=False)


@pytest.mark.parametrize(("name", "casts"), RAISING, ids=name_of)
@one_in(15)
@given(data=st.data())
def test_of_a_cast_that_may_raise_a_condition_finds_the_keys_that_do_not(
    name: str, casts: list[pa.DataType], data: st.DataObject
) -> None:
    check(name, casts, data, partial=True)
