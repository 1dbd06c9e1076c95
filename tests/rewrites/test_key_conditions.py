"""Conditions on keys find the keys for which DataFusion's comparison of the cast key is TRUE."""

from __future__ import annotations

from typing import Any

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


def name_of(case: Any) -> str | None:
    if isinstance(case, list):
        return " → ".join(map(str, case)) or "itself"
    # Python's own values have no nanoseconds, and pytest would make an own name of them.
    return (
        f"{case.type} {case.cast('int64')}" if isinstance(case, pa.TimestampScalar) else str(case)
    )


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


TEXTS = [pa.string(), pa.large_string(), pa.string_view()]
BINARIES = [pa.binary(), pa.large_binary(), pa.binary_view()]
SOME_TEXT = st.text(st.sampled_from("ab\0\x7fé\uffff\U0001f600"), max_size=10)


@pytest.mark.parametrize("seen", TEXTS, ids=str)
@pytest.mark.parametrize(
    "casts",
    [[], *([kind] for kind in [*TEXTS, *BINARIES]), [pa.binary(), pa.string_view()]],
    ids=name_of,
)
@one_in(15)
@given(data=st.data())
def test_text_compares_by_its_bytes(
    seen: pa.DataType, casts: list[pa.DataType], data: st.DataObject
) -> None:
    target = [seen, *casts][-1]
    texts = data.draw(st.lists(SOME_TEXT, min_size=1, max_size=12))
    literals = st.binary(max_size=9) if target in BINARIES else SOME_TEXT
    check_bytes(
        codec_of("string" if seen == pa.string_view() else str(seen)),
        pa.array([*texts, None], seen),
        casts,
        pa.array([data.draw(literals), data.draw(literals)], target),
    )


@pytest.mark.parametrize("seen", BINARIES, ids=str)
@pytest.mark.parametrize("casts", [[], *([kind] for kind in BINARIES)], ids=name_of)
@one_in(15)
@given(data=st.data())
def test_binary_values_compare_by_their_bytes(
    seen: pa.DataType, casts: list[pa.DataType], data: st.DataObject
) -> None:
    values = data.draw(st.lists(st.binary(max_size=10), min_size=1, max_size=12))
    check_bytes(
        codec_of("binary" if seen == pa.binary_view() else str(seen)),
        pa.array([*values, None], seen),
        casts,
        pa.array(values[:2], [seen, *casts][-1]),
    )


def check_bytes(
    codec: KeyCodec, keys: pa.Array, casts: list[pa.DataType], literals: pa.Array
) -> None:
    true = comparisons(keys, casts, literals)
    for j, literal in enumerate(literals):
        for operator in OPERATORS:
            condition = compared_with(codec, casts, operator, literal)
            assert condition is not None
            assert finds(condition, keys) == true[operator, j]
    every = equal_to(codec, casts, literals)
    assert isinstance(every, In)
    assert finds(every, keys) == {i for j in range(len(literals)) for i in true["=", j]}
    every.describe("k")


@pytest.mark.parametrize("name", ["string", "large_string"])
@one_in(5)
@given(texts=st.lists(SOME_TEXT, min_size=1), prefix=SOME_TEXT)
def test_a_prefix_finds_what_starts_with_it(name: str, texts: list[str], prefix: str) -> None:
    codec = codec_of(name)
    keys = pa.array([*texts, *(prefix + text for text in texts)], codec.arrow_type)
    tables = {"t": pa.table({"i": range(len(keys)), "k": keys}), "q": pa.table({"p": [prefix]})}
    true = _query(tables, "SELECT i FROM t, q WHERE starts_with(k, p)")["i"].to_pylist()
    for given_ in (prefix, prefix.encode()):
        condition = starting_with(codec, given_)
        assert condition is not None
        assert finds(condition, keys) == set(true)


def test_a_prefix_of_binary_keys_is_binary() -> None:
    codec = codec_of("binary")
    condition = starting_with(codec, b"a\xff")
    assert condition is not None
    keys = pa.array([b"a", b"a\xfe", b"a\xff", b"a\xff\xff", b"b", None])
    assert finds(condition, keys) == {2, 3}
    assert starting_with(codec, "a") is None


