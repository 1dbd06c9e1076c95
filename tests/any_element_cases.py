"""Hypothesis strategies: element types, lists of such elements, and predicates on their fields.

Lists come with every kind of NULL, values under null structs and null lists included, and as
slices of longer arrays.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from .any_element_reference import (
    NULL,
    And,
    Between,
    BooleanField,
    Compare,
    Distinct,
    Field,
    In,
    Is,
    IsNull,
    Literal,
    Not,
    Operand,
    Or,
    Predicate,
    StartsWith,
)


def _float32(number: float) -> float:
    return struct.unpack("f", struct.pack("f", number))[0]


def _text(value: str) -> Literal:
    return Literal("'" + value.replace("'", "''") + "'", value)


_NAN = Literal("CAST('NaN' AS DOUBLE)", float("nan"))
_INTEGERS = [Literal(str(n), n) for n in (-1, 0, 1, 2, 100, 300)]
_FLOATS = [
    *(Literal(str(n), n) for n in (-1.5, -0.0, 0.0, 0.5, 0.9, 2.0)),
    Literal("0", 0),
    Literal("1", 1),
    Literal("CAST('inf' AS DOUBLE)", float("inf")),
    _NAN,
]
_TEXTS = ["", "a", "ab", "abc", "B", "it's", "é", 'q"q']
_FLOAT_VALUES = [-1.5, -0.0, 0.0, 0.5, 0.9, 1.0, 2.0, float("inf"), float("nan")]
_DATES = [date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29)]
_TIMES = [datetime(1970, 1, 1), datetime(2024, 2, 29, 12, 30, 0, 5)]
_DECIMALS = [Decimal("-1.50"), Decimal("0.00"), Decimal("1.25")]
_BYTES = [b"", b"a", b"a\0", b"\xff"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A field's type with values for the data and literals for predicates."""

    type: pa.DataType
    values: tuple[Any, ...]
    literals: tuple[Literal, ...]


def _kinds() -> Iterator[Kind]:
    texts = tuple(_text(value) for value in _TEXTS)
    for text_type in (pa.string(), pa.large_string(), pa.string_view()):
        yield Kind(text_type, tuple(_TEXTS), texts)
    for integer in (pa.int8(), pa.int32(), pa.int64(), pa.uint8(), pa.uint64()):
        values = (0, 1, 2, 100) if pa.types.is_unsigned_integer(integer) else (-1, 0, 1, 2, 100)
        yield Kind(integer, values, tuple(_INTEGERS))
    yield Kind(pa.float32(), tuple(_float32(value) for value in _FLOAT_VALUES), tuple(_FLOATS))
    yield Kind(pa.float64(), tuple(_FLOAT_VALUES), tuple(_FLOATS))
    yield Kind(pa.bool_(), (True, False), (Literal("TRUE", True), Literal("false", False)))
    dates = tuple(Literal(f"DATE '{value}'", value) for value in _DATES)
    yield Kind(pa.date32(), tuple(_DATES), dates)
    times = tuple(Literal(f"TIMESTAMP '{value}'", value) for value in _TIMES)
    yield Kind(pa.timestamp("us"), tuple(_TIMES), times)
    decimals = tuple(Literal(f"CAST('{v}' AS DECIMAL(10, 2))", v) for v in _DECIMALS)
    yield Kind(pa.decimal128(10, 2), tuple(_DECIMALS), decimals)
    octets = tuple(Literal(f"X'{value.hex()}'", value) for value in _BYTES)
    yield Kind(pa.binary(), tuple(_BYTES), octets)


