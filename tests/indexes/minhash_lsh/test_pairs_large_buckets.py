"""Texts that occur very often: no pair more is compared than there has to be."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datafusion_lance.indexes.minhash_lsh.clusters import minhash_clusters
from datafusion_lance.indexes.minhash_lsh.duplicates import Duplicates
from datafusion_lance.indexes.minhash_lsh.duplicates_report import (
    KEPT_BUCKETS,
    DuplicatesReport,
    LargeBucket,
    Treatment,
)
from datafusion_lance.indexes.minhash_lsh.pairs import minhash_pairs
from tests.indexes.minhash_lsh.signed_rows import Rows

HASHES, BANDS = 128, 16
WIDTH = HASHES // BANDS


def of(signatures: npt.NDArray[np.uint16], first_id: int = 0) -> Rows:
    ids = np.arange(first_id, first_id + len(signatures), dtype=np.uint64)
    return Rows(signatures, ids, BANDS, np.zeros(len(signatures), dtype=np.int64))


def unrelated(rows: int, seed: int) -> npt.NDArray[np.uint16]:
    return np.random.default_rng(seed).integers(0, 1 << 16, (rows, HASHES)).astype(np.uint16)


def read(result: Duplicates) -> pa.Table:
    return pa.Table.from_batches(result.batches, result.schema)


def test_a_text_that_occurs_very_often_is_paired_with_its_first_occurrence() -> None:
    rows = 30_000
    result = minhash_pairs(of(np.repeat(unrelated(1, 1), rows, axis=0), 7).documents(), 0.1)
    found = read(result)
    assert found["left_rowid"].unique().to_pylist() == [7]
    assert found["right_rowid"].to_pylist() == list(range(8, 7 + rows))
    assert found["_distance"].unique().to_pylist() == [0]
    report = result.report
    assert (report.compared, report.signatures, report.pairs_skipped) == (0, 1, 0)
    assert report.pairs_folded + found.num_rows == rows * (rows - 1) // 2
    assert report.large_buckets == (LargeBucket(rows, 1, (), 7, Treatment.FOLDED),)
    assert not report.complete


def test_its_copies_are_one_cluster_and_nothing_is_left_out() -> None:
    rows = 30_000
    signatures = np.repeat(unrelated(1, 1), rows, axis=0)
    signatures[100, 3] += 1
    result = minhash_clusters(of(signatures, 7).documents(), 0.1)
    found = read(result)
    assert found["cluster_id"].unique().to_pylist() == [7]
    assert found["row_id"].to_pylist() == list(range(7, 7 + rows))
    assert result.report.compared == 1
    assert result.report.complete


def test_a_text_near_one_that_occurs_very_often_is_paired_with_its_first_occurrence() -> None:
    signatures = np.repeat(unrelated(1, 1), 3_000, axis=0)
    signatures[1_000:1_005, 3] += 1
    result = minhash_pairs(of(signatures).documents(), 0.1)
    found = read(result)
    apart = found.filter(pc.greater(found["_distance"], 0)).select([0, 1]).to_pylist()
    assert apart == [{"left_rowid": 0, "right_rowid": 1_000}]
    # Five occurrences are few: all their pairs are there.
    assert found.num_rows == 2_994 + 10 + 1
    assert result.report.pairs_folded == 2_994 * 2_993 // 2 + 2_995 * 5 - 1
    assert result.report.pairs_skipped == 0


def test_a_bucket_with_as_many_rows_as_it_may_have_gives_all_pairs() -> None:
    signatures = np.repeat(unrelated(2, 1), 10, axis=0)
    signatures[10:] = signatures[0]
    signatures[10:, 0] += 1
    for size, complete in ((20, True), (19, False)):
        result = minhash_pairs(of(signatures).documents(), 0.1, max_bucket=size)
        assert read(result).num_rows == (190 if complete else 2 * 45 + 1)
        assert result.report.complete == complete


def test_a_bucket_of_boilerplate_is_divided_and_loses_no_pair() -> None:
    rows = 20_000
    signatures = unrelated(rows, 2)
    signatures[:, :WIDTH] = signatures[0, :WIDTH]
    rng = np.random.default_rng(3)
    copies, originals = np.arange(1, rows, 50), np.arange(0, rows - 1, 50)
    signatures[copies] = signatures[originals]
    for position in range(12):
        signatures[copies, rng.integers(WIDTH, HASHES, len(copies))] ^= position + 1
    documents = of(signatures).documents()
    result = minhash_pairs(documents, 0.1)
    found = read(result).select(["left_rowid", "right_rowid"]).to_pylist()
    expected = [
        {"left_rowid": int(one), "right_rowid": int(other)}
        for one, other in zip(originals, copies, strict=True)
    ]
    assert sorted(found, key=lambda pair: pair["left_rowid"]) == expected
    report = result.report
    assert report.complete
    assert report.compared < 4 * rows
    assert report.large_buckets == (LargeBucket(rows, rows, (0,), 0, Treatment.DIVIDED),)
    assert read(minhash_clusters(documents, 0.1)).num_rows == 2 * len(copies)


def test_many_texts_all_near_each_other_are_compared_with_few_of_them() -> None:
    rows = 5_000
    rng = np.random.default_rng(4)
    signatures = np.repeat(unrelated(1, 4), rows, axis=0)
    changed = rng.random(signatures.shape) < 0.05
    signatures[changed] = rng.integers(0, 1 << 16, int(changed.sum())).astype(np.uint16)
    documents = of(signatures).documents()
    bound = 0.2
    result = minhash_pairs(documents, bound)
    found = read(result)
    assert found.num_rows == len(set(zip(*(c.to_pylist() for c in found.columns[:2]), strict=True)))
    left, right = (found[name].to_numpy().astype(np.int64) for name in found.column_names[:2])
    different = (signatures[left] != signatures[right]).sum(axis=1)
    assert (different <= bound * HASHES).all()
    assert (found["_distance"].to_numpy() == (different / HASHES).astype(np.float32)).all()
    report = result.report
    assert report.pairs_skipped > 0
    assert not report.complete
    assert {bucket.treatment for bucket in report.large_buckets} == {Treatment.STARRED}
    assert len(report.large_buckets) == min(BANDS, KEPT_BUCKETS)
    assert report.compared < 100 * BANDS * rows
    together = read(minhash_clusters(documents, bound))
    assert together.num_rows == rows
    assert together["cluster_id"].unique().to_pylist() == [0]


def test_a_report_keeps_the_largest_buckets_and_counts_all() -> None:
    report = DuplicatesReport(num_bands=16, most_different=12)
    for rows in range(1_000, 2_000):
        report.tell(LargeBucket(rows, 2, (0,), 0, Treatment.FOLDED))
    assert report.large_bucket_count == 1_000
    assert [bucket.rows for bucket in report.large_buckets] == list(range(1_999, 1_979, -1))
