"""What a search for the duplicates of a whole table did, and what it left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from heapq import heappush, heappushpop
from typing import Final

KEPT_BUCKETS: Final = 20
"""How many large buckets a report tells of, the largest ones."""


class Treatment(Enum):
    """What was done with a bucket of more than `max_bucket` rows, so as not to give, or compare,
    every pair of them."""

    FOLDED = "folded"
    """Rows with identical signatures are given through the one that stands for them."""
    DIVIDED = "divided"
    """Compared by further bands that rows have in common; no pair is lost by it."""
    STARRED = "starred"
    """Compared with few of its rows only, the rest divided as far as that goes."""


@dataclass(frozen=True, slots=True, order=True)
class LargeBucket:
    """A bucket of more than `max_bucket` rows.

    `signatures` is how many different ones its rows have; `bands` the numbers of the bands that
    the rows have in common, none for rows with identical signatures; `row_id` the smallest row
    id in it, so that one can look at the text.
    """

    rows: int
    signatures: int
    bands: tuple[int, ...]
    row_id: int
    treatment: Treatment = field(compare=False)


@dataclass(slots=True)
class DuplicatesReport:
    """Counters of one search over all rows of a table; they grow while its batches are read.

    `documents` counts the rows that have a signature, `signatures` the different ones,
    `compared` the pairs of signatures that were compared, `rows_given` the rows of the result.
    `pairs_folded` counts the pairs that are within the distance but are not given, since rows
    with identical signatures are given through the one that stands for them; `pairs_skipped`
    counts the pairs of rows in a bucket whose signatures were not compared; some of them may be
    in another bucket, too, and given from there.
    """

    num_bands: int
    most_different: int
    documents: int = 0
    signatures: int = 0
    compared: int = 0
    rows_given: int = 0
    pairs_folded: int = 0
    pairs_skipped: int = 0
    large_bucket_count: int = 0
    _largest: list[LargeBucket] = field(default_factory=list)

    @property
    def bound_is_complete(self) -> bool:
        """Whether every two rows within the distance share a band, so that all can be found."""
        return self.most_different < self.num_bands

    @property
    def complete(self) -> bool:
        """Whether what was given so far leaves no pair within the distance out."""
        return self.bound_is_complete and self.pairs_folded == 0 and self.pairs_skipped == 0

    @property
    def large_buckets(self) -> tuple[LargeBucket, ...]:
        """The largest of the buckets with more than `max_bucket` rows, by falling size."""
        return tuple(sorted(self._largest, reverse=True))

    def tell(self, bucket: LargeBucket) -> None:
        """Count a large bucket, and keep it if it is among the largest."""
        self.large_bucket_count += 1
        keep = heappush if len(self._largest) < KEPT_BUCKETS else heappushpop
        keep(self._largest, bucket)