def test_only_text_and_binary_keys_have_a_prefix() -> None:
    assert starting_with(codec_of("int8"), b"\0") is None


# -- which literals are bound, and how ----------------------------------------------------


@pytest.mark.parametrize(
    ("name", "literal", "shown"),
    [
        ("int8", pa.scalar(300), "k IN ()"),
        ("uint8", pa.scalar(-1), "k IN ()"),
        ("int32", pa.scalar(0.5), "k IN ()"),
        ("float", pa.scalar(0.9), "k IN ()"),
        ("uint64", pa.scalar(-1, pa.decimal128(20, 0)), "k IN ()"),
        ("date32:day", pa.scalar(1, pa.timestamp("s")), "k IN ()"),
        ("float", pa.scalar(0.5), "k = 0.5"),
        ("float", pa.scalar(-0.0), "k = 0.0"),
        ("int64", pa.scalar(2.0**53), "k IN (9007199254740992, 9007199254740993)"),
        ("string", pa.scalar(b"\xff", pa.binary()), "k = '\\xff'"),
    ],
    ids=name_of,
)
def test_a_literal_is_bound_to_the_keys_that_equal_it(
    name: str, literal: pa.Scalar, shown: str
) -> None:
    values = pa.array([literal], literal.type)
    condition = equal_to(codec_of(name), [literal.type], values)
    assert condition is not None
    assert condition.describe("k") == shown


@pytest.mark.parametrize(
    ("name", "operator", "literal", "shown"),
    [
        ("float", ">", pa.scalar(0.9), "k > 0.9"),
        ("float", "<=", pa.scalar(0.9), "k <= 0.9"),
        ("float", ">=", pa.scalar(0.9), "k >= 0.90000004"),
        ("float", ">=", pa.scalar(-0.0), "k >= -0.0"),
        ("int32", ">", pa.scalar(2.5), "k > 2"),
        ("int32", ">=", pa.scalar(2.5), "k >= 3"),
        ("int8", "<", pa.scalar(300), "k IS NOT NULL"),
        ("int8", ">", pa.scalar(300), "k >= -128 AND k < -128"),
        ("int8", ">", pa.scalar(127), "k >= -128 AND k < -128"),
        ("bool", ">", pa.scalar(0, pa.int32()), "k > FALSE"),
        ("date32:day", "<", pa.scalar(86401, pa.timestamp("s")), "k < '1970-01-03'"),
    ],
    ids=name_of,
)
def test_a_bound_is_bound_to_the_last_key_inside_or_the_first_outside(
    name: str, operator: str, literal: pa.Scalar, shown: str
) -> None:
    condition = compared_with(codec_of(name), [literal.type], operator, literal)
    assert condition is not None
    assert condition.describe("k") == shown
    assert condition.empty == ("AND" in shown)


