"""The entries of a committed segment, as a run to merge with others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from ..cache import ReaderCache
from ..dataset_files import DatasetFiles
from ..lance_file import OpenFile
from ..manifest import IndexSegment
from ..search_stats import SearchStats
from .btree import BTree, PageLookup, check_page
from .btree_files import PAGE_DATA
from .merge import Key, SortedRun

_ROW_BITS: Final = np.uint64(32)
_PAGES_AT_ONCE: Final = 16


class SegmentRun(SortedRun):
    """The entries of a segment for the rows of some fragments; a batch is a page of it.

    Raises `CorruptIndexError` for a page that is not what the page table says: what is copied
    from it would look sound.
    """

    def __init__(
        self,
        segment: IndexSegment,
        files: DatasetFiles,
        folder: str,
        fragment_ids: frozenset[int],
        read: Callable[[int], object],
    ) -> None:
        """`read` is told the number of entries whenever a page is read for the first time."""
        self._file = OpenFile(files, f"{folder}/{PAGE_DATA}")
        tree = BTree(segment, files, folder, ReaderCache(0))
        self._lookup: PageLookup = tree.lookup(SearchStats())
        nulls: list[Key] = [(False, b"")] * self._lookup.null_pages
        super().__init__(nulls + [(True, value) for value in self._lookup.greatest])
        self._fragments = np.array(sorted(fragment_ids), dtype=np.uint64)
        self._read = read
        self._furthest = -1
        self._block: tuple[int, pa.RecordBatch] | None = None

    @property
    def rows(self) -> int:
        """The number of entries in the segment, of whatever fragment."""
        return self._lookup.rows

    def batch(self, number: int) -> pa.RecordBatch:
        lookup = self._lookup
        size = lookup.size(number)
        page = self._page(number)
        check_page(self._file.path, lookup, number, page)
        if number > self._furthest:
            self._furthest = number
            self._read(size)
        fragments = page.column("ids").to_numpy() >> _ROW_BITS
        return page.filter(pa.array(np.isin(fragments, self._fragments)))

    def _page(self, number: int) -> pa.RecordBatch:
        lookup, file = self._lookup, self._file
        start = number * lookup.page_rows
        if file.in_memory:
            return file.read_range(start, lookup.size(number))
        # From an object store, pages come several together.
        first = number // _PAGES_AT_ONCE * _PAGES_AT_ONCE * lookup.page_rows
        if self._block is None or self._block[0] != first:
            count = min(_PAGES_AT_ONCE * lookup.page_rows, lookup.rows - first)
            self._block = first, file.read_range(first, count)
        return self._block[1].slice(start - first, lookup.size(number))
