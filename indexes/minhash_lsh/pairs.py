"""`minhash_pairs`: all pairs of near duplicates in a table."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .documents import Documents, Ids, Numbers
from .duplicates import BATCH_ROWS, MAX_BUCKET, Duplicates, entries_at_once, report_for
from .duplicates_report import DuplicatesReport, LargeBucket, Treatment
from .identical import Identical, identical
from .near_pairs import Near, NearPairs
from .ranges import blocks, within

PAIRS_SCHEMA: Final = pa.schema(
    [
        pa.field("left_rowid", pa.uint64(), nullable=False),
        pa.field("right_rowid", pa.uint64(), nullable=False),
        pa.field("_distance", pa.float32(), nullable=False),
    ]
)

Pairs = tuple[Ids, Ids, npt.NDArray[np.uint16]]


def minhash_pairs(
    documents: Documents, max_distance: Any, *, max_bucket: Any = MAX_BUCKET
) -> Duplicates:
    """All pairs of rows whose signatures are at most `max_distance` apart, each pair once.

    The columns are `left_rowid` and `right_rowid` (uint64), the smaller row id on the left, and
    `_distance` (float32), the part of the positions in which the signatures differ; none is ever
    NULL. Pairs come in no order. Rows without a signature (NULL, no tokens) are in no pair.

    Found are the pairs that share a band. With `max_distance * num_hashes < num_bands` these are
    all pairs, and `report.complete` says so; beyond that a pair is found with the probability
    that `candidate_probability` gives.

    Texts that occur very often do not make the result quadratic. Of a bucket (the rows that share
    a band key) with up to `max_bucket` rows all pairs are given. In a larger one

    - rows with identical signatures are given through the one with the smallest row id: it is
      paired with each of them, if they are more than `max_bucket`, and it alone is paired with
      the other rows. `report.pairs_folded` counts the pairs that follow from those, and are not
      given;
    - if the different signatures are still more than `max_bucket`, not all are compared: see
      `NearPairs`. `report.pairs_skipped` counts, at most, the pairs of rows that were not.

    `report.large_buckets` shows the largest of these buckets. Holds about 10 bytes a row, up to
    8 more for rows with identical signatures, and less than 100 MiB besides.

    Raises `InvalidArgumentError` unless 0 <= max_distance <= 1 and max_bucket >= 2.
    """
    report = report_for(documents.num_hashes, documents.num_bands, max_distance, max_bucket)
    return Duplicates(PAIRS_SCHEMA, pair_batches(documents, max_bucket, report), report)


def pair_batches(
    documents: Documents, max_bucket: int, report: DuplicatesReport
) -> Generator[pa.RecordBatch, None, None]:
    """The batches of `minhash_pairs`, whose arguments were checked; fills the report."""
    waiting: list[Pairs] = []
    rows = 0
    for pairs in _pairs(documents, max_bucket, report):
        waiting.append(pairs)
        rows += len(pairs[0])
        if rows >= BATCH_ROWS:
            yield _batch(waiting, documents.num_hashes, report)
            waiting, rows = [], 0
    if rows:
        yield _batch(waiting, documents.num_hashes, report)


def _batch(parts: list[Pairs], num_hashes: int, report: DuplicatesReport) -> pa.RecordBatch:
    left, right, different = (np.concatenate(column) for column in zip(*parts, strict=True))
    # Damaged files may name a row twice.
    apart = left != right
    left, right, different = left[apart], right[apart], different[apart]
    report.rows_given += len(left)
    columns = [
        pa.array(np.minimum(left, right)),
        pa.array(np.maximum(left, right)),
        pa.array((different / num_hashes).astype(np.float32)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=PAIRS_SCHEMA)


def _pairs(documents: Documents, max_bucket: int, report: DuplicatesReport) -> Iterator[Pairs]:
    at_once = entries_at_once(documents)
    groups = identical(documents, at_once)
    report.documents = groups.documents
    report.signatures = groups.signatures
    ids = documents.row_ids
    for left, right in _in_groups(groups, max_bucket):
        yield ids[left], ids[right], np.zeros(len(left), dtype=np.uint16)
    _tell_groups(groups, ids, max_bucket, report)
    for near in NearPairs(documents, groups, max_bucket, at_once, report):
        for left, right, different in _spread(near, groups, report):
            yield ids[left], ids[right], different


def _in_groups(groups: Identical, max_bucket: int) -> Iterator[tuple[Numbers, Numbers]]:
    """The pairs of documents with identical signatures."""
    small = groups.sizes <= max_bucket
    starts, sizes = groups.starts[small], groups.sizes[small]
    members = groups.members[within(starts, sizes)]
    later = np.repeat(np.cumsum(sizes), sizes) - np.arange(len(members)) - 1
    for left, nth in blocks(later, BATCH_ROWS):
        yield members[left], members[left + 1 + nth]
    starts, sizes = groups.starts[~small], groups.sizes[~small]
    for group, nth in blocks(sizes - 1, BATCH_ROWS):
        yield groups.members[starts[group]], groups.members[starts[group] + 1 + nth]


def _tell_groups(groups: Identical, ids: Ids, max_bucket: int, report: DuplicatesReport) -> None:
    for group in np.flatnonzero(groups.sizes > max_bucket).tolist():
        rows = int(groups.sizes[group])
        row_id = int(ids[groups.firsts[group]])
        report.pairs_folded += (rows - 1) * (rows - 2) // 2
        report.tell(LargeBucket(rows, 1, (), row_id, Treatment.FOLDED))


def _spread(
    near: Near, groups: Identical, report: DuplicatesReport
) -> Iterator[tuple[Numbers, Numbers, npt.NDArray[np.uint16]]]:
    """The pairs, each for all documents that its two stand for, unless it is folded."""
    left_starts, left_sizes = groups.groups_of(near.left)
    right_starts, right_sizes = groups.groups_of(near.right)
    counts = left_sizes * right_sizes
    if (counts == 1).all():
        yield near.left, near.right, near.different
        return
    report.pairs_folded += int((counts[near.folded] - 1).sum())
    counts[near.folded] = 1
    for pair, nth in blocks(counts, BATCH_ROWS):
        nth_left, nth_right = np.divmod(nth, right_sizes[pair])
        yield (
            groups.member(near.left[pair], left_starts[pair], left_sizes[pair], nth_left),
            groups.member(near.right[pair], right_starts[pair], right_sizes[pair], nth_right),
            near.different[pair],
        )
