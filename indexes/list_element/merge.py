"""Merges sorted runs of entries, range by range, in bounded memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from .sort import sorted_by

_MERGED_AT_ONCE: Final = 8
"""The part of the memory that the merge takes for a range."""

Key = tuple[bool, bytes]
"""A value as what Python compares: NULL, which comes first, is `(False, b"")`."""


class SortedRun(ABC):
    """Batches of rows, ascending by their first column, binary values, NULLs first."""

    def __init__(self, ends: Sequence[Key]) -> None:
        """`ends` has for each batch a key: none of its rows is above, none of the next below."""
        self.ends = ends

    @abstractmethod
    def batch(self, number: int) -> pa.RecordBatch:
        """The rows of one batch, which may be none."""

    def between(self, low: Key | None, high: Key) -> Iterator[pa.RecordBatch]:
        """The rows above `low` and below `high`."""
        start = 0 if low is None else bisect_right(self.ends, low)
        for number in range(start, len(self.ends)):
            batch = self.batch(number)
            values = _Keys(batch.column(0))
            begin = 0 if low is None else bisect_right(values, low)
            end = bisect_left(values, high)
            if begin < end:
                yield batch.slice(begin, end - begin)
            if self.ends[number] >= high:
                return

    def equal(self, key: Key) -> Iterator[pa.RecordBatch]:
        """The rows whose value is just that."""
        for number in range(bisect_left(self.ends, key), len(self.ends)):
            batch = self.batch(number)
            values = _Keys(batch.column(0))
            begin, end = bisect_left(values, key), bisect_right(values, key)
            if begin < end:
                yield batch.slice(begin, end - begin)
            if self.ends[number] > key:
                return


class _Keys(Sequence[Key]):
    """The values of an array as keys."""

    def __init__(self, values: pa.Array) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, at: int) -> Key:  # pyright: ignore[reportIncompatibleMethodOverride]
        return key_at(self._values, at)


def key_at(values: pa.Array, at: int) -> Key:
    """A value of an array as a key."""
    value = values[at].as_py()
    return (value is not None, value or b"")


def merged(
    runs: Sequence[SortedRun], schema: pa.Schema, threads: int, batches: int
) -> Iterator[pa.RecordBatch]:
    """The rows of all runs, sorted: range after range between the ends of some batches.

    Memory has room for so many `batches`. The rows inside a range are few enough for it. Those
    that equal its end may be any number; they need no sorting.
    """
    ends = sorted(end for run in runs for end in run.ends)
    step = max(1, batches // _MERGED_AT_ONCE)
    bounds = sorted({*ends[step - 1 :: step], *ends[-1:]})
    low: Key | None = None
    for bound in bounds:
        inside = [batch for run in runs for batch in run.between(low, bound)]
        if inside:
            share = -(-len(inside) // threads)
            parts = [iter(inside[i * share : (i + 1) * share]) for i in range(threads)]
            yield from sorted_by(schema.names[0], parts, schema)
        for run in runs:
            yield from run.equal(bound)
        low = bound
