"""Needles bound to the element type give the rows that DataFusion finds by casting the column."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal

import pyarrow as pa
import pytest
from datafusion import SessionContext
from hypothesis import given
from hypothesis import strategies as st

from datafusion_lance.rewrites.needles import bind_needles

ELEMENTS: dict[pa.DataType, list[object]] = {
    pa.int8(): [-128, -1, 0, 1, 5, 127],
    pa.uint8(): [0, 1, 5, 255],
    pa.int16(): [-300, 0, 5, 300],
    pa.int32(): [-(2**31), -1, 0, 2**24, 2**24 + 1, 2**31 - 1],
    pa.int64(): [-(2**63), -(2**53) - 1, 0, 1, 5, 2**53, 2**53 + 1, 2**63 - 1],
    pa.uint64(): [0, 1, 2**63, 2**64 - 1],
    pa.float32(): [0.0, -0.0, 0.5, 0.9, 1.0, math.inf, -math.inf],
    pa.float64(): [0.0, -0.0, 0.5, 0.9, 1.0, math.inf],
    pa.string(): ["", "a", "1", "A", "it's"],
    pa.large_string(): ["", "a"],
    pa.binary(): [b"", b"a", b"\0"],
    pa.date32(): [datetime.date(1969, 12, 31), datetime.date(2024, 1, 1)],
    pa.timestamp("us"): [datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 1, 0, 0, 0, 5)],
    pa.timestamp("ms", "UTC"): [datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)],
    pa.decimal128(10, 2): [Decimal("1.00"), Decimal("1.50"), Decimal("-2.25")],
    pa.bool_(): [False, True],
}

WIDER: list[tuple[pa.DataType, pa.DataType]] = [
    (pa.int8(), pa.int64()),
    (pa.uint8(), pa.int64()),
    (pa.int16(), pa.float64()),
    (pa.int32(), pa.float64()),
    (pa.int64(), pa.float64()),
    (pa.int64(), pa.decimal128(20, 0)),
    (pa.uint64(), pa.decimal128(20, 0)),
    (pa.float32(), pa.float64()),
    (pa.string(), pa.large_string()),
    (pa.string(), pa.string_view()),
    (pa.date32(), pa.timestamp("ns")),
    (pa.timestamp("us"), pa.timestamp("ns")),
    (pa.timestamp("ms", "UTC"), pa.timestamp("ns", "UTC")),
    (pa.decimal128(10, 2), pa.decimal128(30, 15)),
]


def elements_equal(elements: pa.Array, needle: pa.Array) -> list[int]:
    """Positions of the elements that DataFusion finds with the needle, casting the elements."""
    context = SessionContext()
    singletons = pa.ListArray.from_arrays(list(range(len(elements) + 1)), elements)
    rows = pa.table({"n": range(len(elements)), "e": singletons})
    context.register_record_batches("t", [rows.to_batches()])
    context.register_record_batches("q", [pa.table({"needle": needle}).to_batches()])
    found = context.sql(
        "SELECT n FROM t, q WHERE array_has(arrow_cast(e, 'List("
        f"{arrow_name(needle.type)})'), needle) ORDER BY n"
    )
    return found.to_pydict()["n"]


def arrow_name(kind: pa.DataType) -> str:
    """The type as DataFusion's `arrow_cast` spells it."""
    return {
        pa.int64(): "Int64",
        pa.float64(): "Float64",
        pa.decimal128(20, 0): "Decimal128(20, 0)",
        pa.decimal128(30, 15): "Decimal128(30, 15)",
        pa.large_string(): "LargeUtf8",
        pa.string_view(): "Utf8View",
        pa.timestamp("ns"): "Timestamp(ns)",
        pa.timestamp("ns", "UTC"): 'Timestamp(ns, "UTC")',
    }[kind]


