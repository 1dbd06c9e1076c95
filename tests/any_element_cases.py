"""Hypothesis strategies: element types, lists of such elements, and predicates on their fields.

Lists come with every kind of NULL, values under null structs and null lists included, and as
slices of longer arrays.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from .any_element_reference import (
    NULL,
    And,
    Between,
    BooleanField,
    Case,
    Compare,
    Constant,
    Distinct,
    Field,
    In,
    Is,
    IsNull,
    Length,
    Like,
    Literal,
    Not,
    Operand,
    Or,
    Plus,
    Predicate,
    StartsWith,
)


def _float32(number: float) -> float:
    return struct.unpack("f", struct.pack("f", number))[0]


def _text(value: str) -> Literal:
    return Literal("'" + value.replace("'", "''") + "'", value)


_MINUS_NAN = -float("nan")
_INTEGERS = [Literal(str(n), n) for n in (-1, 0, 1, 2, 100, 300)]
_NO_INTEGERS = (
    Literal("0.5", 0.5),
    Literal("1.0", 1.0),
    Literal("CAST('1.50' AS DECIMAL(10, 2))", Decimal("1.50")),
)
_FLOATS = [
    *(Literal(str(n), n) for n in (-1.5, -0.0, 0.0, 0.5, 0.9, 2.0)),
    Literal("0", 0),
    Literal("1", 1),
    Literal("CAST('inf' AS DOUBLE)", float("inf")),
    Literal("CAST('-inf' AS DOUBLE)", float("-inf")),
    Literal("CAST('NaN' AS DOUBLE)", float("nan")),
    Literal("-CAST('NaN' AS DOUBLE)", _MINUS_NAN),
]
_TEXTS = [
    "",
    "a",
    "ab",
    "abc",
    "B",
    "it's",
    "é",
    'q"q',
    "a%c",
    "a\0",
    "a\nc",
    "\U0010ffff",
    "x" * 40,
]
_FLOAT_VALUES = [-1.5, -0.0, 0.0, 0.5, 0.9, 1.0, 2.0, float("inf"), float("nan")]
_FLOAT_ENDS = [float("-inf"), _MINUS_NAN]
_DATES = [date(1700, 3, 1), date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29)]
_TIMES = [
    datetime(1700, 3, 1),
    datetime(1969, 12, 31, 23, 59, 59),
    datetime(1970, 1, 1),
    datetime(2024, 2, 29, 12, 30),
]
_FINE_TIMES = [datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(2024, 2, 29, 12, 30, 0, 5)]
_DECIMALS = [Decimal("-1.50"), Decimal("0.00"), Decimal("1.25")]
_BYTES = [b"", b"a", b"a\0", b"\xff", b"\0" * 33]
_UNITS = {
    "s": ("Second", "UTC"),
    "ms": ("Millisecond", "America/New_York"),
    "us": ("Microsecond", "+05:30"),
    "ns": ("Nanosecond", "Europe/Berlin"),
}


@dataclass(frozen=True, slots=True)
class Kind:
    """A field's type with values for the data and literals for predicates.

    The `wider` literals are of types to which DataFusion casts the field. They are not mixed
    with the others in one list, all of which would be cast.
    """

    type: pa.DataType
    values: tuple[Any, ...]
    literals: tuple[Literal, ...]
    wider: tuple[Literal, ...] = ()


def _kinds() -> Iterator[Kind]:
    texts = tuple(_text(value) for value in _TEXTS)
    for text_type in (pa.string(), pa.large_string(), pa.string_view()):
        yield Kind(text_type, tuple(_TEXTS), texts)
    for bits in (8, 16, 32, 64):
        for signed in (True, False):
            ends = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else ((1 << bits) - 1,)
            integer = pa.type_for_alias(f"{'' if signed else 'u'}int{bits}")
            values = (*ends, *([-1] if signed else []), 0, 1, 2, 100)
            literals = (*_INTEGERS, *(Literal(str(end), end) for end in ends))
            yield Kind(integer, values, literals, _NO_INTEGERS)
    floats = (*_FLOAT_VALUES, *_FLOAT_ENDS)
    yield Kind(pa.float32(), tuple(_float32(value) for value in floats), tuple(_FLOATS))
    yield Kind(pa.float64(), floats, tuple(_FLOATS))
    yield Kind(pa.bool_(), (True, False), (Literal("TRUE", True), Literal("false", False)))
    dates = tuple(Literal(f"DATE '{value}'", value) for value in _DATES)
    coarse, fine = (
        tuple(Literal(f"TIMESTAMP '{value}'", value) for value in values)
        for values in (_TIMES, _FINE_TIMES)
    )
    for date_type in (pa.date32(), pa.date64()):
        yield Kind(date_type, tuple(_DATES), dates, coarse)
    for unit, (name, zone) in _UNITS.items():
        # DataFusion takes what is finer than the field off a literal.
        is_fine = unit in ("us", "ns")
        values = (*_TIMES, *(_FINE_TIMES if is_fine else []))
        times = (*coarse, *(fine if is_fine else []))
        yield Kind(pa.timestamp(unit), values, times, dates)
        kind = f'Timestamp({name}, Some("{zone}"))'
        instants = tuple(value.replace(tzinfo=UTC) for value in values)
        zoned = tuple(Literal(f"arrow_cast('{i.isoformat()}', '{kind}')", i) for i in instants)
        yield Kind(pa.timestamp(unit, zone), instants, zoned)
    decimals = tuple(Literal(f"CAST('{v}' AS DECIMAL(10, 2))", v) for v in _DECIMALS)
    yield Kind(pa.decimal128(10, 2), tuple(_DECIMALS), decimals)
    octets = tuple(Literal(f"X'{value.hex()}'", value) for value in _BYTES)
    for binary_type in (pa.binary(), pa.large_binary(), pa.binary_view()):
        yield Kind(binary_type, tuple(_BYTES), octets)


KINDS = tuple(_kinds())
NAMES = ("label", "k", "Label", "a b", "it's", 'q"q', "box.w", "in", "day", "null", "__element")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A field that is no struct: where it is, and what it holds."""

    path: tuple[str, ...]
    kind: Kind


