"""Arrow's types by the names that its Rust implementation has for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa

PLAIN_TYPES: Final[Mapping[str, pa.DataType]] = {
    "Null": pa.null(),
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
"""Those without parameters."""

DECIMALS: Final[Mapping[str, Callable[[int, int], pa.DataType]]] = {
    "Decimal32": pa.decimal32,
    "Decimal64": pa.decimal64,
    "Decimal128": pa.decimal128,
    "Decimal256": pa.decimal256,
}
"""From a precision and a scale."""
