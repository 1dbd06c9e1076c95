"""Columns without compression in a large Lance file of an object store, read by ranges of bytes.

pylance would ask for the table of a page's chunks again at every read, and reads one after the
other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from ..byte_ranges import Range
from ..lance_file import ColumnPage, OpenFile
from ..search_stats import SearchStats
from .column_layout import FullZipLayout, MiniBlock, MiniBlockLayout, Values


@dataclass(frozen=True, slots=True)
class _Column:
    """The pages of a column of numbers of `kind`, and where the rows of each end."""

    kind: np.dtype[Any]
    pages: list[ColumnPage]
    rows: list[int]
    ends: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows `begin` to `end` of a page of a column, which are a part of what `span` asks for."""

    span: int
    column: int
    page: int
    begin: int
    end: int


class RangedNumbers:
    """Columns of numbers, all pages of them mini-block; thread-safe."""

    def __init__(self, file: OpenFile, columns: list[_Column]) -> None:
        self._file = file
        self._columns = columns
        self._blocks: dict[tuple[int, int], MiniBlock] = {}

    def read(
        self, spans: Sequence[Range], stats: SearchStats
    ) -> Iterator[tuple[Values, ...] | None]:
        """For each start and count, the numbers of every column, copied.

        None where a chunk is not as it should be: pylance is to read it then.
        """
        parts = [part for number, span in enumerate(spans) for part in self._parts(number, span)]
        self._read_blocks({(part.column, part.page) for part in parts}, stats)
        found = [(self._bytes_of(part), part) for part in parts]
        bad = {part.span for where, part in found if where is None}
        good = sorted(
            ((where, part) for where, part in found if where and part.span not in bad),
            key=lambda one: one[0],
        )
        data = self._file.read_bytes([where for where, _ in good], stats)
        values: dict[tuple[int, int], list[tuple[int, int, Values]]] = {}
        for (_, part), read in zip(good, data, strict=True):
            block = self._blocks[part.column, part.page]
            numbers = block.read(part.begin, part.end, np.frombuffer(read, dtype=np.uint8))
            if numbers is None:
                bad.add(part.span)
            else:
                of_column = values.setdefault((part.span, part.column), [])
                of_column.append((part.page, part.begin, numbers))
        for number in range(len(spans)):
            if number in bad:
                yield None
                continue
            yield tuple(_joined(values[number, column]) for column in range(len(self._columns)))

    def _parts(self, number: int, span: Range) -> Iterator[_Part]:
        for at, column in enumerate(self._columns):
            start, end = span[0], span[0] + span[1]
            while start < end:
                page = int(np.searchsorted(column.ends, start, side="right"))
                base = int(column.ends[page]) - column.rows[page]
                stop = min(end - base, column.rows[page])
                yield _Part(number, at, page, start - base, stop)
                start = base + stop

    def _bytes_of(self, part: _Part) -> Range | None:
        """Where the chunks of the rows are in the file; None where they are not in the page."""
        position, size = self._columns[part.column].pages[part.page].buffers[1]
        span = self._blocks[part.column, part.page].span(part.begin, part.end)
        if span is None or sum(span) > size:
            return None
        return position + span[0], span[1]

    def _read_blocks(self, pages: set[tuple[int, int]], stats: SearchStats) -> None:
        """Reads the words of the pages that have not been read yet."""
        missing = [
            (self._columns[column].pages[page].buffers[0], column, page)
            for column, page in pages
            if (column, page) not in self._blocks
        ]
        missing.sort()
        data = self._file.read_bytes([words for words, _, _ in missing], stats)
        for (_, column, page), words in zip(missing, data, strict=True):
            of = self._columns[column]
            block = MiniBlock(of.rows[page], np.frombuffer(words, dtype="<u4"), of.kind)
            self._blocks[column, page] = block


class RangedLists:
    """A column of fixed-size lists, all pages of it full-zip; thread-safe."""

    def __init__(self, file: OpenFile, column: _Column, items: int) -> None:
        self._file = file
        self._column = column
        self.items = items
        self._width = items * column.kind.itemsize

    def take(self, rows: npt.NDArray[np.int64], stats: SearchStats) -> Values:
        """The lists at `rows`, which ascend strictly: (n, items)."""
        bounds = [0, *(np.flatnonzero(np.diff(rows) != 1) + 1).tolist(), len(rows)]
        runs = zip(rows[bounds[:-1]].tolist(), np.diff(bounds).tolist(), strict=True)
        ranges = [one for start, count in runs for one in self._ranges(start, count)]
        return self._read(ranges, stats)

    def run(self, start: int, count: int, stats: SearchStats) -> Values:
        """The lists from `start` on: (count, items)."""
        return self._read(list(self._ranges(start, count)), stats)

    def _ranges(self, start: int, count: int) -> Iterator[Range]:
        """Where the rows are; pages may be anywhere, but they ascend."""
        column, end = self._column, start + count
        while start < end:
            page = int(np.searchsorted(column.ends, start, side="right"))
            base = int(column.ends[page]) - column.rows[page]
            stop = min(end - base, column.rows[page])
            offset = column.pages[page].buffers[0][0] + (start - base) * self._width
            yield offset, (stop - (start - base)) * self._width
            start = base + stop

    def _read(self, ranges: list[Range], stats: SearchStats) -> Values:
        data = b"".join(self._file.read_bytes(ranges, stats))
        return np.frombuffer(data, dtype=self._column.kind).reshape(-1, self.items)


def ranged_numbers(file: OpenFile, columns: Sequence[npt.DTypeLike]) -> RangedNumbers | None:
    """The first columns of a file; None where it is in memory anyway, or not like that."""
    if file.in_memory:
        return None
    found: list[_Column] = []
    for number, dtype in enumerate(columns):
        kind = np.dtype(dtype).newbyteorder("<")
        column = _column(file, number, kind, MiniBlockLayout(kind))
        if column is None:
            return None
        found.append(column)
    return RangedNumbers(file, found)


def ranged_lists(
    file: OpenFile, column: int, dtype: npt.DTypeLike, items: int
) -> RangedLists | None:
    """A column of lists of `items` numbers; None where it is in memory, or not like that."""
    if file.in_memory:
        return None
    kind = np.dtype(dtype).newbyteorder("<")
    found = _column(file, column, kind, FullZipLayout(kind, items))
    return None if found is None else RangedLists(file, found, items)


def _column(
    file: OpenFile, number: int, kind: np.dtype[Any], layout: FullZipLayout | MiniBlockLayout
) -> _Column | None:
    pages = file.column_pages(number)
    rows = [layout.rows(page) for page in pages]
    at = [page.buffers[0][0] for page in pages if page.buffers]
    # Ranges are read in the order of their places.
    if 0 in rows or not 0 < sum(rows) == file.num_rows or at != sorted(at):
        return None
    return _Column(kind, pages, rows, np.array(list(accumulate(rows)), dtype=np.int64))


def _joined(parts: list[tuple[int, int, Values]]) -> Values:
    """The parts, by page and row, as one."""
    values = [values for _, _, values in sorted(parts, key=lambda part: part[:2])]
    return values[0] if len(values) == 1 else np.concatenate(values)
