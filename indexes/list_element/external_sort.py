"""Sorts entries by their values in bounded memory, whatever their number and width.

What fits into memory is sorted there and comes out at once. The rest is sorted in runs,
which are written to temporary files and merged range by range.
"""

from __future__ import annotations

import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Final

import pyarrow as pa

from .sort import sorted_by

_BATCH_BYTES: Final = 1 << 18
_BATCH_ROWS: Final = 8192
_MERGED_AT_ONCE: Final = 8
"""The part of the memory that the merge takes for a range."""

Key = tuple[bool, bytes]
"""A value as what Python compares: NULL, which comes first, is `(False, b"")`."""


def externally_sorted(
    parts: Sequence[Iterator[pa.RecordBatch]], schema: pa.Schema, memory: int
) -> Iterator[pa.RecordBatch]:
    """The rows of all `parts`, ascending by the first column, binary values, NULLs first.

    Parts are read on a thread each. `memory` is how many bytes of rows are sorted at once,
    which takes about as much again. Temporary files are gone when the iterator ends or is
    closed.
    """
    column = schema.names[0]
    quota = _Quota(memory)
    with tempfile.TemporaryDirectory(prefix="datafusion-lance-sort-") as folder:
        runs: list[_Run] = []
        try:
            while True:
                quota.renew()
                batches = sorted_by(column, [quota.limited(part) for part in parts], schema)
                first = next(batches, None)
                # With the first row out, all input that the quota allows has been read.
                if first is None:
                    break
                if quota.left and not runs:
                    yield first
                    yield from batches
                    return
                runs.append(_Run.write(Path(folder) / str(len(runs)), first, batches))
            yield from _merged(runs, schema, len(parts), memory)
        finally:
            for run in runs:
                run.close()


class _Quota:
    """How many bytes may still be read into the run at hand, by several threads."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = Lock()
        self.left = size

    def renew(self) -> None:
        """Allow the next run."""
        self.left = self._size

    def limited(self, part: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The next batches of a part, until the quota is used up or the part at its end."""
        while self.left:
            batch = next(part, None)
            if batch is None:
                return
            with self._lock:
                self.left = max(0, self.left - batch.nbytes)
            yield batch


@dataclass(frozen=True)
class _Run:
    """A sorted run in a file: its batches, and what each of them ends with."""

    file: pa.MemoryMappedFile
    ends: list[Key]

    @classmethod
    def write(cls, path: Path, first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> _Run:
        """Write sorted batches to a new file, in small ones."""
        ends: list[Key] = []
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, first.schema) as writer:
            batch: pa.RecordBatch | None = first
            while batch is not None:
                for piece in _pieces(batch):
                    writer.write_batch(piece)
                    ends.append(_key(piece.column(0), len(piece) - 1))
                batch = next(rest, None)
        return cls(pa.memory_map(str(path)), ends)

    @cached_property
    def _reader(self) -> pa.ipc.RecordBatchFileReader:
        return pa.ipc.open_file(self.file)

    def close(self) -> None:
        """Let go of the file."""
        self.file.close()

    def between(self, low: Key | None, high: Key) -> Iterator[pa.RecordBatch]:
        """The rows above `low` and below `high`."""
        start = 0 if low is None else bisect_right(self.ends, low)
        for number in range(start, len(self.ends)):
            batch = self._reader.get_batch(number)
            values = _Keys(batch.column(0))
            begin = 0 if low is None else bisect_right(values, low)
            end = bisect_left(values, high)
            if begin < end:
                yield batch.slice(begin, end - begin)
            if end < len(batch):
                return

    def equal(self, key: Key) -> Iterator[pa.RecordBatch]:
        """The rows whose value is just that."""
        for number in range(bisect_left(self.ends, key), len(self.ends)):
            batch = self._reader.get_batch(number)
            values = _Keys(batch.column(0))
            begin, end = bisect_left(values, key), bisect_right(values, key)
            if begin < end:
                yield batch.slice(begin, end - begin)
            if end < len(batch):
                return


class _Keys(Sequence[Key]):
    """The values of an array as keys."""

    def __init__(self, values: pa.Array) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, at: int) -> Key:  # pyright: ignore[reportIncompatibleMethodOverride]
        return _key(self._values, at)


def _key(values: pa.Array, at: int) -> Key:
    value = values[at].as_py()
    return (value is not None, value or b"")


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    rows = max(1, min(_BATCH_ROWS, _BATCH_BYTES * len(batch) // max(1, batch.nbytes)))
    for start in range(0, len(batch), rows):
        yield batch.slice(start, rows)


def _merged(
    runs: Sequence[_Run], schema: pa.Schema, threads: int, memory: int
) -> Iterator[pa.RecordBatch]:
    """The rows of all runs, sorted: range after range between the ends of some batches.

    The rows inside a range are few enough for memory. Those that equal its end may be any
    number; they need no sorting.
    """
    ends = sorted(end for run in runs for end in run.ends)
    step = max(1, memory // _MERGED_AT_ONCE // _BATCH_BYTES)
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
