"""Values worth comparing of every key type and of every type that keys are compared in."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

FLOATS = [
    *(0.0, -0.0, 0.5, 0.9, 1.0, -1.0, 1.1, 2.5, 3.0, 16777216.0, 16777217.0, 5e-324, 1e-45),
    *(127.0, 128.5, -129.0, 1e39, -1e300, 2.0**53, -(2.0**53) - 2, 2.0**62, 2.0**63, 2.0**64),
    *(-(2.0**63), 3.4028235677973366e38, 3.4028234e38, math.inf, -math.inf),
]

INTEGERS = [
    *(0, 1, -1, 2, 3, 100, 255, 256, 300, 2**24, 2**24 + 1, 2**31, 2**32, 2**53, 2**53 + 1),
    *(-(2**53) - 1, 2**54 + 2, 2**62, 2**63 - 1, -(2**63), 2**63, 2**63 + 1024, 2**64 - 1),
    *(-(2**31), 2**31 - 1, -128, 127, -86400001, -86400000, -1500, -1000, 999, 1500, 86399999),
    *(86400000, -106752, -106751, 106751, 106752, 106751991, 106751992, 1704067200),
    *(1704067200000, 1704067200000000, 1704067200000000001, 9223372036854775),
]
"""Those that a type has no room for are left out of its values."""


def arrow_name(kind: pa.DataType) -> str:
    """The type as DataFusion's `arrow_cast` spells it."""
    if pa.types.is_timestamp(kind):
        return (
            f"Timestamp({kind.unit})" if kind.tz is None else f'Timestamp({kind.unit}, "{kind.tz}")'
        )
    if pa.types.is_decimal(kind):
        return f"Decimal{kind.bit_width}({kind.precision}, {kind.scale})"
    return {
        pa.bool_(): "Boolean",
        pa.float32(): "Float32",
        pa.float64(): "Float64",
        pa.date32(): "Date32",
        pa.date64(): "Date64",
        pa.string(): "Utf8",
        pa.large_string(): "LargeUtf8",
        pa.string_view(): "Utf8View",
        pa.binary(): "Binary",
        pa.large_binary(): "LargeBinary",
        pa.binary_view(): "BinaryView",
    }.get(kind) or str(kind).replace("uint", "UInt").replace("int", "Int")


def of_bits(kind: pa.DataType, bits: list[int]) -> pa.Array:
    """Values of a fixed-width type by their bits, read as an integer; each once.

    Integers that do not fit are left out.
    """
    if pa.types.is_boolean(kind):
        return pa.array([False, True])
    if pa.types.is_decimal(kind):
        most = 10**kind.precision
        fitting = sorted({n for n in bits if -most < n < most})
        data = b"".join(n.to_bytes(kind.byte_width, "little", signed=True) for n in fitting)
        return pa.Array.from_buffers(kind, len(fitting), [None, pa.py_buffer(data)])
    width = kind.bit_width // 8
    dtype = np.dtype(f"u{width}" if pa.types.is_unsigned_integer(kind) else f"i{width}")
    limits = np.iinfo(dtype)
    fitting = sorted({n for n in bits if limits.min <= n <= limits.max})
    return pa.array(np.array(fitting, dtype)).view(kind)


def bits_of(values: pa.Array) -> list[int]:
    """The inverse of `of_bits`."""
    kind = values.type
    if pa.types.is_boolean(kind):
        return []
    if pa.types.is_decimal(kind):
        data, width = values.buffers()[1].to_pybytes(), kind.byte_width
        return [
            int.from_bytes(data[at : at + width], "little", signed=True)
            for at in range(values.offset * width, (values.offset + len(values)) * width, width)
        ]
    width = kind.bit_width // 8
    sign = "u" if pa.types.is_unsigned_integer(kind) else "i"
    return values.view(pa.from_numpy_dtype(np.dtype(f"{sign}{width}"))).to_pylist()


def interesting(kind: pa.DataType) -> list[int]:
    """The bits of a type's values that are worth comparing: ends, zeros, NaNs, infinities."""
    if pa.types.is_floating(kind):
        with np.errstate(over="ignore"):
            floats = pa.array(np.array(FLOATS).astype(kind.to_pandas_dtype()))
        quiet = math.nan if kind == pa.float64() else np.float32(math.nan)
        (nan,) = bits_of(pa.array([quiet], kind))
        sign = -(2 ** (kind.bit_width - 1))
        nans = [nan, nan + 1, nan | sign, (nan + 1) | sign, -1, ~sign]
        return bits_of(floats) + nans
    if pa.types.is_decimal(kind):
        one = 10**kind.scale
        return [n * one for n in INTEGERS] + [one // 2, one * 5 // 2, 10**kind.precision - 1]
    return INTEGERS


def bits(kind: pa.DataType) -> st.SearchStrategy[int]:
    """Any bits of a fixed-width type, small numbers among them."""
    width = 64 if pa.types.is_boolean(kind) else min(kind.bit_width, 128)
    return st.integers(-(2 ** (width - 1)), 2**width - 1) | st.integers(-1000, 1000)
