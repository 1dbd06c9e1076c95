"""The entries of a committed segment, as a run to merge with others."""

from __future__ import annotations

from collections.abc import Callable

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

_ROW_BITS = np.uint64(32)


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

    @property
    def rows(self) -> int:
        """The number of entries in the segment, of whatever fragment."""
        return self._lookup.rows

    def batch(self, number: int) -> pa.RecordBatch:
        lookup = self._lookup
        size = lookup.size(number)
        page = self._file.read_range(number * lookup.page_rows, size)
        check_page(self._file.path, lookup, number, page)
        if number > self._furthest:
            self._furthest = number
            self._read(size)
        fragments = page.column("ids").to_numpy() >> _ROW_BITS
        return page.filter(pa.array(np.isin(fragments, self._fragments)))
