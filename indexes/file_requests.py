"""What pylance's file reader asks an object store for, from what it is asked for itself.

The reader tells nobody what it sends. It opens a file with a request for its length and one for
its end; a file that lies in that end is never asked for again. Of a column it reads, page by page,
a table first and then the values: of a mini-block page the sizes of its chunks and the chunks, of
a full-zip page with values of different lengths the places of the values and the values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

END_BYTES: Final = 1 << 16
"""What the reader asks for of a file's end; ranges so near each other are one request, too."""

_FOOTER_BYTES: Final = 88
_ROWS: Final = re.compile(r"num_items:\s*(\d+)")


@dataclass(frozen=True, slots=True)
class _Page:
    """Its first row, its number of rows, and the bytes of its table (0: none) and its values."""

    start: int
    rows: int
    table: int
    values: int


@dataclass(frozen=True, slots=True)
class FileRequests:
    """The requests for one file with some of its columns; each method gives their number and bytes.

    They are at most so many, since parts that lie near each other are one. The bytes of a part of a
    page are its share of the page's, those of some rows are their values: the reader reads whole
    chunks, of some kilobytes each.
    """

    size: int
    columns: tuple[tuple[_Page, ...], ...]

    @classmethod
    def of(cls, metadata: Any, columns: Sequence[str] | None) -> FileRequests:
        """Of a file with that metadata, opened with those columns (None: all)."""
        size = (
            metadata.num_data_bytes
            + metadata.num_column_metadata_bytes
            + metadata.num_global_buffer_bytes
            + _FOOTER_BYTES
        )
        read = [
            _pages(column)
            for name, column in zip(metadata.schema.names, metadata.columns, strict=False)
            if columns is None or name in columns
        ]
        return cls(size, tuple(read))

    @property
    def is_read_whole(self) -> bool:
        """Whether opening the file reads all of it."""
        return self.size <= END_BYTES

    def opening(self) -> tuple[int, int]:
        """Of its length and its end."""
        return 2, min(self.size, END_BYTES)

    def buffer(self, nbytes: int) -> tuple[int, int]:
        """Of a global buffer."""
        return (0, 0) if self.is_read_whole else (1, nbytes)

    def range(self, start: int, count: int) -> tuple[int, int]:
        """Of consecutive rows."""
        if self.is_read_whole:
            return 0, 0
        requests = nbytes = 0
        for page in self._pages:
            rows = min(start + count, page.start + page.rows) - max(start, page.start)
            if rows > 0:
                requests += 1 + (page.table > 0)
                nbytes += page.table + page.values * rows // page.rows
        return requests, nbytes

    def take(self, rows: Sequence[int], nbytes: int) -> tuple[int, int]:
        """Of rows by number, which ascend, and whose values have so many bytes."""
        if self.is_read_whole:
            return 0, 0
        requests = 0
        taken = np.asarray(rows, dtype=np.int64)
        for page in self._pages:
            begin, end = taken.searchsorted([page.start, page.start + page.rows])
            if begin < end:
                each = max(1, page.values // page.rows)
                gaps = np.diff(taken[begin:end]) * each > END_BYTES
                requests += 1 + int(np.count_nonzero(gaps)) + (page.table > 0)
                nbytes += page.table
        return requests, nbytes

    @property
    def _pages(self) -> Iterable[_Page]:
        return (page for column in self.columns for page in column)


def _pages(column: Any) -> tuple[_Page, ...]:
    pages: list[_Page] = []
    start = 0
    for page in column.pages:
        found = _ROWS.search(page.encoding)
        sizes = [buffer.size for buffer in page.buffers]
        # A page without values is of one and the same.
        rows = int(found[1]) if found else 0
        if rows and sizes:
            largest = max(sizes)
            pages.append(_Page(start, rows, sum(sizes) - largest, largest))
        start += rows
    return tuple(pages)
