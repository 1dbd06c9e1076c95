"""Storage Layout: writes the target BTree's two files from sorted entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from ..dataset_files import DatasetFiles
from .btree_files import PAGE_DATA, PAGE_DATA_SCHEMA, PAGE_LOOKUP, PAGE_LOOKUP_SCHEMA, PAGE_ROWS

_ROWS: Final = 16_384
_BYTES: Final = 16 << 20


def write_btree(
    files: DatasetFiles, folder: str, batches: Iterable[pa.RecordBatch]
) -> tuple[tuple[str, int], ...]:
    """Write `page_data.lance` and `page_lookup.lance` into `folder`: their names and sizes.

    `batches` are entries sorted by value, NULLs first. They are written as they come: only
    what each page begins and ends with is kept in memory.
    """
    pages = _Pages()
    with files.create(f"{folder}/{PAGE_DATA}", PAGE_DATA_SCHEMA) as data:
        for batch in _coalesced(batches):
            pages.add(batch.column(0))
            data.write_batch(batch)
    with files.create(f"{folder}/{PAGE_LOOKUP}", PAGE_LOOKUP_SCHEMA) as lookup:
        lookup.write_batch(pages.lookup())
    return (PAGE_DATA, data.size_bytes or 0), (PAGE_LOOKUP, lookup.size_bytes or 0)


def _coalesced(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer batches: each one that is written has its cost."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows, size = rows + len(batch), size + batch.nbytes
        if rows >= _ROWS or size >= _BYTES:
            yield pa.concat_batches(held)
            held, rows, size = [], 0, 0
    if held:
        yield pa.concat_batches(held)


class _Pages:
    """What each page begins and ends with, gathered from batches of any size."""

    def __init__(self) -> None:
        self._rows = 0
        self._nulls = 0
        self._min: list[pa.Array] = []
        self._max: list[pa.Array] = []
        self._last: pa.Array = pa.array([], pa.binary())

    def add(self, values: pa.Array) -> None:
        """Take the next values."""
        if len(values) == 0:
            return
        rows = np.arange(self._rows, self._rows + len(values)) % PAGE_ROWS
        # `take` copies: a slice would keep the batch.
        self._min.append(values.take(pa.array(np.flatnonzero(rows == 0))))
        self._max.append(values.take(pa.array(np.flatnonzero(rows == PAGE_ROWS - 1))))
        self._last = values.take(pa.array([len(values) - 1]))
        self._nulls += values.null_count
        self._rows += len(values)

    def lookup(self) -> pa.RecordBatch:
        """The page table. The last page may be short."""
        pages = -(-self._rows // PAGE_ROWS)
        if self._rows % PAGE_ROWS:
            self._max.append(self._last)
        starts = np.arange(pages, dtype=np.int64) * PAGE_ROWS
        sizes = np.minimum(self._rows - starts, PAGE_ROWS)
        columns = [
            pa.concat_arrays([pa.array([], pa.binary()), *self._min]),
            pa.concat_arrays([pa.array([], pa.binary()), *self._max]),
            pa.array(np.clip(self._nulls - starts, 0, sizes), pa.uint32()),
            pa.array(np.arange(pages), pa.uint32()),
        ]
        return pa.record_batch(columns, schema=PAGE_LOOKUP_SCHEMA)