@dataclass(frozen=True, slots=True)
class Lists:
    """Lists in an array, and a predicate on their elements."""

    lists: pa.Array
    predicate: Predicate


def nested_kinds() -> st.SearchStrategy[dict[str, Any]]:
    kinds = st.sampled_from(KINDS)
    inner = st.dictionaries(st.sampled_from(NAMES), kinds, min_size=1, max_size=2)
    return st.dictionaries(
        st.sampled_from(NAMES), kinds | kinds | kinds | inner, min_size=1, max_size=4
    )


def leaves_of(fields: dict[str, Any], above: tuple[str, ...] = ()) -> list[Leaf]:
    return [
        leaf
        for name, inner in fields.items()
        for leaf in (
            [Leaf((*above, name), inner)]
            if isinstance(inner, Kind)
            else leaves_of(inner, (*above, name))
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
def field_of(draw: st.DrawFn, leaf: Leaf) -> Field:
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
    """A predicate on one field, or on two of one type."""
    leaf = draw(st.sampled_from(leaves))
    field = draw(field_of(leaf))
    literal = st.sampled_from(leaf.kind.literals)
    maybe_null: st.SearchStrategy[Operand] = st.sampled_from([*leaf.kind.literals, NULL])
    negated = draw(st.booleans())
    shapes = ["compare"] * 3 + ["in", "between", "null", "distinct"] + ["own"] * 2 + ["fields"]
    shape = draw(st.sampled_from(shapes))
    if shape == "compare":
        compared = st.sampled_from([*leaf.kind.literals, *leaf.kind.wider])
        return draw(_comparisons(field, maybe_null if draw(st.integers(0, 9)) == 0 else compared))
    if shape == "in":
        items = draw(st.lists(maybe_null, min_size=1, max_size=6))
        return In(field, tuple(items), negated)
    if shape == "between":
        return Between(field, draw(literal), draw(literal), negated)
    if shape == "distinct":
        return Distinct(field, draw(maybe_null), negated)
    if shape == "fields":
        others = [other for other in leaves if other.kind.type == leaf.kind.type]
        return draw(_comparisons(field, st.sampled_from(others).flatmap(field_of)))
    own = _own_conditions(leaf, field, negated) if shape == "own" else None
    return IsNull(field, negated) if own is None else draw(own)


@st.composite
def _comparisons(
    draw: st.DrawFn, operand: Operand, others: st.SearchStrategy[Operand]
) -> Predicate:
    """The operand compared with another, either way round."""
    operator = draw(st.sampled_from(["=", "<>", "!=", "<", "<=", ">", ">="]))
    sides = [operand, draw(others)]
    left, right = sides if draw(st.booleans()) else reversed(sides)
    return Compare(operator, left, right)


def _own_conditions(leaf: Leaf, field: Field, negated: bool) -> st.SearchStrategy[Predicate] | None:
    """What only fields of some types can be asked."""
    kind = leaf.kind.type
    if pa.types.is_boolean(kind):
        return st.just(BooleanField(field))
    if pa.types.is_integer(kind) and kind.bit_width < 64:
        return _comparisons(Plus(field, 1), st.sampled_from(_INTEGERS))
    if leaf.kind.values[0] == "":
        prefixes = st.sampled_from(["", "a", "ab", "é"])
        patterns = st.sampled_from(["%", "a", "a_c", "%b%", "a\\%c", "_", "a%c", "\\"])
        return st.one_of(
            st.builds(StartsWith, st.just(field), prefixes, st.just(negated), st.booleans()),
            st.builds(Like, st.just(field), patterns, st.just(negated), st.booleans()),
            _comparisons(Length(field), st.sampled_from(_INTEGERS)),
        )
    return None


def predicates(fields: dict[str, Any]) -> st.SearchStrategy[Predicate]:
    """Predicates on the fields, nested up to a few levels."""

    def connected(inner: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
        return st.one_of(
            st.builds(And, inner, inner),
            st.builds(Or, inner, inner),
            st.builds(Not, inner),
            st.builds(Is, inner, st.sampled_from([True, False, None]), st.booleans()),
            st.builds(Case, inner, inner, st.none() | inner),
        )

    one = _conditions(leaves_of(fields))
    constant = st.builds(Constant, st.sampled_from([True, False, None]))
    return st.recursive(st.one_of(*[one] * 9, constant), connected, max_leaves=6)


@st.composite
def cases(draw: st.DrawFn) -> Lists:
    """Lists and a predicate on their elements."""
    fields = draw(nested_kinds())
    return Lists(draw(lists_of(fields)), draw(predicates(fields)))