def drawn_needles(element: pa.DataType, wider: pa.DataType) -> st.SearchStrategy[pa.Scalar]:
    """Needles of the wider type: elements cast to it, and values that no element has."""
    values = pa.array(ELEMENTS[element], element).cast(wider, safe=False)
    others: st.SearchStrategy[object] = st.nothing()
    if pa.types.is_floating(wider):
        others = st.sampled_from([0.5, -0.0, 1e300, math.inf, -math.inf, 2.0**53, -(2.0**63), 3.7])
    elif pa.types.is_integer(wider):
        others = st.integers(-(2**63), 2**63 - 1)
    elif pa.types.is_decimal(wider):
        others = st.sampled_from([Decimal("1.5"), Decimal("7"), Decimal("-9")]).map(
            lambda value: value.quantize(Decimal(1).scaleb(-wider.scale))
        )
    elif pa.types.is_timestamp(wider):
        others = st.integers(-(10**18), 10**18)
    elif pa.types.is_large_string(wider) or wider == pa.string_view():
        others = st.text(max_size=3)
    return st.sampled_from(list(values)) | others.map(lambda value: pa.scalar(value, wider))


@pytest.mark.parametrize(("element", "wider"), WIDER, ids=str)
@given(data=st.data())
def test_a_bound_needle_finds_what_datafusion_finds_by_casting_the_elements(
    element: pa.DataType, wider: pa.DataType, data: st.DataObject
) -> None:
    needle = pa.repeat(data.draw(drawn_needles(element, wider)), 1)
    elements = pa.array(ELEMENTS[element], element)
    bound = bind_needles(needle, element)
    if bound is None:
        assert pa.types.is_floating(wider)  # the cast is not one-to-one there
        return
    assert elements_equal(elements, needle) == elements_equal_bits(elements, bound)


def elements_equal_bits(elements: pa.Array, bound: pa.Array) -> list[int]:
    keys = {repr(value) for value in bound.to_pylist()}
    return [n for n, value in enumerate(elements.to_pylist()) if repr(value) in keys]


@pytest.mark.parametrize("element", ELEMENTS, ids=str)
def test_needles_of_the_elements_own_type_are_kept_each_once(element: pa.DataType) -> None:
    values = pa.array(ELEMENTS[element], element)
    bound = bind_needles(pa.concat_arrays([values, pa.nulls(1, element), values]), element)
    assert bound is not None
    assert list(map(repr, bound.to_pylist())) == list(map(repr, values.to_pylist()))


@pytest.mark.parametrize(
    ("element", "needle"),
    [
        (pa.string(), pa.array([1])),
        (pa.int64(), pa.array(["1"])),
        (pa.int64(), pa.array([2.0**53])),
        (pa.float32(), pa.array([math.nan])),
        (pa.timestamp("ns"), pa.array([0], pa.timestamp("us"))),
        (pa.timestamp("us"), pa.array([0], pa.timestamp("us", "UTC"))),
        (pa.decimal128(10, 2), pa.array([Decimal("1")], pa.decimal128(10, 0))),
        (pa.uint64(), pa.array([1], pa.int64())),
    ],
    ids=str,
)
def test_a_cast_that_may_merge_elements_is_refused(element: pa.DataType, needle: pa.Array) -> None:
    assert bind_needles(needle, element) is None


def test_300_for_int8_elements_finds_nothing() -> None:
    bound = bind_needles(pa.array([300]), pa.int8())
    assert bound is not None
    assert len(bound) == 0


@pytest.mark.parametrize(
    ("view", "plain", "values"),
    [
        (pa.string_view(), pa.string(), ["rain", "x" * 20]),
        (pa.binary_view(), pa.binary(), [b"rain", b"\0" * 20]),
    ],
    ids=str,
)
def test_views_are_bound_like_the_types_that_they_view(
    view: pa.DataType, plain: pa.DataType, values: list[object]
) -> None:
    bound = bind_needles(pa.array([values[0], None, *values], view), plain)
    assert bound is not None
    assert bound.equals(pa.array(values, plain))
