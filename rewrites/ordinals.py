"""Values as integers that ascend as the values do.

The ordinal of an integer, a date or a timestamp is the stored integer, that of a decimal its
unscaled value. Floats are numbered in their total order, in which the encoding of keys and
DataFusion's comparisons have them: -0.0 is -1, 0.0 is 0, and each next float is one more.
Ordinals are Python's integers, which have room for every type and for what lies beside it.
"""

from __future__ import annotations

from math import isnan
from struct import Struct
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ordinals: TypeAlias = npt.NDArray[np.object_]
"""An array of Python integers."""

_FLOAT: Final = Struct("<d")
_BITS: Final = Struct("<q")


def ordinal_range(kind: pa.DataType) -> tuple[int, int] | None:
    """The least and the greatest ordinal of a type; None for a type without ordinals.

    >>> ordinal_range(pa.int8()), ordinal_range(pa.decimal128(3, 1))
    ((-128, 127), (-999, 999))
    """
    if pa.types.is_boolean(kind):
        return 0, 1
    if pa.types.is_unsigned_integer(kind):
        return 0, 2**kind.bit_width - 1
    if pa.types.is_decimal(kind):
        return 1 - 10**kind.precision, 10**kind.precision - 1
    if _has_signed_bits(kind):
        return -(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1
    return None


def ordinals_of(values: pa.Array) -> Ordinals:
    """The ordinal of each value, none of them NULL.

    Raises `TypeError` for a type without ordinals.

    >>> ordinals_of(pa.array([-0.0, 0.0, 5e-324])).tolist()
    [-1, 0, 1]
    """
    kind = values.type
    if pa.types.is_boolean(kind):
        return values.cast(pa.uint8()).to_numpy().astype(object)
    if pa.types.is_unsigned_integer(kind):
        return values.to_numpy().astype(object)
    if pa.types.is_decimal(kind):
        return _unscaled(values)
    if not _has_signed_bits(kind):
        raise TypeError(f"no ordinals of type {kind}")
    bits = values.view(pa.from_numpy_dtype(_signed(kind))).to_numpy()
    return (float_order(bits) if pa.types.is_floating(kind) else bits).astype(object)


def ordinal_of(value: pa.Scalar) -> int:
    """The ordinal of one value, which is not NULL; raises as `ordinals_of` does."""
    kind = value.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return int(value.as_py())
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return value.value
    if pa.types.is_float64(kind) and not isnan(number := value.as_py()):
        bits = _BITS.unpack(_FLOAT.pack(number))[0]
        return bits if bits >= 0 else ~(bits & (2**63 - 1))
    return ordinals_of(pa.array([value], kind))[0]


def values_at(ordinals: Ordinals, kind: pa.DataType) -> pa.Array:
    """The values with the given ordinals, each of them in the type's range.

    Of the types with ordinals, decimals have no way back.

    >>> values_at(ordinals_of(pa.array([1.5], pa.float32())) + 1, pa.float32())[0].as_py()
    1.5000001192092896
    """
    if pa.types.is_boolean(kind):
        return pa.array(ordinals.astype(np.bool_))
    if pa.types.is_unsigned_integer(kind):
        return pa.array(ordinals.astype(kind.to_pandas_dtype()), kind)
    bits = ordinals.astype(_signed(kind))
    return pa.array(float_order(bits) if pa.types.is_floating(kind) else bits).view(kind)


def float_order(integers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Turns the bits of floats, as signed integers, into their ordinals, and those into bits."""
    sign = 8 * integers.itemsize - 1
    return integers ^ ((integers >> sign) & integers.dtype.type((1 << sign) - 1))


def _has_signed_bits(kind: pa.DataType) -> bool:
    return (
        pa.types.is_signed_integer(kind)
        or pa.types.is_float32(kind)
        or pa.types.is_float64(kind)
        or pa.types.is_date(kind)
        or pa.types.is_timestamp(kind)
    )


def _signed(kind: pa.DataType) -> np.dtype[Any]:
    return np.dtype(f"i{kind.bit_width // 8}")


def _unscaled(values: pa.Array) -> Ordinals:
    width = values.type.byte_width
    word = min(width, 8)
    used = values.buffers()[1].slice(values.offset * width, len(values) * width)
    words = np.frombuffer(used, dtype=f"<u{word}").reshape(len(values), width // word)
    unscaled = words[:, -1].astype(f"<i{word}").astype(object)
    for column in reversed(range(words.shape[1] - 1)):
        unscaled = unscaled * 2 ** (8 * word) + words[:, column].astype(object)
    return unscaled
