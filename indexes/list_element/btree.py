"""Storage Layout: reads the target BTree's two files, `page_lookup` and `page_data`.

`page_data.lance` holds the entries, sorted by `values`, NULLs first, in pages of equal
size; `page_lookup.lance` the least and the greatest value of each page. The lookup is held
in memory, pages in the session's cache.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..cache import ReaderCache
from ..dataset_files import DatasetFiles
from ..errors import CorruptIndexError
from ..lance_file import OPEN_FILE_BYTES, OpenFile
from ..manifest import IndexSegment
from ..search_stats import SearchStats
from .btree_files import (
    BATCH_SIZE,
    PAGE_DATA,
    PAGE_DATA_SCHEMA,
    PAGE_LOOKUP,
    PAGE_LOOKUP_SCHEMA,
    RANGE_PARTITIONED,
)
from .byte_search import ByteStrings, Positions, lower_bounds
from .key_range import TupleRanges

Ids = npt.NDArray[np.uint64]

# How many pages are held at once while a wide search goes on, cached or not.
_PAGES_AT_ONCE: Final = 256
# Reading a page that is not needed costs less than starting another read, from an object store
# several of them.
_GAP: Final = 4
_GAP_OF_STORE: Final = 8
# Up to so many ranges, one after the other is faster than all at once.
_FEW_RANGES: Final = 64
_NONE: Final = np.empty(0, dtype=np.uint64)


@dataclass(frozen=True, slots=True)
class Page:
    """A page's entries: `ids` of all of them, `values` of those after the `nulls` first."""

    nulls: int
    values: ByteStrings
    ids: Ids

    @property
    def nbytes(self) -> int:
        """The bytes that the page takes in memory."""
        return self.values.nbytes + self.ids.nbytes


@dataclass(frozen=True, slots=True)
class PageLookup:
    """The pages of a segment, in order: what each begins and ends with, and its NULLs.

    The first `null_pages` hold nothing but NULLs. `least` and `greatest` are of the pages
    after those; `least` is empty for a page that begins with a NULL.
    """

    page_rows: int
    rows: int
    null_counts: npt.NDArray[np.int64]
    null_pages: int
    least: list[bytes]
    greatest: list[bytes]

    @property
    def nbytes(self) -> int:
        """The bytes that it takes in memory, roughly."""
        values = sum(map(len, self.least)) + sum(map(len, self.greatest))
        return values + 200 * len(self.null_counts)

    def size(self, page: int) -> int:
        """How many rows a page has: all but the last are full."""
        return min(self.page_rows, self.rows - page * self.page_rows)

    def pages_of(self, low: bytes, high: bytes) -> tuple[int, int]:
        """The first page that may hold values of a range, and the last; none if it is less."""
        first = bisect_left(self.greatest, low)
        return first + self.null_pages, bisect_left(self.least, high) + self.null_pages - 1


@dataclass(frozen=True, slots=True)
class _Ranges:
    """Ranges with the first and the last page that may hold values of each."""

    low: list[bytes]
    high: list[bytes]
    first: list[int]
    last: list[int]

    @classmethod
    def of(cls, ranges: TupleRanges, lookup: PageLookup) -> _Ranges:
        """Those of the ranges for which there is such a page."""
        found = cls([], [], [], [])
        for low, high in zip(ranges.low, ranges.high, strict=True):
            first, last = lookup.pages_of(low, high)
            if first <= last:
                found.low.append(low)
                found.high.append(high)
                found.first.append(first)
                found.last.append(last)
        return found

    @property
    def touched(self) -> int:
        """How many pages the ranges touch, a page counted for each range."""
        return sum(self.last) - sum(self.first) + len(self.first)


