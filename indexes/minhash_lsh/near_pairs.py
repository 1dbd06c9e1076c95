"""Finds the documents whose signatures are near each other, from the buckets of the bands table."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from math import gcd
from typing import Final

import numpy as np
import numpy.typing as npt

from .documents import Documents, Keys, Numbers, Signatures
from .duplicates_report import DuplicatesReport, LargeBucket, Treatment
from .identical import Identical
from .mixing import mixed, words
from .ranges import blocks, runs, slices, within

Mask = npt.NDArray[np.bool_]
Settled = Callable[[Numbers, Numbers], Mask]

# A large bucket is divided until its rows have so many bands in common. With every further
# band a row is looked at as often as there are bands after it.
_DEEPEST: Final = 3
_REPRESENTATIVES: Final = 64


@dataclass(frozen=True, slots=True)
class Near:
    """Pairs of documents that stand for themselves or for others, in no order.

    `different` is in how many positions the signatures differ. Where a pair is `folded`, it is
    to be given as it is; elsewhere for all the documents that the two stand for.
    """

    left: Numbers
    right: Numbers
    different: npt.NDArray[np.uint16]
    folded: Mask


@dataclass(frozen=True, slots=True)
class NearPairs:
    """The search for pairs that differ in at most `report.most_different` positions.

    Bucket by bucket, every two documents that stand for their group are compared. A pair comes
    out in the first band that both share, so that nothing has to be remembered of it. With
    `settled`, which tells what pairs need not be compared any more, one may come out again.

    In a bucket of more than `max_bucket` signatures not all are compared.

    - Two signatures that differ in d positions share at least `num_bands - d` bands. Where
      that says that all pairs looked for share yet another band, the bucket is divided by each
      of the further ones: no pair is lost.
    - Otherwise, or where the rows have three bands in common, up to 64 representatives are
      compared with all: the signature with the smallest row id, then the next one that is not
      near any of them, and so on. What is near none of them is divided by the further bands.
    """

    documents: Documents
    identical: Identical
    max_bucket: int
    at_once: int
    report: DuplicatesReport
    settled: Settled | None = None

    def __iter__(self) -> Iterator[Near]:
        for band in range(self.documents.num_bands):
            for keys, numbers in self.documents.entries(band, self.at_once):
                starts, lengths = runs(keys)
                several = lengths > 1
                shared = within(starts[several], lengths[several])
                shared = shared[~self.identical.behind[numbers[shared]]]
                yield from self._in_buckets(keys[shared], numbers[shared], (band,))

    def _in_buckets(
        self, keys: Keys, numbers: Numbers, bands: tuple[int, ...], told: bool = False
    ) -> Iterator[Near]:
        """The pairs in the runs of equal `keys`, which the documents have in all of `bands`."""
        starts, lengths = runs(keys)
        several = lengths > 1
        starts, lengths = starts[several], lengths[several]
        _, sizes = self.identical.groups_of(numbers)
        upto = np.concatenate([[0], np.cumsum(sizes)])
        rows = upto[starts + lengths] - upto[starts]
        large = lengths > self.max_bucket
        folded = rows > self.max_bucket
        if not told:
            for bucket in np.flatnonzero(folded & ~large).tolist():
                here = numbers[starts[bucket] : starts[bucket] + lengths[bucket]]
                self._tell(here, int(rows[bucket]), bands, Treatment.FOLDED)
        yield from self._in_small(numbers, starts[~large], lengths[~large], folded[~large], bands)
        for bucket in np.flatnonzero(large).tolist():
            here = numbers[starts[bucket] : starts[bucket] + lengths[bucket]]
            yield from self._in_large(here, int(rows[bucket]), bands, told)

    # -- buckets in which all are compared ----------------------------------------------

    def _in_small(
        self,
        numbers: Numbers,
        starts: Numbers,
        lengths: Numbers,
        folded: Mask,
        bands: tuple[int, ...],
    ) -> Iterator[Near]:
        chunk_starts, chunk_lengths = runs((np.cumsum(lengths) - lengths) // self.at_once)
        for first, count in zip(chunk_starts.tolist(), chunk_lengths.tolist(), strict=True):
            here = slice(first, first + count)
            members = numbers[within(starts[here], lengths[here])]
            yield from self._all_pairs(members, lengths[here], folded[here], bands)

    def _all_pairs(
        self, members: Numbers, lengths: Numbers, folded: Mask, bands: tuple[int, ...]
    ) -> Iterator[Near]:
        signatures = self.documents.signatures(members)
        later = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(members)) - 1
        fold = np.repeat(folded, lengths)
        for left, nth in blocks(later, self.documents.block_rows):
            right = left + 1 + nth
            if self.settled is not None:
                open_ = ~self.settled(members[left], members[right])
                left, right = left[open_], right[open_]
            self.report.compared += len(left)
            near, different, _ = self._compare(
                signatures.take(left, axis=0), signatures.take(right, axis=0), bands
            )
            if len(near):
                left, right = left[near], right[near]
                yield Near(members[left], members[right], different, fold[left])

    # -- buckets in which that would take too long ---------------------------------------

    def _in_large(
        self, numbers: Numbers, rows: int, bands: tuple[int, ...], told: bool
    ) -> Iterator[Near]:
        common = self.documents.num_bands - self.report.most_different
        if len(bands) < min(common, _DEEPEST):
            if len(bands) == 1:
                self._tell(numbers, rows, bands, Treatment.DIVIDED)
            yield from self._divided(numbers, bands, told)
            return
        if not told:
            self._tell(numbers, rows, bands, Treatment.STARRED)
        rest, skipped = yield from self._starred(numbers, bands)
        if not told:
            self.report.pairs_skipped += skipped
        if len(bands) < _DEEPEST:
            yield from self._divided(rest, bands, told=True)

    def _divided(self, numbers: Numbers, bands: tuple[int, ...], told: bool) -> Iterator[Near]:
        """The pairs that share yet another band, which comes after `bands`."""
        width = self.documents.num_hashes // self.documents.num_bands
        for band in range(bands[-1] + 1, self.documents.num_bands):
            hashes = np.empty(len(numbers), dtype=np.uint64)
            for here in slices(len(numbers), self.documents.block_rows):
                values = self.documents.signatures(numbers[here])
                hashes[here] = mixed(words(values[:, band * width : (band + 1) * width], width))
            order = np.argsort(hashes, kind="stable")
            yield from self._in_buckets(hashes[order], numbers[order], (*bands, band), told)

    def _starred(
        self, numbers: Numbers, bands: tuple[int, ...]
    ) -> Generator[Near, None, tuple[Numbers, int]]:
        """The pairs with a representative.

        Returns the documents that are near none, and how many pairs of rows with different
        signatures were not looked at.
        """
        numbers = numbers[np.argsort(self.documents.row_ids[numbers])]
        _, sizes = self.identical.groups_of(numbers)
        skipped = (int(sizes.sum()) ** 2 - int((sizes**2).sum())) // 2
        represented = np.zeros(len(numbers), dtype=np.bool_)
        stars = np.zeros(len(numbers), dtype=np.bool_)
        for _ in range(_REPRESENTATIVES):
            star = int(represented.argmin())
            if represented[star]:
                break
            represented[star] = stars[star] = True
            signature = self.documents.signatures(numbers[star : star + 1])
            for here in slices(len(numbers), self.documents.block_rows):
                others = here.start + np.flatnonzero(~stars[here])
                skipped -= int(sizes[star]) * int(sizes[others].sum())
                centre = np.full(len(others), numbers[star])
                if self.settled is not None:
                    known = self.settled(centre, numbers[others])
                    represented[others[known]] = True
                    others, centre = others[~known], centre[~known]
                self.report.compared += len(others)
                near, different, within_distance = self._compare(
                    signature, self.documents.signatures(numbers[others]), bands
                )
                represented[others[within_distance]] = True
                if len(near):
                    folded = np.ones(len(near), dtype=np.bool_)
                    yield Near(centre[near], numbers[others[near]], different, folded)
        return numbers[~represented], skipped

    # -- comparing -----------------------------------------------------------------------

    def _compare(
        self, left: Signatures, right: Signatures, bands: tuple[int, ...]
    ) -> tuple[Numbers, npt.NDArray[np.uint16], Numbers]:
        """Which pairs of rows to give and how far apart they are, and all that are near enough."""
        equal = left == right
        agreeing = np.bitwise_count(np.packbits(equal, axis=1)).sum(axis=1, dtype=np.uint16)
        different = np.uint16(self.documents.num_hashes) - agreeing
        near: Numbers = np.flatnonzero(different <= self.report.most_different)
        given = near
        if self.settled is None:
            given = near[self._first_shared(equal.take(near, axis=0), bands)]
        return given, different[given], near

    def _first_shared(self, equal: Mask, bands: tuple[int, ...]) -> Mask:
        """Whether `bands` are the first ones of those that two signatures share."""
        width = self.documents.num_hashes // self.documents.num_bands
        unit = gcd(width, 8)
        full = int.from_bytes(b"\1" * unit, "little")
        parts = np.equal(equal.view(f"u{unit}"), full)
        by_band = parts.reshape(len(equal), self.documents.num_bands, width // unit)
        shared: Mask = np.logical_and.reduce(by_band, axis=2)
        expected = np.zeros(bands[-1] + 1, dtype=np.bool_)
        expected[list(bands)] = True
        return (shared[:, : len(expected)] == expected).all(axis=1)

    def _tell(
        self, numbers: Numbers, rows: int, bands: tuple[int, ...], treatment: Treatment
    ) -> None:
        row_id = int(self.documents.row_ids[numbers].min())
        self.report.tell(LargeBucket(rows, len(numbers), bands, row_id, treatment))