def test_every_moment_of_a_day_is_one_range() -> None:
    codec = codec_of("timestamp:us:-")
    day = [pa.date32()]
    one = equal_to(codec, day, pa.array([1], pa.date32()), partial=True)
    assert isinstance(one, Between)
    two = equal_to(codec, day, pa.array([2, 1, 2], pa.date32()), partial=True)
    assert isinstance(two, Between)
    keys = pa.array([86_400_000_000 * n // 2 for n in range(8)], pa.timestamp("us"))
    assert finds(one, keys) == {2, 3}
    assert finds(two, keys) == {2, 3, 4, 5}
    assert equal_to(codec, day, pa.array([1, 3], pa.date32()), partial=True) is None


def test_many_integers_beside_each_other_are_listed() -> None:
    condition = equal_to(codec_of("int64"), [pa.float64()], pa.array(range(10_000)).cast("double"))
    assert isinstance(condition, In)
    assert condition == In.of(codec_of("int64"), pa.array(range(10_000)))


def test_the_way_back_of_a_large_integer_is_searched() -> None:
    codec = codec_of("uint64")
    condition = equal_to(codec, [pa.float32()], pa.array([2.0**63, 2.0**64], pa.float32()))
    assert condition is None  # two ranges of 2**39 keys and more, and others between them
    one = equal_to(codec, [pa.float32()], pa.array([2.0**64], pa.float32()))
    assert isinstance(one, Between)
    assert one == Between.of(codec, low=pa.scalar(2**64 - 2**39, pa.uint64()))


@pytest.mark.parametrize(("name", "casts"), RAISING, ids=name_of)
def test_a_cast_that_may_raise_is_bound_only_on_demand(name: str, casts: list[pa.DataType]) -> None:
    literals = of_bits(casts[-1], [0, 1])
    assert equal_to(codec_of(name), casts, literals) is None
    assert compared_with(codec_of(name), casts, "<", literals[0]) is None


@pytest.mark.parametrize(
    ("name", "casts", "literal"),
    [
        ("int32", [pa.string()], pa.scalar("5")),
        ("string", [pa.int64()], pa.scalar(5)),
        ("string", [pa.large_binary()], pa.scalar("5")),
        ("binary", [pa.string()], pa.scalar("5")),
        ("binary", [], pa.scalar("5")),
        ("date32:day", [pa.string()], pa.scalar("2024-01-01")),
        ("int32", [pa.bool_()], pa.scalar(True)),
        ("bool", [pa.decimal128(5, 0)], pa.scalar(1, pa.decimal128(5, 0))),
        ("float", [pa.decimal128(14, 7)], pa.scalar(1, pa.decimal128(14, 7))),
        ("double", [pa.int64()], pa.scalar(5)),
        ("int64", [pa.float16()], pa.scalar(1.0, pa.float16())),
        ("int64", [pa.timestamp("s")], pa.scalar(5, pa.timestamp("s"))),
        ("int8", [pa.decimal128(20, 2), pa.decimal128(20, 0)], pa.scalar(5, pa.decimal128(20, 0))),
        ("int8", [pa.decimal128(20, 0), pa.float64()], pa.scalar(5.0)),
        ("timestamp:us:Europe/Berlin", [pa.date32()], pa.scalar(5, pa.date32())),
        ("timestamp:us:-", [pa.timestamp("us", "+02:00")], pa.scalar(5, pa.timestamp("us", "UTC"))),
        ("timestamp:us:-", [pa.time64("us")], pa.scalar(5, pa.time64("us"))),
        ("timestamp:us:-", [], pa.scalar(5, pa.timestamp("us", "UTC"))),
        ("timestamp:us:-", [], pa.scalar(5, pa.timestamp("ns"))),
        ("int8", [], pa.scalar(5)),
        ("float", [pa.float64()], pa.scalar(float("nan"))),
    ],
    ids=name_of,
)
def test_what_cannot_be_said_exactly_is_not_bound(
    name: str, casts: list[pa.DataType], literal: pa.Scalar
) -> None:
    codec = codec_of(name)
    assert equal_to(codec, casts, pa.array([literal], literal.type), partial=True) is None
    for operator in OPERATORS:
        assert compared_with(codec, casts, operator, literal, partial=True) is None


def test_instants_in_two_zones_are_the_same_count() -> None:
    codec = codec_of("timestamp:us:Europe/Berlin")
    literal = pa.scalar(5, pa.timestamp("us", "UTC"))
    keys = pa.array([4, 5, 6], pa.timestamp("us", "Europe/Berlin"))
    equal = equal_to(codec, [], pa.array([literal], literal.type))
    above = compared_with(codec, [], ">", literal)
    assert equal is not None
    assert above is not None
    assert finds(equal, keys) == {1}
    assert finds(above, keys) == {2}


def test_no_literals_find_nothing() -> None:
    assert equal_to(codec_of("int8"), [pa.int64()], pa.array([], pa.int64())) == In(
        codec_of("int8"), ()
    )


def test_null_and_other_operators_are_refused() -> None:
    codec = codec_of("int8")
    with pytest.raises(ValueError, match="NULL"):
        equal_to(codec, [pa.int64()], pa.array([1, None]))
    with pytest.raises(ValueError, match="NULL"):
        compared_with(codec, [pa.int64()], "<", pa.scalar(None, pa.int64()))
    with pytest.raises(InvalidArgumentError, match="operator: got '<>'"):
        compared_with(codec, [], "<>", pa.scalar(1, pa.int8()))
