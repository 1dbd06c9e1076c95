"""Which way of reading rows is cheaper, and how many rows to read at once."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from .column_cost import FREE, ReadCost
from .value_width import fixed_width

# A read of at least this many rows costs no more a row than one of all; below, batches are many.
_MOST_ROWS_A_READ = 1 << 16
_BYTES_A_READ = 4 << 20
_VARIABLE_WIDTH = 64


def by_scan(costs: Iterable[ReadCost], wanted: int, stored: int) -> bool:
    """Whether `wanted` of `stored` rows are read faster by scanning all and masking."""
    cost = sum(costs, FREE)
    return wanted * cost.by_address > stored * cost.scanned


def read_microseconds(costs: Iterable[ReadCost], wanted: int, stored: int) -> float:
    """What reading `wanted` of `stored` rows costs in the cheaper way."""
    cost = sum(costs, FREE)
    return min(wanted * cost.by_address, stored * cost.scanned)


def rows_a_read(types: Iterable[pa.DataType], batch_size: int) -> int:
    """How many rows to read at once: more than `batch_size` where rows are narrow.

    A batch of 65,536 int64 costs a third of eight of 8,192, and a batch of 8,192 vectors of
    4 KiB would be 32 MiB.
    """
    width = sum(fixed_width(kind) or _VARIABLE_WIDTH for kind in types)
    by_bytes = _BYTES_A_READ // max(width, 1)
    return min(_MOST_ROWS_A_READ, max(by_bytes, min(batch_size, 1024)))