class BTree:
    """The target of one segment; thread-safe.

    What it has read is kept in the session's cache and nowhere else. Raises
    `CorruptIndexError`, with the file and the failed check, for what is not as written.
    """

    def __init__(
        self, segment: IndexSegment, files: DatasetFiles, folder: str, cache: ReaderCache
    ) -> None:
        """Reads nothing yet. `folder`, under the base of `files`, is the segment's own."""
        self._segment = segment
        self._files = files
        self._cache = cache
        self._data = f"{folder}/{PAGE_DATA}"
        self._lookup = f"{folder}/{PAGE_LOOKUP}"
        self.path = files.path(self._data)

    def search(self, ranges: TupleRanges, stats: SearchStats) -> Ids:
        """The ids of the entries whose values are in one of the ranges, as they stand.

        A row with several such elements is there several times.
        """
        lookup = self.lookup(stats)
        found = _Ranges.of(ranges, lookup)
        if len(found.low) <= _FEW_RANGES and found.touched <= _PAGES_AT_ONCE:
            return _joined(list(self._few(lookup, found, stats)))
        return _joined(list(self._many(lookup, found, stats)))

    def null_ids(self, stats: SearchStats) -> Ids:
        """The ids of the entries whose value is NULL: the rows whose list is."""
        lookup = self.lookup(stats)
        pages = np.flatnonzero(lookup.null_counts)
        found = [
            page.ids[: page.nulls]
            for at in range(0, len(pages), _PAGES_AT_ONCE)
            for page in self._pages(lookup, pages[at : at + _PAGES_AT_ONCE].tolist(), stats)
        ]
        return _joined(found)

    # -- searching ----------------------------------------------------------------------

    def _few(self, lookup: PageLookup, ranges: _Ranges, stats: SearchStats) -> Iterator[Ids]:
        """The ids in a few ranges that touch few pages: one range after the other."""
        spans = list(zip(ranges.first, ranges.last, strict=True))
        numbers = sorted({n for first, last in spans for n in range(first, last + 1)})
        pages = dict(zip(numbers, self._pages(lookup, numbers, stats), strict=True))
        for (first, last), low, high in zip(spans, ranges.low, ranges.high, strict=True):
            begin = pages[first].nulls + bisect_left(pages[first].values, low)
            end = pages[last].nulls + bisect_left(pages[last].values, high)
            if first == last:
                yield pages[first].ids[begin:end]
            else:
                yield pages[first].ids[begin:]
                yield from (pages[number].ids for number in range(first + 1, last))
                yield pages[last].ids[:end]

    def _many(self, lookup: PageLookup, ranges: _Ranges, stats: SearchStats) -> Iterator[Ids]:
        """The ids in ranges of any number: all of them at once, some pages at a time."""
        first, last = np.array(ranges.first), np.array(ranges.last)
        low, high = ByteStrings.of_bytes(ranges.low), ByteStrings.of_bytes(ranges.high)
        touched = _union(first, last)
        for at in range(0, len(touched), _PAGES_AT_ONCE):
            numbers = touched[at : at + _PAGES_AT_ONCE]
            held = _HeldPages(self._pages(lookup, numbers.tolist(), stats))
            # The ranges with a part in these pages stand together, since ranges ascend:
            # from `a` on; from `b` on they begin here, before `c` they end here; up to `d`.
            a, b = (int(np.searchsorted(pages, numbers[0])) for pages in (last, first))
            c, d = (int(np.searchsorted(pages, numbers[-1], "right")) for pages in (last, first))
            begin = np.full(d - a, held.nulls[0])
            begin[b - a :] = held.rows_of(np.searchsorted(numbers, first[b:d]), low.part(b, d))
            stop = np.full(d - a, len(held.ids))
            stop[: c - a] = held.rows_of(np.searchsorted(numbers, last[a:c]), high.part(a, c))
            yield _spans(held.ids, begin, stop)

    # -- reading ------------------------------------------------------------------------

    def lookup(self, stats: SearchStats) -> PageLookup:
        """What each page begins and ends with."""

        def load() -> tuple[PageLookup, int]:
            made = self._read_lookup(stats)
            return made, made.nbytes

        return self._cache.get(self._key("lookup"), load)

    def _key(self, *what: Hashable) -> Hashable:
        return (self._segment.uuid, self.path, *what)

    def _file(self, stats: SearchStats) -> OpenFile:
        return self._cache.get(
            self._key("file"), lambda: (self._open_data(stats), OPEN_FILE_BYTES), handles=1
        )

    def _open_data(self, stats: SearchStats) -> OpenFile:
        file = OpenFile(self._files, self._data, stats=stats)
        self._check_schema(file, PAGE_DATA_SCHEMA)
        return file

    def _check_schema(self, file: OpenFile, expected: pa.Schema) -> None:
        if not file.schema.equals(expected):
            described = ", ".join(f"{field.name}: {field.type}" for field in file.schema)
            raise CorruptIndexError(file.path, f"its columns are {described}")

    def _read_lookup(self, stats: SearchStats) -> PageLookup:
        file = OpenFile(self._files, self._lookup, stats=stats)
        self._check_schema(file, PAGE_LOOKUP_SCHEMA)
        metadata = file.schema.metadata or {}
        page_rows = metadata.get(BATCH_SIZE, b"")
        if not page_rows.isdigit() or int(page_rows) < 1:
            raise CorruptIndexError(file.path, f"its batch_size is {page_rows.decode()!r}")
        if metadata.get(RANGE_PARTITIONED, b"false") != b"false":
            raise CorruptIndexError(file.path, "it is partitioned by ranges, which is not read")
        table = file.read_range(0, file.num_rows, stats)
        rows = self._file(stats).num_rows
        stats.bytes_read += table.nbytes
        try:
            return _page_lookup(table, int(page_rows), rows)
        except ValueError as error:
            raise CorruptIndexError(file.path, str(error)) from error

    def _pages(self, lookup: PageLookup, numbers: Sequence[int], stats: SearchStats) -> list[Page]:
        """The pages of the given numbers, which ascend; neighbours are read together."""
        found = {n: self._cache.peek(self._key("page", n)) for n in numbers}
        missing = [n for n, page in found.items() if page is None]
        if missing:
            found.update(self._read_pages(lookup, missing, stats))
        return [page for page in found.values() if page is not None]

    def _read_pages(
        self, lookup: PageLookup, numbers: Sequence[int], stats: SearchStats
    ) -> dict[int, Page]:
        file = self._file(stats)
        runs = _runs(numbers, _GAP if file.in_memory else _GAP_OF_STORE)
        starts = [run[0] * lookup.page_rows for run in runs]
        ends = [run[-1] * lookup.page_rows + lookup.size(run[-1]) for run in runs]
        counts = [end - start for start, end in zip(starts, ends, strict=True)]
        batches = file.read_ranges(list(zip(starts, counts, strict=True)), stats)
        read: dict[int, Page] = {}
        for run, start, count, batch in zip(runs, starts, counts, batches, strict=True):
            if len(batch) != count:
                raise CorruptIndexError(
                    self.path, f"{len(batch)} rows where there should be {count}"
                )
            for number in run:
                at = number * lookup.page_rows - start
                page = self._page(lookup, number, batch.slice(at, lookup.size(number)))
                self._cache.put(self._key("page", number), page, page.nbytes)
                stats.pages_read += 1
                stats.bytes_read += page.nbytes
                read[number] = page
        return read

    def _page(self, lookup: PageLookup, number: int, batch: pa.RecordBatch) -> Page:
        check_page(self.path, lookup, number, batch)
        values, ids = batch.columns
        inside = values.slice(values.null_count)
        # Copied: a slice would keep the whole run's buffers while it is cached.
        return Page(values.null_count, ByteStrings.of(inside), ids.to_numpy().copy())


