"""What reading rows costs: by address, or by reading whole fragments and masking.

Estimates in microseconds, fitted to medians over 1,000,000 rows in local files on two cores:

| column | by address: 1,000 / 10,000 / 50,000 rows | whole column |
| --- | --- | --- |
| int64 | 3 / 3.5 / 11 ms | 4 to 6 ms |
| text of 40 bytes | 12 / 24 / 54 ms | 50 ms |
| list of 4 structs | 26 / 46 / 160 ms | 130 ms |
| vector of 64 float32 | 15 / 150 / 400 ms | 400 ms |

So whole fragments win from about 2 % of the rows on for a number, 5 % for text and nested
values, and above a tenth for a vector, whose pages hold little else than the row wanted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

# A read of at least this many rows costs no more a row than one of all; below, batches are many.
_MOST_ROWS_A_READ = 1 << 16
_BYTES_A_READ = 4 << 20
_VARIABLE_WIDTH = 64
_NUMBER_WIDTH = 32


@dataclass(frozen=True, slots=True)
class ReadCost:
    """Microseconds for a row that is read by address, and for one that is scanned."""

    by_address: float
    scanned: float

    def __add__(self, other: ReadCost) -> ReadCost:
        return ReadCost(self.by_address + other.by_address, self.scanned + other.scanned)


def by_scan(types: Iterable[pa.DataType], wanted: int, stored: int) -> bool:
    """Whether `wanted` of `stored` rows are read faster by scanning all and masking."""
    cost = _cost_of_all(types)
    return wanted * cost.by_address > stored * cost.scanned


def read_microseconds(types: Iterable[pa.DataType], wanted: int, stored: int) -> float:
    """What reading `wanted` of `stored` rows costs in the cheaper way."""
    cost = _cost_of_all(types)
    return min(wanted * cost.by_address, stored * cost.scanned)


def _cost_of_all(types: Iterable[pa.DataType]) -> ReadCost:
    return sum(map(read_cost, types), ReadCost(0.0, 0.0))


def read_cost(kind: pa.DataType) -> ReadCost:
    width = fixed_width(kind)
    if width is None:
        return ReadCost(3.0, 0.14) if pa.types.is_nested(kind) else ReadCost(1.0, 0.05)
    if width <= _NUMBER_WIDTH:
        return ReadCost(0.25, 0.005)
    return ReadCost(10.0, 1.0) if width > 128 else ReadCost(3.0, 0.3)


def rows_a_read(types: Iterable[pa.DataType], batch_size: int) -> int:
    """How many rows to read at once: more than `batch_size` where rows are narrow.

    A batch of 65,536 int64 costs a third of eight of 8,192, and a batch of 8,192 vectors of
    4 KiB would be 32 MiB.
    """
    width = sum(fixed_width(kind) or _VARIABLE_WIDTH for kind in types)
    by_bytes = _BYTES_A_READ // max(width, 1)
    return min(_MOST_ROWS_A_READ, max(by_bytes, min(batch_size, 1024)))


def fixed_width(kind: pa.DataType) -> int | None:
    """Bytes of a value, rounded up; None where values differ in length."""
    if pa.types.is_fixed_size_list(kind):
        width = fixed_width(kind.value_type)
        return None if width is None else width * kind.list_size
    if pa.types.is_struct(kind):
        widths = [fixed_width(field.type) for field in kind.fields]
        return None if None in widths else sum(w for w in widths if w is not None)
    if pa.types.is_dictionary(kind):
        return fixed_width(kind.index_type)
    if isinstance(kind, pa.BaseExtensionType):
        return fixed_width(kind.storage_type)
    if pa.types.is_null(kind):
        return 0
    try:
        return (kind.bit_width + 7) // 8
    except ValueError:
        return None
