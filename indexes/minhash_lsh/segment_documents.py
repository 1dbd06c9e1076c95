"""The documents of one segment, those that are rows of a version of the table."""

from __future__ import annotations

import numpy as np

from ..cache import ReaderCache
from ..search_stats import SearchStats
from .bands import Bands
from .documents import Ids, Keys, Numbers, Signatures
from .rows import SegmentRows
from .segment import Segment
from .signatures import SignatureFile


class SegmentDocuments:
    """A part that is read from a segment's files; what it reads is not kept.

    Documents are left out of `entries_between` whose rows are deleted, or in fragments that the
    segment does not answer for. Methods raise `CorruptIndexError` for a file that fails a check.
    """

    def __init__(
        self, segment: Segment, rows: SegmentRows, cache: ReaderCache, stats: SearchStats
    ) -> None:
        """Reads the row ids."""
        self._bands = Bands(segment, cache)
        self._file = SignatureFile(segment, cache)
        self._stats = stats
        located = rows.locate(None, stats)
        self._counts = located.counts
        self.row_ids: Ids = located.row_ids

    def entries_between(self, low: int, high: int) -> tuple[Keys, Numbers]:
        """The rows of the bands table with `low <= key <= high`: see `Part`."""
        found = self._bands.between(low, high, self._stats)
        counts = self._counts[found.docs]
        if counts.all():
            return found.keys, found.docs.astype(np.int64)
        return found.keys[counts], found.docs[counts].astype(np.int64)

    def signatures(self, numbers: Numbers) -> Signatures:
        """Signatures of the documents with the given numbers: see `Part`."""
        # A document may be asked for several times, and in any order.
        docs, where = np.unique(numbers, return_inverse=True)
        return self._file.take(docs, self._stats).take(where, axis=0)
