"""Where the documents of a new segment come from: older segments, or texts that were signed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from ..cache import ReaderCache
from ..errors import CorruptIndexError
from ..search_stats import SearchStats
from ..snapshot import Snapshot
from .bands import Bands
from .documents import SignedRows
from .scratch import scratch
from .segment import ROW_ID, Segment
from .stored_documents import stored_documents

_ROWS_AT_ONCE: Final = 1 << 16

Ids = npt.NDArray[np.uint64]
Signatures = npt.NDArray[np.uint16]
Keys = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]


class Source(Protocol):
    """Documents, numbered from 0 on in the order of `documents`."""

    def documents(self) -> Iterator[tuple[Ids, Signatures]]:
        """Row ids in the version (n,) and signatures (n, num_hashes), in blocks."""
        ...

    def entries_between(self, low: int, high: int) -> tuple[Keys, Numbers]:
        """The entries with `low <= key <= high`, both of one band: keys, ascending, and numbers.

        It is asked after all of `documents` was read.
        """
        ...


class SegmentSource:
    """The documents of a segment that are live rows of the fragments that it answers for.

    Methods raise `CorruptIndexError` for a file that fails a check.
    """

    def __init__(self, segment: Segment, snapshot: Snapshot, fragments: frozenset[int]) -> None:
        """Reads nothing yet."""
        self._segment = segment
        self._snapshot = snapshot
        self._fragments = fragments
        self._bands = Bands(segment, ReaderCache(0))
        # What number each document of the segment has here; -1 for those that are left out.
        self._numbers: Numbers = scratch((segment.num_docs,), np.int64)

    def documents(self) -> Iterator[tuple[Ids, Signatures]]:
        """See `Source`."""
        count = 0
        for block in stored_documents(self._segment):
            try:
                addresses, kept = self._snapshot.locate(block.row_ids, self._fragments)
            except ValueError as error:
                raise CorruptIndexError(
                    self._segment.signatures.path, f"{ROW_ID}: {error}"
                ) from error
            numbers = np.where(kept, count + np.cumsum(kept) - 1, -1)
            self._numbers[block.first : block.first + len(kept)] = numbers
            count += int(kept.sum())
            # Without stable row ids a row's id is its address, where it is now.
            row_ids = block.row_ids if self._snapshot.stable_row_ids else addresses
            yield row_ids[kept], block.signatures[kept]

    def entries_between(self, low: int, high: int) -> tuple[Keys, Numbers]:
        """See `Source`."""
        found = self._bands.between(low, high, SearchStats())
        numbers = self._numbers[found.docs]
        kept = numbers >= 0
        return found.keys[kept], numbers[kept]


class SignedSource:
    """Rows that were signed from their texts."""

    def __init__(self, rows: SignedRows) -> None:
        self._rows = rows

    def documents(self) -> Iterator[tuple[Ids, Signatures]]:
        """See `Source`."""
        row_ids = self._rows.row_ids
        for start in range(0, len(row_ids), _ROWS_AT_ONCE):
            numbers = np.arange(start, min(start + _ROWS_AT_ONCE, len(row_ids)))
            yield row_ids[numbers], self._rows.signatures(numbers)

    def entries_between(self, low: int, high: int) -> tuple[Keys, Numbers]:
        """See `Source`."""
        return self._rows.entries_between(low, high)
