"""Needles of an array predicate, bound to the element type of the searched list column.

DataFusion compares a needle with the elements in a common type, to which it casts the
*column* where the needle's type is the wider one: `array_has(CAST(tags AS List(Int64)), 300)`.
An index holds the elements in their own type, so the needle has to be taken back to it.
That is done only for casts that map different elements to different values: then at most
one element equals the needle, and a needle that no element can equal finds nothing.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_FLOAT_DIGITS = {pa.float16(): 11, pa.float32(): 24, pa.float64(): 53}
"""Bits of the significand: integers below 2**digits are held exactly."""


def bind_needles(needles: pa.Array, element_type: pa.DataType) -> pa.Array | None:
    """The elements of type `element_type` that equal one of `needles`, each once, without NULLs.

    Needles that no element can equal are left out. None where the cast from the element
    type to the needles' type is not known to keep different elements apart.

    >>> bind_needles(pa.array([1, 300, 2, None]), pa.int8()).to_pylist()
    [1, 2]
    >>> bind_needles(pa.array(["1"]), pa.int8()) is None
    True
    """
    needles = distinct(needles)
    if needles.type == element_type:
        return needles
    if not _keeps_apart(element_type, needles.type):
        return None
    # The casts keep needles apart, too, so those that are left are still distinct.
    return _cast_back(needles, element_type)


def distinct(needles: pa.Array) -> pa.Array:
    """The needles each once, without NULLs; views as the type that they view."""
    needles = pc.drop_null(_without_views(needles))
    if pa.types.is_floating(needles.type):
        # Arrow's `unique` would merge -0.0 into 0.0, which `array_has` keeps apart.
        bits = {16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}[needles.type.bit_width]
        return pc.unique(needles.view(bits)).view(needles.type)
    return pc.unique(needles)


def _without_views(needles: pa.Array) -> pa.Array:
    """The same values in a type for which Arrow has kernels."""
    if needles.type == pa.string_view():
        return needles.cast(pa.string())
    if needles.type == pa.binary_view():
        return needles.cast(pa.binary())
    return needles


def _keeps_apart(element: pa.DataType, needle: pa.DataType) -> bool:
    """Whether casting elements to the needle's type maps different elements to different values."""
    if _is_text(element) and _is_text(needle):
        return True
    if _is_bytes(element) and _is_bytes(needle):
        return True
    if pa.types.is_integer(element):
        if pa.types.is_integer(needle):
            return (
                _bounds(needle)[0]
                <= _bounds(element)[0]
                <= _bounds(element)[1]
                <= _bounds(needle)[1]
            )
        if pa.types.is_decimal(needle):
            return needle.precision - needle.scale >= len(str(_bounds(element)[1]))
        return pa.types.is_floating(needle)
    if pa.types.is_floating(element):
        return pa.types.is_floating(needle) and element.bit_width <= needle.bit_width
    if pa.types.is_decimal(element):
        return (
            pa.types.is_decimal(needle)
            and needle.scale >= element.scale
            and needle.precision - needle.scale >= element.precision - element.scale
        )
    if pa.types.is_timestamp(element):
        return (
            pa.types.is_timestamp(needle)
            and element.tz == needle.tz
            and _UNITS.index(element.unit) <= _UNITS.index(needle.unit)
        )
    if pa.types.is_date32(element):
        return pa.types.is_date64(needle) or (pa.types.is_timestamp(needle) and needle.tz is None)
    return False


_UNITS = ("s", "ms", "us", "ns")


def _cast_back(needles: pa.Array, element: pa.DataType) -> pa.Array | None:
    """Casts needles to the element type, without those that do not survive the way there and back.

    None where a needle lies where the cast is not one-to-one.
    """
    if pa.types.is_floating(needles.type):
        if pc.any(pc.is_nan(needles)).as_py():
            return None
        if pa.types.is_integer(element):
            exact = 2.0 ** _FLOAT_DIGITS[needles.type]
            if (
                element.bit_width > _FLOAT_DIGITS[needles.type]
                and not pc.all(pc.less(pc.abs(needles), exact)).as_py()
            ):
                return None
            needles = needles.filter(pc.is_finite(needles))
            # A float that wraps to another integer would not come back, but casting it is
            # undefined: keep to the integers' range first.
            low, high = _bounds(element)
            needles = needles.filter(
                pc.and_(pc.greater_equal(needles, float(low)), pc.less(needles, float(high) + 1.0))
            )
    if pa.types.is_decimal(needles.type):
        return _cast_decimals(needles, element)
    there = pc.cast(needles, element, safe=False)
    back = pc.cast(there, needles.type, safe=False)
    return there.filter(_same_bits(needles, back))


def _cast_decimals(needles: pa.Array, element: pa.DataType) -> pa.Array:
    """Decimals to integers or narrower decimals; a needle that does not fit is left out."""
    held = []
    for needle in needles:
        try:
            held.append(pc.cast(needle, element))
        except pa.ArrowInvalid:
            continue
    return pa.array([value.as_py() for value in held], element)


def _same_bits(left: pa.Array, right: pa.Array) -> pa.Array:
    """Equality as `array_has` has it: -0.0 is not 0.0."""
    if pa.types.is_floating(left.type):
        bits = {16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}[left.type.bit_width]
        return pc.equal(left.view(bits), right.view(bits))
    return pc.equal(left, right)


def _bounds(integer: pa.DataType) -> tuple[int, int]:
    if pa.types.is_unsigned_integer(integer):
        return 0, 2**integer.bit_width - 1
    return -(2 ** (integer.bit_width - 1)), 2 ** (integer.bit_width - 1) - 1


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _is_bytes(kind: pa.DataType) -> bool:
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
