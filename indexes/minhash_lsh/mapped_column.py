"""Columns without compression in a local Lance file, mapped into memory.

Lance stores them in two ways, each page of a column in one: *full-zip*, one dense buffer of
values, and *mini-block*, chunks of values with a header of their own and a table of the
chunks' sizes. A page that is described by any other words than the ones here is left to
pylance.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..lance_file import ColumnPage, OpenFile

Bytes = npt.NDArray[np.uint8]
Values = npt.NDArray[Any]

_FLAT: Final = "CompressiveEncoding{compression:Some(Flat(Flat{bits_per_value:%d,data:None,},),),}"
_FULL_ZIP: Final = (
    "PageLayout{layout:Some(FullZipLayout(FullZipLayout{bits_rep:0,bits_def:0,num_items:#,"
    "num_visible_items:#,value_compression:Some(CompressiveEncoding{compression:Some("
    "FixedSizeList(FixedSizeList{items_per_value:%d,has_validity:false,values:Some(%s,),},),),},),"
    "layers:[RepdefAllValidItem,],details:Some(BitsPerValue(%d,),),},),),}"
)
_MINI_BLOCK: Final = (
    "PageLayout{layout:Some(MiniBlockLayout(MiniBlockLayout{rep_compression:None,"
    "def_compression:None,value_compression:Some(%s,),dictionary:None,num_dictionary_items:0,"
    "layers:[RepdefAllValidItem,],num_buffers:1,repetition_index_depth:0,num_items:#,"
    "has_large_chunk:true,},),),}"
)
# A chunk's word in the table of sizes: eights of bytes less one above these bits, which are
# the logarithm of the number of its values, 0 for the last chunk's rest.
_LOG_BITS: Final = 4
_EIGHT: Final = 8
_WORD: Final = 4
# A chunk's header: no repetition and definition levels (u16), the size of its values (u32),
# padding.
_HEADER: Final = 8
_HEADER_CHECKED: Final = 6


@dataclass(frozen=True, slots=True)
class _FullZipPage:
    """`values`: (rows, items)."""

    values: Values

    @property
    def rows(self) -> int:
        return len(self.values)


@dataclass(frozen=True, slots=True)
class _MiniBlockPage:
    """`words` are the table of the chunks' sizes, `chunks` the chunks themselves."""

    rows: int
    words: npt.NDArray[np.uint32]
    chunks: Bytes
    kind: np.dtype[Any]

    def read(self, begin: int, end: int) -> Values | None:
        """The values, copied; None where a chunk is not as it should be."""
        full = len(self.words) - 1
        word = int(self.words[0])
        values, size = 1 << (word & ((1 << _LOG_BITS) - 1)), ((word >> _LOG_BITS) + 1) * _EIGHT
        if full == 0:
            values = self.rows
        elif size != _HEADER + values * self.kind.itemsize:
            return None
        rest = self.rows - full * values
        if not 0 < rest <= values:
            return None
        first, last = begin // values, (end - 1) // values
        parts: list[Values] = []
        stop = min(last + 1, full)
        if first < stop:
            region = self.chunks[first * size : stop * size]
            if len(region) != (stop - first) * size or (self.words[first:stop] != word).any():
                return None
            parts.append(self._values(region.reshape(-1, size), values))
        if last >= full:
            tail = self.chunks[full * size :][: _HEADER + rest * self.kind.itemsize]
            if len(tail) != _HEADER + rest * self.kind.itemsize:
                return None
            parts.append(self._values(tail.reshape(1, -1), rest))
        if any(len(part) == 0 for part in parts):
            return None
        read = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return read[begin - first * values : end - first * values]

    def _values(self, chunks: Bytes, values: int) -> Values:
        """The values of whole chunks; none where a header is not as it should be."""
        header = b"\0\0" + (values * self.kind.itemsize).to_bytes(4, "little")
        expected = np.frombuffer(header, dtype=np.uint8)
        if (chunks[:, :_HEADER_CHECKED] != expected).any():
            return np.empty(0, dtype=self.kind)
        return np.ascontiguousarray(chunks[:, _HEADER:]).reshape(-1).view(self.kind)


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
    bits = kind.itemsize * 8
    layout = _Layout(_FULL_ZIP % (items, _FLAT % bits, items * bits))
    pages: list[_FullZipPage] = []
    for page, buffers in _buffers(file, column):
        rows = layout.rows(page.encoding)
        if not rows or [len(b) for b in buffers] != [rows * items * kind.itemsize]:
            return None
        pages.append(_FullZipPage(buffers[0].view(kind).reshape(rows, items)))
    return MappedLists(pages) if _complete(file, pages) else None


def map_numbers(file: OpenFile, column: int, dtype: npt.DTypeLike) -> MappedNumbers | None:
    """A column of numbers; None where the file is not local, or not like that."""
    kind = np.dtype(dtype).newbyteorder("<")
    layout = _Layout(_MINI_BLOCK % (_FLAT % (kind.itemsize * 8)))
    pages: list[_MiniBlockPage] = []
    for page, buffers in _buffers(file, column):
        rows = layout.rows(page.encoding)
        if not rows or len(buffers) != 2 or not len(buffers[0]) or len(buffers[0]) % _WORD:
            return None
        pages.append(_MiniBlockPage(rows, buffers[0].view("<u4"), buffers[1], kind))
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


class _Layout:
    """A description of a page, in which # stands for its number of rows."""

    def __init__(self, words: str) -> None:
        before, number, after = re.escape(words).partition(re.escape("#"))
        again = after.replace(number, r"\1")
        self._pattern = re.compile(rf"{before}(\d+){again}")
        # Most pages of a column have as many rows as the others.
        self._known: dict[str, int] = {}

    def rows(self, encoding: str) -> int:
        """The number of rows of a page that is described like that, 0 for any other."""
        if encoding not in self._known:
            found = self._pattern.fullmatch("".join(encoding.split()))
            self._known[encoding] = int(found[1]) if found else 0
        return self._known[encoding]
