"""Columns without compression in a local Lance file, mapped into memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ..lance_file import ColumnPage, OpenFile
from .column_layout import Bytes, FullZipLayout, MiniBlock, MiniBlockLayout, Values


@dataclass(frozen=True, slots=True)
class _FullZipPage:
    """`values`: (rows, items)."""

    values: Values

    @property
    def rows(self) -> int:
        return len(self.values)


@dataclass(frozen=True, slots=True)
class _MiniBlockPage:
    """A page and its chunks."""

    block: MiniBlock
    chunks: Bytes

    @property
    def rows(self) -> int:
        return self.block.rows

    def read(self, begin: int, end: int) -> Values | None:
        """The values, copied; None where a chunk is not as it should be."""
        span = self.block.span(begin, end)
        if span is None:
            return None
        data = self.chunks[span[0] : span[0] + span[1]]
        return self.block.read(begin, end, data) if len(data) == span[1] else None


class MappedLists:
    """A column of fixed-size lists, all pages of it full-zip.

    The file must not change: what is cut off after it was mapped ends the process.
    """

    def __init__(self, pages: list[_FullZipPage]) -> None:
        self._pages = pages
        self._ends = np.cumsum([page.rows for page in pages], dtype=np.int64)

    def take(self, rows: npt.NDArray[np.int64]) -> Values:
        """The lists at `rows`, which ascend and are at least one: (n, items)."""
        pages = self._ends.searchsorted(rows, side="right")
        bounds = [0, *(np.flatnonzero(pages[1:] != pages[:-1]) + 1).tolist(), len(rows)]
        parts: list[Values] = []
        for low, high in pairwise(bounds):
            at = int(pages[low])
            page = self._pages[at]
            parts.append(page.values[rows[low:high] - (self._ends[at] - page.rows)])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def runs(self, start: int, end: int) -> Iterator[Values]:
        """The lists from `start` up to `end`, page by page, not copied."""
        while start < end:
            at = int(np.searchsorted(self._ends, start, side="right"))
            page = self._pages[at]
            base = int(self._ends[at]) - page.rows
            stop = min(end - base, page.rows)
            yield page.values[start - base : stop]
            start = base + stop


class MappedNumbers:
    """A column of unsigned numbers, all pages of it mini-block.

    The file must not change: what is cut off after it was mapped ends the process.
    """

    def __init__(self, pages: list[_MiniBlockPage]) -> None:
        self._pages = pages
        self._ends = np.cumsum([page.rows for page in pages], dtype=np.int64)

    def read(self, start: int, count: int) -> Values | None:
        """The `count` numbers from `start` on, all of them in the column, copied.

        None where a chunk is not as it should be: pylance is to read it then.
        """
        parts: list[Values] = []
        end = start + count
        while start < end:
            at = int(np.searchsorted(self._ends, start, side="right"))
            page = self._pages[at]
            base = int(self._ends[at]) - page.rows
            stop = min(end - base, page.rows)
            part = page.read(start - base, stop)
            if part is None:
                return None
            parts.append(part)
            start = base + stop
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


def map_lists(file: OpenFile, column: int, dtype: npt.DTypeLike, items: int) -> MappedLists | None:
    """A column of lists of `items` numbers; None where the file is not local, or not like that."""
    kind = np.dtype(dtype).newbyteorder("<")
    layout = FullZipLayout(kind, items)
    pages: list[_FullZipPage] = []
    for page, buffers in _buffers(file, column):
        rows = layout.rows(page)
        if not rows or len(buffers[0]) != rows * layout.width:
            return None
        pages.append(_FullZipPage(buffers[0].view(kind).reshape(rows, items)))
    return MappedLists(pages) if _complete(file, pages) else None


def map_numbers(file: OpenFile, column: int, dtype: npt.DTypeLike) -> MappedNumbers | None:
    """A column of numbers; None where the file is not local, or not like that."""
    kind = np.dtype(dtype).newbyteorder("<")
    layout = MiniBlockLayout(kind)
    pages: list[_MiniBlockPage] = []
    for page, buffers in _buffers(file, column):
        rows = layout.rows(page)
        if not rows or len(buffers[0]) != page.buffers[0][1]:
            return None
        block = MiniBlock(rows, buffers[0].view("<u4"), kind)
        pages.append(_MiniBlockPage(block, buffers[1]))
    return MappedNumbers(pages) if _complete(file, pages) else None


def _complete(file: OpenFile, pages: Sequence[_FullZipPage | _MiniBlockPage]) -> bool:
    return 0 < file.num_rows == sum(page.rows for page in pages)


def _buffers(file: OpenFile, column: int) -> Iterator[tuple[ColumnPage, list[Bytes]]]:
    """The pages of a local file's column with their bytes; none where it cannot be mapped."""
    if file.local_path is None:
        return
    try:
        # As a plain array: numpy's class for a mapped file costs at every slice.
        whole = np.asarray(np.memmap(file.local_path, dtype=np.uint8, mode="r"))
    except (OSError, ValueError):
        return
    for page in file.column_pages(column):
        yield page, [whole[position : position + size] for position, size in page.buffers]
