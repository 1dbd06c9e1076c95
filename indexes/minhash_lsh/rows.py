"""Which rows the documents of a segment are, in one version of the table."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import CorruptIndexError
from ..search_stats import SearchStats
from .segment import ROW_ID, Segment

if TYPE_CHECKING:
    from ..snapshot import Snapshot

Ids = npt.NDArray[np.uint64]
Docs = npt.NDArray[np.uint32]

# The row ids of so many documents are read as a whole as fast as those of some.
_WHOLE_UP_TO: Final = 1 << 16
# Those of a larger segment in pages of so many, unless more pages are asked for at once than
# that number and that share of them.
_PAGE_ROWS: Final = 1 << 14
_PAGES_AT_ONCE: Final = 16
_SHARE_OF_PAGES: Final = 4
# From that share of the documents on, the places of all of them are found, and kept.
_ALL_FROM: Final = 4


@dataclass(frozen=True, slots=True)
class Located:
    """Documents' rows: address, row id in the version, and whether it counts, each (n,).

    Those count that are live rows of the fragments that the segment answers for.
    """

    addresses: Ids
    row_ids: Ids
    counts: npt.NDArray[np.bool_]

    @property
    def nbytes(self) -> int:
        """The bytes that they take."""
        return self.addresses.nbytes + self.row_ids.nbytes + self.counts.nbytes


class SegmentRows:
    """The rows of one segment's documents in a version of the table; thread-safe.

    Raises `CorruptIndexError` for row ids that no row of the version can have.
    """

    def __init__(
        self,
        segment: Segment,
        snapshot: Snapshot,
        fragments: frozenset[int],
    ) -> None:
        """Reads nothing yet; `fragments` are those that the segment answers for."""
        self._segment = segment
        self._snapshot = snapshot
        self.fragments = fragments
        self.path = segment.signatures.path

    def locate(self, docs: Docs | None, stats: SearchStats) -> Located:
        """The rows of `docs`, which ascend, or of all documents."""
        key = (*self._segment.key, "rows", self._snapshot.manifest.digest)
        every: Located | None = self._snapshot.cache.peek(key)
        if every is None:
            if docs is not None and len(docs) * _ALL_FROM < self._segment.num_docs:
                return self._located(self._row_ids(docs, stats))
            every = self._located(self._all_row_ids(stats))
            self._snapshot.cache.put(key, every, every.nbytes)
        if docs is None:
            return every
        return Located(every.addresses[docs], every.row_ids[docs], every.counts[docs])

    def _located(self, row_ids: Ids) -> Located:
        try:
            addresses, counts = self._snapshot.locate(row_ids, self.fragments)
        except ValueError as error:
            raise CorruptIndexError(self.path, f"{ROW_ID}: {error}") from error
        # Without stable row ids a row's id is its address, where it is now.
        return Located(addresses, row_ids if self._snapshot.stable_row_ids else addresses, counts)

    # -- reading ------------------------------------------------------------------------

    def _row_ids(self, docs: Docs, stats: SearchStats) -> Ids:
        """The row ids of `docs`, as the file has them."""
        if len(docs) == 0:
            return np.empty(0, dtype=np.uint64)
        every: Ids | None = self._snapshot.cache.peek((*self._segment.key, ROW_ID))
        if every is None and self._segment.num_docs > _WHOLE_UP_TO:
            pages = docs.astype(np.int64) // _PAGE_ROWS
            starts = [0, *(np.flatnonzero(pages[1:] != pages[:-1]) + 1).tolist()]
            share = self._segment.num_docs // (_PAGE_ROWS * _SHARE_OF_PAGES)
            if len(starts) <= max(_PAGES_AT_ONCE, share):
                read = self._pages(pages[starts].tolist(), stats)
                return np.concatenate(
                    [
                        page[docs[low:high] % _PAGE_ROWS]
                        for page, (low, high) in zip(
                            read, pairwise([*starts, len(docs)]), strict=True
                        )
                    ]
                )
        return (self._all_row_ids(stats) if every is None else every)[docs]

    def _all_row_ids(self, stats: SearchStats) -> Ids:
        def load() -> tuple[Ids, int]:
            column = self._segment.signatures.read_column(ROW_ID, stats)
            ids = self._checked(column, self._segment.num_docs)
            stats.bytes_read += ids.nbytes
            return ids, ids.nbytes

        return self._snapshot.cache.get((*self._segment.key, ROW_ID), load)

    def _pages(self, numbers: list[int], stats: SearchStats) -> list[Ids]:
        """The row ids of some pages, each of `_PAGE_ROWS` documents, or of the rest."""
        cache = self._snapshot.cache
        keys = {number: (*self._segment.key, ROW_ID, number) for number in numbers}
        found: dict[int, Ids | None] = {number: cache.peek(key) for number, key in keys.items()}
        missing = [number for number, ids in found.items() if ids is None]
        starts = [number * _PAGE_ROWS for number in missing]
        counts = [min(_PAGE_ROWS, self._segment.num_docs - start) for start in starts]
        ranges = list(zip(starts, counts, strict=True))
        read = self._segment.signatures.read_ranges(ranges, stats)
        for number, count, batch in zip(missing, counts, read, strict=True):
            ids = self._checked(batch.column(ROW_ID), count)
            stats.bytes_read += ids.nbytes
            cache.put(keys[number], ids, ids.nbytes)
            found[number] = ids
        return [ids for ids in found.values() if ids is not None]

    def _checked(self, column: pa.Array, expected: int) -> Ids:
        if column.type != pa.uint64() or column.null_count or len(column) != expected:
            raise CorruptIndexError(
                self.path,
                f"{len(column)} values of {ROW_ID}, {column.null_count} of them null, "
                f"of {expected} documents",
            )
        return column.to_numpy()
