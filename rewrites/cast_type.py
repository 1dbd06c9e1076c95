"""The type that a CAST in a plan casts to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import pyarrow as pa
from datafusion.expr import Expr

_PLAIN: Final[Mapping[str, pa.DataType]] = {
    "Boolean": pa.bool_(),
    "Int8": pa.int8(),
    "Int16": pa.int16(),
    "Int32": pa.int32(),
    "Int64": pa.int64(),
    "UInt8": pa.uint8(),
    "UInt16": pa.uint16(),
    "UInt32": pa.uint32(),
    "UInt64": pa.uint64(),
    "Float16": pa.float16(),
    "Float32": pa.float32(),
    "Float64": pa.float64(),
    "Date32": pa.date32(),
    "Date64": pa.date64(),
    "Utf8": pa.string(),
    "LargeUtf8": pa.large_string(),
    "Utf8View": pa.string_view(),
    "Binary": pa.binary(),
    "LargeBinary": pa.large_binary(),
    "BinaryView": pa.binary_view(),
}
_DECIMAL: Final = re.compile(r"Decimal(32|64|128|256)\((\d+), (-?\d+)\)")
_DECIMALS: Final = {
    "32": pa.decimal32,
    "64": pa.decimal64,
    "128": pa.decimal128,
    "256": pa.decimal256,
}
_TIMESTAMP: Final = re.compile(r'Timestamp\((s|ms|µs|ns)(?:, "([^"\\]+)")?\)')


def cast_type(cast: Expr) -> pa.DataType | None:
    """The type of a `Cast` expression; None for one that no key is compared in.

    DataFusion's Python side hands out the type as an object that says nothing, so it is
    read from the text of the expression.

    >>> from datafusion import col
    >>> cast_type(col("a").cast(pa.timestamp("us", "UTC")))
    TimestampType(timestamp[us, tz=UTC])
    """
    inner = cast.rex_call_operands()[0].canonical_name()
    text = cast.canonical_name().removeprefix(f"CAST({inner} AS ").removesuffix(")")
    if text in _PLAIN:
        return _PLAIN[text]
    if found := _DECIMAL.fullmatch(text):
        bits, precision, scale = found.groups()
        return _DECIMALS[bits](int(precision), int(scale))
    if found := _TIMESTAMP.fullmatch(text):
        unit, zone = found.groups()
        return pa.timestamp("us" if unit == "µs" else unit, zone)
    return None
