"""Sorts entries by their values in bounded memory, whatever their number and width.

What fits into memory is sorted there and comes out at once. The rest is sorted in runs,
which are written to temporary files and merged range by range.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Final

import pyarrow as pa

from .merge import Key, SortedRun, key_at, merged
from .sort import sorted_by

_BATCH_BYTES: Final = 1 << 18
_BATCH_ROWS: Final = 8192


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
            yield from merged(runs, schema, len(parts), memory // _BATCH_BYTES)
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


class _Run(SortedRun):
    """A sorted run in a file."""

    def __init__(self, file: pa.MemoryMappedFile, ends: Sequence[Key]) -> None:
        super().__init__(ends)
        self._file = file

    @classmethod
    def write(cls, path: Path, first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> _Run:
        """Write sorted batches to a new file, in small ones."""
        ends: list[Key] = []
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, first.schema) as writer:
            batch: pa.RecordBatch | None = first
            while batch is not None:
                for piece in _pieces(batch):
                    writer.write_batch(piece)
                    ends.append(key_at(piece.column(0), len(piece) - 1))
                batch = next(rest, None)
        return cls(pa.memory_map(str(path)), ends)

    @cached_property
    def _reader(self) -> pa.ipc.RecordBatchFileReader:
        return pa.ipc.open_file(self._file)

    def batch(self, number: int) -> pa.RecordBatch:
        return self._reader.get_batch(number)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    rows = max(1, min(_BATCH_ROWS, _BATCH_BYTES * len(batch) // max(1, batch.nbytes)))
    for start in range(0, len(batch), rows):
        yield batch.slice(start, rows)
