"""Bands File: the documents in the buckets of band keys.

The pages of a bucket are known from the page table; the pages that a search reads are kept
in the session's cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..byte_ranges import Range
from ..cache import ReaderCache
from ..errors import CorruptIndexError
from ..search_stats import SearchStats
from .column_layout import Values
from .mapped_column import MappedNumbers, map_numbers
from .ranged_column import RangedNumbers, ranged_numbers
from .segment import BAND_KEY, DOC_ID, Segment

Keys = npt.NDArray[np.uint64]
Docs = npt.NDArray[np.uint32]
Spans = list[tuple[np.uint64, int]]

# How many pages of one bucket are held at once, cached or not.
_PAGES_AT_ONCE: Final = 256
# A row that is asked for among so many is found faster in a mask than by sorting.
_MASKED_FROM: Final = 16
_NONE: Final = np.empty(0, dtype=np.uint32)


@dataclass(frozen=True, slots=True)
class BandPage:
    """Some rows of the bands file, ascending by key."""

    keys: Keys
    docs: Docs

    @property
    def nbytes(self) -> int:
        """The bytes that the rows take."""
        return self.keys.nbytes + self.docs.nbytes

    def bucket(self, key: np.uint64) -> Docs:
        """The documents with that key."""
        begin = int(self.keys.searchsorted(key))
        # Most buckets that are looked for are not there.
        if begin == len(self.keys) or self.keys[begin] != key:
            return _NONE
        return self.docs[begin : self.keys.searchsorted(key, "right")]


class Bands:
    """The bands table of one segment; thread-safe.

    Raises `CorruptIndexError` for a page that is not as written.
    """

    def __init__(self, segment: Segment, cache: ReaderCache) -> None:
        """Reads nothing yet."""
        self._segment = segment
        self._cache = cache

    def documents(self, keys: Keys, stats: SearchStats) -> Docs:
        """The documents in any of the buckets of `keys`, ascending, each once."""
        found = [docs for docs in self._buckets(keys, stats) if len(docs)]
        stats.buckets += len(found)
        if not found:
            return _NONE
        every = np.concatenate(found)
        if len(every) * _MASKED_FROM < self._segment.num_docs:
            every.sort()
            return every[np.concatenate(([True], every[1:] != every[:-1]))]
        mask = np.zeros(self._segment.num_docs, dtype=np.bool_)
        mask[every] = True
        return np.flatnonzero(mask).astype(np.uint32)

    def between(self, low: int, high: int, stats: SearchStats) -> BandPage:
        """All rows with `low <= key <= high`, in one piece that is not kept in the cache."""
        table = self._segment.page_table
        first = int(table.searchsorted(np.uint64(low)))
        last = min(int(table.searchsorted(np.uint64(high), "right")), len(table) - 1)
        if first > last:
            return BandPage(np.empty(0, dtype=np.uint64), _NONE)
        start, end = self._rows_of(first)[0], sum(self._rows_of(last))
        (rows,) = self._read_rows([(start, end - start)], stats)
        for number in range(first, last + 1):
            begin, count = self._rows_of(number)
            page = slice(begin - start, begin - start + count)
            self._checked(number, BandPage(rows.keys[page], rows.docs[page]))
        stats.pages_read += last - first + 1
        stats.bytes_read += rows.nbytes
        begin = rows.keys.searchsorted(np.uint64(low))
        end = rows.keys.searchsorted(np.uint64(high), "right")
        return BandPage(rows.keys[begin:end], rows.docs[begin:end])

    def _buckets(self, keys: Keys, stats: SearchStats) -> Iterator[Docs]:
        table = self._segment.page_table
        first = table.searchsorted(keys).tolist()
        last = np.minimum(table.searchsorted(keys, "right"), len(table) - 1).tolist()
        spans = [(k, a, b) for k, a, b in zip(keys, first, last, strict=True) if a < len(table)]
        for key, a, b in spans:
            if a < b:
                yield self._across_pages(key, range(a, b + 1), stats)
        yield from self._within_pages([(key, a) for key, a, b in spans if a == b], stats)

    def _across_pages(self, key: np.uint64, numbers: range, stats: SearchStats) -> Docs:
        parts = [
            page.bucket(key)
            for at in range(0, len(numbers), _PAGES_AT_ONCE)
            for page in self._pages(numbers[at : at + _PAGES_AT_ONCE], stats)
        ]
        return np.concatenate(parts)

    def _within_pages(self, spans: Spans, stats: SearchStats) -> Iterator[Docs]:
        """The buckets of keys that lie in one page each, as most do."""
        numbers = sorted({number for _, number in spans})
        pages = dict(zip(numbers, self._pages(numbers, stats), strict=True))
        for key, number in spans:
            yield pages[number].bucket(key)

    # -- reading ------------------------------------------------------------------------

    def _key(self, page: int) -> tuple[str, str, str, int]:
        return (*self._segment.key, "bands", page)

    def _corrupt(self, check: str) -> CorruptIndexError:
        return CorruptIndexError(self._segment.bands.path, check)

    def _pages(self, numbers: Sequence[int], stats: SearchStats) -> list[BandPage]:
        """The pages of the given numbers, which ascend."""
        found = {n: self._cache.peek(self._key(n)) for n in numbers}
        missing = [n for n, page in found.items() if page is None]
        if missing:
            found.update(self._read_pages(missing, stats))
        return [page for page in found.values() if page is not None]

    def _read_pages(self, numbers: Sequence[int], stats: SearchStats) -> dict[int, BandPage]:
        read: dict[int, BandPage] = {}
        rows = self._read_rows([self._rows_of(number) for number in numbers], stats)
        for number, unchecked in zip(numbers, rows, strict=True):
            page = self._checked(number, unchecked)
            self._cache.put(self._key(number), page, page.nbytes)
            read[number] = page
            stats.pages_read += 1
            stats.bytes_read += page.nbytes
        return read

    def _rows_of(self, number: int) -> tuple[int, int]:
        """Where a page begins, and how many rows it has: all but the last are full."""
        segment = self._segment
        start = number * segment.page_rows
        return start, min(segment.page_rows, segment.bands.num_rows - start)

    def _read_rows(self, spans: Sequence[Range], stats: SearchStats) -> Iterator[BandPage]:
        """The rows of each span, a start and a count."""
        columns = self._columns()
        read = repeat(None, len(spans)) if columns is None else columns.read(spans, stats)
        for (start, count), found in zip(spans, read, strict=True):
            yield self._by_pylance(start, count, stats) if found is None else BandPage(*found)

    def _by_pylance(self, start: int, count: int, stats: SearchStats) -> BandPage:
        # Not `take_rows`, which aborts the process over some damages of the payload.
        read = self._segment.bands.read_range(start, count, stats)
        columns = [read.column(BAND_KEY), read.column(DOC_ID)]
        types = [column.type for column in columns]
        size = self._segment.page_rows
        first, last = start // size, (start + count - 1) // size
        what = f"page {first}" if first == last else f"pages {first} to {last}"
        if types != [pa.uint64(), pa.uint32()] or any(c.null_count for c in columns):
            raise self._corrupt(f"{what} is not of keys and documents that are not null")
        if len(read) != count:
            raise self._corrupt(f"{what} has {len(read)} rows, and not {count}")
        # Copied: what is kept must not hold on to what else was read.
        keys, docs = (column.to_numpy().copy() for column in columns)
        return BandPage(keys, docs)

    def _checked(self, number: int, page: BandPage) -> BandPage:
        if page.keys[-1] != self._segment.page_table[number]:
            raise self._corrupt(f"page {number} ends with another key than in the page table")
        if (page.keys[1:] < page.keys[:-1]).any():
            raise self._corrupt(f"the keys of page {number} do not ascend")
        greatest = page.docs.max()
        if greatest >= self._segment.num_docs:
            raise self._corrupt(
                f"doc_id {greatest} in page {number}, and there are {self._segment.num_docs}"
            )
        return page

    def _columns(self) -> _Mapped | RangedNumbers | None:
        """Both columns, mapped into memory or read by ranges of bytes, where that can be done."""

        def load() -> tuple[tuple[_Mapped | RangedNumbers | None], int]:
            file = self._segment.bands
            keys = map_numbers(file, 0, np.uint64)
            docs = map_numbers(file, 1, np.uint32)
            if keys is not None and docs is not None:
                return (_Mapped(keys, docs),), 0
            return (ranged_numbers(file, (np.uint64, np.uint32)),), 0

        return self._cache.get((*self._segment.key, "columns of bands"), load, handles=1)[0]


class _Mapped:
    """Both columns of a local file."""

    def __init__(self, keys: MappedNumbers, docs: MappedNumbers) -> None:
        self._keys = keys
        self._docs = docs

    def read(
        self, spans: Sequence[Range], _stats: SearchStats
    ) -> Iterator[tuple[Values, ...] | None]:
        """For each start and count, keys and documents; None where pylance is to read them."""
        for start, count in spans:
            keys, docs = self._keys.read(start, count), self._docs.read(start, count)
            yield None if keys is None or docs is None else (keys, docs)