KINDS = tuple(_kinds())
NAMES = ("label", "k", "Label", "a b", "it's", 'q"q', "box.w", "in", "day", "null", "__element")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A field that is no struct: where it is, and what it holds."""

    path: tuple[str, ...]
    kind: Kind


@dataclass(frozen=True, slots=True)
class Case:
    """Lists in an array, and a predicate on their elements."""

    lists: pa.Array
    predicate: Predicate


def _nested_kinds() -> st.SearchStrategy[dict[str, Any]]:
    kinds = st.sampled_from(KINDS)
    inner = st.dictionaries(st.sampled_from(NAMES), kinds, min_size=1, max_size=2)
    return st.dictionaries(
        st.sampled_from(NAMES), kinds | kinds | kinds | inner, min_size=1, max_size=4
    )


def _leaves(fields: dict[str, Any], above: tuple[str, ...] = ()) -> list[Leaf]:
    return [
        leaf
        for name, inner in fields.items()
        for leaf in (
            [Leaf((*above, name), inner)]
            if isinstance(inner, Kind)
            else _leaves(inner, (*above, name))
        )
    ]


@st.composite
def _structs(draw: st.DrawFn, fields: dict[str, Any], length: int) -> pa.Array:
    """An array of structs; some are NULL over values."""
    children = []
    for inner in fields.values():
        if isinstance(inner, Kind):
            value = st.none() | st.sampled_from(inner.values)
            drawn = draw(st.lists(value, min_size=length, max_size=length))
            children.append(pa.array(drawn, inner.type))
        else:
            children.append(draw(_structs(inner, length)))
    rare = st.sampled_from([False] * 4 + [True])
    mask = draw(st.lists(rare, min_size=length, max_size=length))
    return pa.StructArray.from_arrays(children, list(fields), mask=pa.array(mask, pa.bool_()))


@st.composite
def lists_of(draw: st.DrawFn, fields: dict[str, Any], rows: int = 6) -> pa.Array:
    """A List, LargeList or FixedSizeList of structs, the first two perhaps slices."""
    kind = draw(st.sampled_from(["list", "large_list", "fixed_size_list"]))
    length_of = st.just(2) if kind == "fixed_size_list" else st.integers(0, 3)
    lengths = draw(st.lists(length_of, min_size=rows, max_size=rows))
    elements = draw(_structs(fields, sum(lengths)))
    rare = st.sampled_from([False] * 4 + [True])
    mask = pa.array(draw(st.lists(rare, min_size=rows, max_size=rows)), pa.bool_())
    offsets = [sum(lengths[:row]) for row in range(rows + 1)]
    if kind == "fixed_size_list":
        # No slice: arrow-rs panics on taking in one of structs that have structs inside.
        return pa.FixedSizeListArray.from_arrays(elements, 2, mask=mask)
    if kind == "list":
        lists: pa.Array = pa.ListArray.from_arrays(
            pa.array(offsets, pa.int32()), elements, mask=mask
        )
    else:
        lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), elements, mask=mask)
    start = draw(st.integers(0, 2))
    return lists.slice(start, draw(st.integers(0, rows - start)))


@st.composite
def _fields(draw: st.DrawFn, leaf: Leaf) -> Field:
    """A field in one of the ways in which SQL names it."""
    first, *inner = leaf.path
    if first in ("label", "k", "day") and draw(st.booleans()):
        spelling = draw(st.sampled_from([first, first.upper()]))
    else:
        spelling = _quoted(first)
    for name in inner:
        if draw(st.booleans()):
            spelling += f".{_quoted(name)}"
        else:
            spelling += "['" + name.replace("'", "''") + "']"
    return Field(leaf.path, spelling)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@st.composite
def _conditions(draw: st.DrawFn, leaves: Sequence[Leaf]) -> Predicate:
    """A predicate on one field."""
    leaf = draw(st.sampled_from(leaves))
    field = draw(_fields(leaf))
    literal = st.sampled_from(leaf.kind.literals)
    maybe_null: st.SearchStrategy[Operand] = st.sampled_from([*leaf.kind.literals, NULL])
    negated = draw(st.booleans())
    shape = draw(st.sampled_from(["compare"] * 3 + ["in", "between", "null", "distinct", "own"]))
    if shape == "compare":
        operator = draw(st.sampled_from(["=", "<>", "!=", "<", "<=", ">", ">="]))
        sides = [field, draw(maybe_null if draw(st.integers(0, 9)) == 0 else literal)]
        left, right = sides if draw(st.booleans()) else reversed(sides)
        return Compare(operator, left, right)
    if shape == "in":
        items = draw(st.lists(maybe_null, min_size=1, max_size=6))
        return In(field, tuple(items), negated)
    if shape == "between":
        return Between(field, draw(literal), draw(literal), negated)
    if shape == "distinct":
        return Distinct(field, draw(maybe_null), negated)
    if shape == "own" and pa.types.is_boolean(leaf.kind.type):
        return BooleanField(field)
    if shape == "own" and leaf.kind.values[0] == "":
        return StartsWith(field, draw(st.sampled_from(["", "a", "ab", "é"])), negated)
    return IsNull(field, negated)


def predicates(fields: dict[str, Any]) -> st.SearchStrategy[Predicate]:
    """Predicates on the fields, nested up to a few levels."""

    def connected(inner: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
        return st.one_of(
            st.builds(And, inner, inner),
            st.builds(Or, inner, inner),
            st.builds(Not, inner),
            st.builds(Is, inner, st.sampled_from([True, False, None]), st.booleans()),
        )

    return st.recursive(_conditions(_leaves(fields)), connected, max_leaves=6)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Lists and a predicate on their elements."""
    fields = draw(_nested_kinds())
    return Case(draw(lists_of(fields)), draw(predicates(fields)))
