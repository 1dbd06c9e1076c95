"""What reading a column's rows costs: each by its address, or all of them in a scan.

Microseconds a row, fitted to the least of several runs over 500,000 and 1,000,000 rows in
local files on two cores. The share is where the two ways cost the same, as measured:

| column | scanned | share of the rows |
| --- | --- | --- |
| numbers, booleans | 0.0035 to 0.012 | 1 to 3 %, decimals 6 % |
| text of 6 / 60 / 210 / 2,000 bytes | 0.02 / 0.04 / 0.32 / 3.1 | 2 / 5 / 40 % / never |
| 5 numbers / 5 texts / 4 structs of 2 or 4 | 0.03 / 0.11 / 0.04 or 0.15 | 2 / 15 / 2 or 5 % |
| vector of 8 / 64 / 128 / 768 float32 | 0.016 / 0.1 / 0.19 / 1.1 | 0.2 / 1.3 / 2.2 / 13 % |

A read by address decodes a chunk of some KiB for each row that is far from the last one, a wide
value is read on its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.compute as pc

from .value_width import fixed_width

_VALUES_A_LIST: Final = 4.0
_BYTES_A_TEXT: Final = 32.0
_WIDE: Final = 32
"""Bytes from which on a value of fixed width is read on its own."""


@dataclass(frozen=True, slots=True)
class ReadCost:
    """Microseconds for a row that is read by address, and for one that is scanned."""

    by_address: float
    scanned: float

    def __add__(self, other: ReadCost) -> ReadCost:
        return ReadCost(self.by_address + other.by_address, self.scanned + other.scanned)


FREE: Final = ReadCost(0.0, 0.0)


def varies(kind: pa.DataType) -> bool:
    """Whether a row's cost depends on the lengths of its values."""
    return fixed_width(kind) is None


def read_cost(kind: pa.DataType, values: pa.Array | None = None) -> ReadCost:
    """What a column of that type costs a row; `values`, some of them, tell their lengths."""
    if values is not None and len(values) == 0:
        values = None
    if isinstance(kind, pa.BaseExtensionType):
        stored = None if values is None else cast("pa.ExtensionArray", values).storage
        return read_cost(kind.storage_type, stored)
    if pa.types.is_struct(kind):
        return _structs(kind, values) + ReadCost(0.0, 0.007)
    if _is_list(kind):
        return _lists(kind, values)
    width = fixed_width(kind)
    if width is None:
        length = _BYTES_A_TEXT if values is None else values.nbytes / len(values)
        return ReadCost(1.0, 0.01 + 0.001 * length)
    if pa.types.is_fixed_size_list(kind) or width > _WIDE:
        return ReadCost(8.0, 0.0004 * width)
    return _number(kind, width)


def _number(kind: pa.DataType, width: int) -> ReadCost:
    if pa.types.is_boolean(kind):
        return ReadCost(0.18, 0.0035)
    if pa.types.is_floating(kind):
        return ReadCost(0.25, 0.0016 + 0.00065 * width)
    if pa.types.is_decimal(kind):
        return ReadCost(0.2, 0.001 + 0.0007 * width)
    if pa.types.is_fixed_size_binary(kind):
        return ReadCost(0.6, 0.001 + 0.0007 * width)
    # Integers and what is stored as such: small and ascending ones are packed.
    return ReadCost(0.25, 0.0035)


def _structs(kind: pa.DataType, values: pa.Array | None) -> ReadCost:
    costs = (
        read_cost(kind.field(at).type, None if values is None else pc.struct_field(values, [at]))
        for at in range(kind.num_fields)
    )
    return sum(costs, FREE)


def _lists(kind: Any, values: Any) -> ReadCost:
    items: Any = None
    if pa.types.is_map(kind):
        item = pa.struct([("key", kind.key_type), ("value", kind.item_type)])
        if values is not None:
            items = pa.StructArray.from_arrays([values.keys, values.items], fields=list(item))
    else:
        item, items = kind.value_type, None if values is None else values.flatten()
    count = _VALUES_A_LIST if values is None else len(items) / len(values)
    leaves = item.num_fields if pa.types.is_struct(item) else 1
    one = _structs(item, items) if pa.types.is_struct(item) else read_cost(item, items)
    return ReadCost(max(one.by_address, 0.9 * leaves), 0.01 + one.scanned * count)


def _is_list(kind: pa.DataType) -> bool:
    return (
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_list_view(kind)
        or pa.types.is_large_list_view(kind)
        or pa.types.is_map(kind)
        or (pa.types.is_fixed_size_list(kind) and varies(kind))
    )
