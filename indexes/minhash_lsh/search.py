"""Query Evaluation: the rows whose signatures are closest to a given one.

Texts that share no band differ in at least `num_bands` positions, one in each band. So what
the buckets hold is all that there is below that, and an exact answer reads all stored
signatures only where it reaches further.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from ..manifest import IndexSegment, LanceIndex
from ..row_set import RowSet
from ..search_stats import SearchStats
from ..segment_search import asked
from .bands import Bands
from .details import parameters_of
from .ranked import Ranked
from .rows import SegmentRows
from .segment import Segment, opened
from .signature import SignatureProcedure
from .signatures import Differences, Signature, SignatureFile

if TYPE_CHECKING:
    from ..snapshot import Snapshot

Docs = npt.NDArray[np.uint32]
Value = TypeVar("Value")

# How many rows a filter is asked about at first, at least, and how fast that grows.
_FIRST_BLOCK: Final = 256
_GROWTH: Final = 4
_LARGEST_BLOCK: Final = 1 << 32


class RowFilter(Protocol):
    """Tells which rows may be in an answer."""

    def passing(self, rows: RowSet) -> RowSet:
        """Those of `rows` that may."""
        ...


@dataclass(frozen=True, slots=True)
class Compared:
    """Documents of one segment, and in how many positions each differs, which is (n,).

    `docs` ascend; None stands for all of the segment's. Their rows are not known yet.
    """

    rows: SegmentRows
    fragments: frozenset[int]
    docs: Docs | None
    different: Differences

    def ranked(self, low: int, high: int, stats: SearchStats) -> Ranked:
        """The rows that differ in `low` to `high` positions, in no order."""
        within = (self.different >= low) & (self.different <= high)
        if within.all():
            docs, different = self.docs, self.different
        else:
            at = np.flatnonzero(within)
            docs = at.astype(np.uint32) if self.docs is None else self.docs[at]
            different = self.different[at]
        if len(different) == 0:
            return Ranked.EMPTY
        located = self.rows.locate(docs, stats)
        counts = located.counts
        if not self.rows.fragments <= self.fragments:
            wanted = np.array(sorted(self.fragments), dtype=np.uint64)
            counts = counts & np.isin(located.addresses >> np.uint64(32), wanted)
        return Ranked(located.addresses, located.row_ids, different)[counts]


class MinHashReader:
    """One logical index over one version of a table; thread-safe.

    What it reads is kept in the session's cache and nowhere else. Signatures are those of
    `parameters`: (num_hashes,), uint16. Rows are live rows of the fragments `covered` that
    the index answers for. Methods raise `CorruptIndexError` for a file that fails a check
    and `UnsupportedVersionError` for one of a newer version.
    """

    def __init__(self, index: LanceIndex, snapshot: Snapshot) -> None:
        """Reads no file of the index.

        Raises `UnusableIndexError` where the index cannot be used.
        """
        self._index = index
        self._snapshot = snapshot
        self.parameters = parameters_of(index)

    @property
    def fragment_ids(self) -> frozenset[int]:
        """The fragments that the index answers for."""
        return self._snapshot.covered_fragments(self._index)

    def candidates(
        self, signature: Signature, covered: frozenset[int], stats: SearchStats
    ) -> Ranked:
        """The rows that share a band with `signature`."""
        return _ranked(self.compared_candidates(signature, covered, stats), 0, None, stats)

    def all_rows(self, signature: Signature, covered: frozenset[int], stats: SearchStats) -> Ranked:
        """Every row that has a signature."""
        return _ranked(self.compared_all(signature, covered, stats), 0, None, stats)

    def within(
        self,
        signature: Signature,
        low: int,
        high: int,
        covered: frozenset[int],
        stats: SearchStats,
    ) -> RowSet:
        """The rows that differ from `signature` in `low` to `high` positions, exactly."""
        low, high = max(low, 0), min(high, self.parameters.num_hashes)
        if low > high:
            return RowSet.EMPTY
        if high < self.parameters.num_bands:
            compared = self.compared_candidates(signature, covered, stats)
        else:
            compared = self.compared_all(signature, covered, stats)
        return RowSet.union(each.ranked(low, high, stats).rows for each in compared)

    def signed(self, covered: frozenset[int], stats: SearchStats) -> RowSet:
        """The rows that have a signature."""

        def ask(part: _Part, stats: SearchStats) -> RowSet:
            located = part.rows.locate(None, stats)
            rows = RowSet.from_addresses(located.addresses[located.counts])
            return rows.restrict(part.fragments)

        return RowSet.union(self._asked(ask, covered, stats))

    # -- segment by segment, without rows yet --------------------------------------------

    def compared_candidates(
        self, signature: Signature, covered: frozenset[int], stats: SearchStats
    ) -> list[Compared]:
        """The documents that share a band with `signature`."""
        procedure = SignatureProcedure.of(self.parameters)
        keys = procedure.band_keys(signature.reshape(1, -1))[0]

        def ask(part: _Part, stats: SearchStats) -> Compared:
            docs = Bands(part.segment, self._snapshot.cache).documents(keys, stats)
            return part.compared(signature, docs, self._snapshot, stats)

        return self._asked(ask, covered, stats)

    def compared_all(
        self, signature: Signature, covered: frozenset[int], stats: SearchStats
    ) -> list[Compared]:
        """All documents."""
        return self._asked(
            lambda part, stats: part.compared(signature, None, self._snapshot, stats),
            covered,
            stats,
        )

    def _asked(
        self,
        ask: Callable[[_Part, SearchStats], Value],
        covered: frozenset[int],
        stats: SearchStats,
    ) -> list[Value]:
        """What the segments say that have some of the fragments."""
        parts = [
            (segment, fragments, fragments & covered)
            for segment, fragments in self._snapshot.covered_by_segment(self._index).items()
            if fragments & covered
        ]

        def opened_first(
            part: tuple[IndexSegment, frozenset[int], frozenset[int]], stats: SearchStats
        ) -> Value:
            return ask(self._part(*part, stats), stats)

        are_local = self._snapshot.are_files_local(self._index)
        return asked(parts, opened_first, stats, are_local=are_local)

    def _part(
        self,
        segment: IndexSegment,
        fragments: frozenset[int],
        wanted: frozenset[int],
        stats: SearchStats,
    ) -> _Part:
        files, folder = self._snapshot.files_of(segment)
        found = opened(segment, files, folder, self._snapshot.cache, stats)
        rows = SegmentRows(found, self._snapshot, fragments)
        return _Part(found, rows, wanted)


@dataclass(frozen=True, slots=True)
class _Part:
    """An opened segment, and the fragments that are asked for in it."""

    segment: Segment
    rows: SegmentRows
    fragments: frozenset[int]

    def compared(
        self, signature: Signature, docs: Docs | None, snapshot: Snapshot, stats: SearchStats
    ) -> Compared:
        file = SignatureFile(self.segment, snapshot.cache)
        different = file.differences(signature, docs, stats)
        return Compared(self.rows, self.fragments, docs, different)


def _ranked(compared: Sequence[Compared], low: int, high: int | None, stats: SearchStats) -> Ranked:
    limit = np.iinfo(np.uint16).max if high is None else high
    return Ranked.joined([each.ranked(low, limit, stats) for each in compared]).ordered()


def nearest(
    reader: MinHashReader,
    signature: Signature,
    count: int,
    covered: frozenset[int],
    passing: RowFilter | None,
    ties: bool,
    stats: SearchStats,
) -> Ranked:
    """The `count` rows closest to `signature` among those that pass, exactly.

    With `ties`, every row as near as the last of them is there, too. The filter is asked
    about growing blocks of the closest rows, each row once.
    """
    if count <= 0:
        return Ranked.EMPTY
    search = _Nearest(count, passing, ties, stats)
    bands = reader.parameters.num_bands
    # Rows at `num_bands` or more may also be where no bucket leads to.
    if not search.take(reader.compared_candidates(signature, covered, stats), 0, bands - 1):
        search.take(
            reader.compared_all(signature, covered, stats), bands, reader.parameters.num_hashes
        )
    return search.found()


class _Nearest:
    """The closest rows that pass, found from the closest on."""

    def __init__(
        self, count: int, passing: RowFilter | None, ties: bool, stats: SearchStats
    ) -> None:
        self._count = count
        self._passing = passing
        self._ties = ties
        self._stats = stats
        self._found: list[Ranked] = []
        self._rows = 0

    def found(self) -> Ranked:
        """What was found, no more than is wanted."""
        rows = Ranked.joined(self._found)
        if len(rows) <= self._count:
            return rows
        if not self._ties:
            return rows[: self._count]
        return rows[: int(rows.different.searchsorted(rows.different[self._count - 1], "right"))]

    def take(self, compared: Sequence[Compared], low: int, high: int) -> bool:
        """Goes through the rows that differ in `low` to `high` positions, as far as needed.

        All closer ones have been gone through. Returns whether enough are found.
        """
        block = min(max(_FIRST_BLOCK, 2 * self._count), _LARGEST_BLOCK)
        for first, last in _levels(compared, low, high, block):
            rows = _ranked(compared, first, last, self._stats)
            at = 0
            while at < len(rows):
                if self._rows >= self._count and self._is_behind(rows.different[at]):
                    return True
                part = rows[at : at + block]
                at += len(part)
                block = min(_GROWTH * block, _LARGEST_BLOCK)
                if self._passing is not None:
                    asked = part.rows
                    part = part.among(self._passing.passing(asked) & asked)
                if len(part):
                    self._found.append(part)
                    self._rows += len(part)
            # The rows of the next levels are all farther than these.
            if self._rows >= self._count:
                return True
        return False

    def _is_behind(self, different: np.uint16) -> bool:
        """Whether a row at that distance, behind all that were found, is not wanted."""
        if not self._ties:
            return True
        closest = 0
        for part in self._found:
            if closest + len(part) >= self._count:
                return bool(different > part.different[self._count - closest - 1])
            closest += len(part)
        return False


def _levels(
    compared: Sequence[Compared], low: int, high: int, block: int
) -> Iterator[tuple[int, int]]:
    """Distances from `low` to `high`, as ranges with `block` and more documents each.

    Later ranges have more, as the search does not end for a filter that few rows pass.
    """
    counts = np.zeros(high + 1, dtype=np.int64)
    for each in compared:
        counts += np.bincount(each.different, minlength=high + 1)[: high + 1]
    first = low
    while first <= high:
        sums = np.cumsum(counts[first:])
        if sums[-1] == 0:
            return
        last = min(first + int(sums.searchsorted(block)), high)
        yield first, last
        first = last + 1
        block = min(_GROWTH * block, _LARGEST_BLOCK)