def _runs(numbers: Sequence[int], gap: int) -> list[list[int]]:
    """Ascending numbers, those together that are at most `gap` apart."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number - runs[-1][-1] <= gap:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def check_page(path: str, lookup: PageLookup, number: int, batch: pa.RecordBatch) -> None:
    """Raises `CorruptIndexError` where the rows of a page are not those that the lookup knows."""
    values, ids = batch.columns
    nulls = values.null_count
    inside = values.slice(nulls)
    ordinal = number - lookup.null_pages
    # The lookup knows a page by these three; a file of another index or build differs.
    same = len(batch) == lookup.size(number) and nulls == int(lookup.null_counts[number])
    same = same and inside.null_count == 0
    if same and len(inside):
        begins = nulls > 0 or inside[0].as_py() == lookup.least[ordinal]
        same = begins and inside[-1].as_py() == lookup.greatest[ordinal]
    if not same or ids.null_count:
        raise CorruptIndexError(path, f"page {number} is not the one of {PAGE_LOOKUP}")
    if pc.any(pc.less(inside.slice(1), inside.slice(0, max(len(inside) - 1, 0)))).as_py():
        raise CorruptIndexError(path, f"the values of page {number} do not ascend")


class _HeldPages:
    """Some pages of a segment one after the other, as if they were one."""

    def __init__(self, pages: Sequence[Page]) -> None:
        self._pages = pages
        sizes = [len(page.ids) for page in pages]
        self._starts = np.cumsum([0, *sizes[:-1]])
        self.nulls = np.array([page.nulls for page in pages], dtype=np.int64)
        self.ids = _joined([page.ids for page in pages])

    def rows_of(self, at: Positions, bounds: ByteStrings) -> Positions:
        """The first row in page `at[i]` whose value is not less than bound `i`."""
        values = [page.values for page in self._pages]
        ends = np.cumsum([0, *map(len, values)])
        found = lower_bounds(ByteStrings.joined(values), bounds, ends[at], ends[at + 1])
        return found - ends[at] + self._starts[at] + self.nulls[at]


def _page_lookup(table: pa.RecordBatch, page_rows: int, rows: int) -> PageLookup:
    """The lookup in the rows of `page_lookup`; `ValueError` where they fit no such file."""
    pages = -(-rows // page_rows)
    if len(table) != pages:
        raise ValueError(f"it lists {len(table)} pages, and {rows} rows make {pages}")
    if pages == 0:
        return PageLookup(page_rows, rows, np.zeros(0, dtype=np.int64), 0, [], [])
    order = table.column("page_idx").to_numpy()
    if not np.array_equal(np.sort(order), np.arange(pages)):
        raise ValueError("its page_idx are not those of the pages")
    if not np.array_equal(order, np.arange(pages)):
        table = pa.RecordBatch.from_struct_array(
            table.to_struct_array().take(pa.array(np.argsort(order)))
        )
    null_counts = table.column("null_count").to_numpy().astype(np.int64)
    sizes = np.full(pages, page_rows)
    sizes[-1] = rows - (pages - 1) * page_rows
    null_pages = int(np.searchsorted(null_counts < sizes, True))
    mixed = null_counts[null_pages : null_pages + 1] > 0
    if (null_counts[:null_pages] != sizes[:null_pages]).any() or (
        null_counts[null_pages + 1 :].any()
    ):
        raise ValueError("NULLs behind values")
    least: list[bytes | None] = table.column("min").slice(null_pages).to_pylist()
    greatest: list[bytes | None] = table.column("max").slice(null_pages).to_pylist()
    if table.column("max").null_count != null_pages or any(
        (value is None) != (at < len(mixed) and bool(mixed[at])) for at, value in enumerate(least)
    ):
        raise ValueError("a page with values has no min or max, or one without has them")
    minima, maxima = [value or b"" for value in least], [value or b"" for value in greatest]
    ends = [end for pair in zip(minima, maxima, strict=True) for end in pair]
    if any(a > b for a, b in pairwise(ends)):
        raise ValueError("its pages do not ascend")
    return PageLookup(page_rows, rows, null_counts, null_pages, minima, maxima)


def _union(first: Positions, last: Positions) -> Positions:
    """All pages from each `first` to its `last`, once each; both ascend."""
    steps = np.zeros(int(last[-1]) + 2, dtype=np.int64)
    np.add.at(steps, first, 1)
    np.add.at(steps, last + 1, -1)
    return np.flatnonzero(np.cumsum(steps))


def _spans(ids: Ids, begin: Positions, end: Positions) -> Ids:
    """The ids from each `begin` to its `end`; spans ascend and do not overlap."""
    steps = np.zeros(len(ids) + 1, dtype=np.int32)
    np.add.at(steps, begin, 1)
    np.add.at(steps, end, -1)
    return ids[np.cumsum(steps[:-1]) > 0]


def _joined(parts: Sequence[Ids]) -> Ids:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else _NONE
