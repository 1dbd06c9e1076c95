"""All pairs and clusters of signed rows, against a comparison of all with all."""

from __future__ import annotations

import gc
import math
import weakref
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datafusion_lance.indexes.errors import InvalidArgumentError
from datafusion_lance.indexes.minhash_lsh.clusters import CLUSTERS_SCHEMA, minhash_clusters
from datafusion_lance.indexes.minhash_lsh.documents import Documents
from datafusion_lance.indexes.minhash_lsh.duplicates import Duplicates, most_different
from datafusion_lance.indexes.minhash_lsh.duplicates_report import DuplicatesReport
from datafusion_lance.indexes.minhash_lsh.identical import identical
from datafusion_lance.indexes.minhash_lsh.near_pairs import NearPairs
from datafusion_lance.indexes.minhash_lsh.pairs import PAIRS_SCHEMA, minhash_pairs
from tests.indexes.minhash_lsh.signed_rows import Pair, Rows, clusters, rows

DISTANCES = st.one_of(st.sampled_from([0, 0.0, 0.25, 0.5, 1, 1.0]), st.floats(0, 1))


def table(result: Duplicates) -> pa.Table:
    return pa.Table.from_batches(result.batches, result.schema)


def pairs_of(result: Duplicates) -> dict[Pair, float]:
    """The distances of the pairs, none of which may be there twice."""
    found = table(result)
    left, right, distance = (column.to_pylist() for column in found.columns)
    assert all(one < other for one, other in zip(left, right, strict=True))
    pairs = dict(zip(zip(left, right, strict=True), distance, strict=True))
    assert len(pairs) == found.num_rows == result.report.rows_given
    return pairs


def clusters_of(result: Duplicates) -> dict[int, int]:
    found = table(result)
    assert found.num_rows == result.report.rows_given
    assert found.equals(found.sort_by([("cluster_id", "ascending"), ("row_id", "ascending")]))
    return dict(zip(*(column.to_pylist() for column in found.columns), strict=True))


@given(rows(), DISTANCES)
def test_pairs_are_those_of_a_comparison_of_all_with_all(given_rows: Rows, bound: float) -> None:
    result = minhash_pairs(given_rows.documents(), bound)
    most = sum(d / given_rows.num_hashes <= bound for d in range(1, given_rows.num_hashes + 1))
    expected = {
        pair: float(np.float32(different / given_rows.num_hashes))
        for pair, different in given_rows.near(most).items()
    }
    assert pairs_of(result) == expected
    assert result.report.most_different == most
    assert result.report.complete == (most < given_rows.num_bands)
    assert result.report.documents == len(given_rows.row_ids)
    assert result.report.signatures == len(np.unique(given_rows.signatures, axis=0))


@given(rows(), DISTANCES)
def test_clusters_are_the_components_of_the_pairs(given_rows: Rows, bound: float) -> None:
    result = minhash_clusters(given_rows.documents(), bound)
    assert clusters_of(result) == clusters(given_rows.near(result.report.most_different))


@given(rows(most_rows=40), DISTANCES, st.integers(2, 6))
def test_no_pair_is_lost_of_a_large_bucket_unless_the_report_says_so(
    given_rows: Rows, bound: float, max_bucket: int
) -> None:
    result = minhash_pairs(given_rows.documents(), bound, max_bucket=max_bucket)
    found = pairs_of(result)
    report = result.report
    every = given_rows.near(report.most_different)
    assert found.keys() <= every.keys()
    lost = len(every) - len(found)
    assert report.pairs_folded <= lost <= report.pairs_folded + report.pairs_skipped
    if report.pairs_skipped == 0:
        assert clusters(found) == clusters(every)
    if report.complete:
        assert found.keys() == every.keys()
    assert (report.large_bucket_count > 0) >= (lost > 0)


@given(rows(most_rows=40), DISTANCES, st.integers(2, 6))
def test_clusters_of_large_buckets_are_right_unless_the_report_says_otherwise(
    given_rows: Rows, bound: float, max_bucket: int
) -> None:
    result = minhash_clusters(given_rows.documents(), bound, max_bucket=max_bucket)
    found = clusters_of(result)
    every = clusters(given_rows.near(result.report.most_different))
    if result.report.pairs_skipped == 0:
        assert found == every
    # No two rows are together that should not be.
    assert all(every[row] == every[cluster] for row, cluster in found.items())
    pairs = minhash_pairs(given_rows.documents(), bound, max_bucket=max_bucket)
    assert len(found) >= len(clusters(pairs_of(pairs)))


@given(rows(most_rows=40), st.integers(0, 40), st.integers(1, 9))
def test_reading_the_bands_in_slices_changes_nothing(
    given_rows: Rows, bound: int, at_once: int
) -> None:
    documents = given_rows.documents()
    report = DuplicatesReport(given_rows.num_bands, min(bound, given_rows.num_hashes))
    groups = identical(documents, at_once)
    found = [
        tuple(sorted(documents.row_ids[[left, right]].tolist()))
        for near in NearPairs(documents, groups, 1000, at_once, report)
        for left, right in zip(near.left.tolist(), near.right.tolist(), strict=True)
    ]
    standing = documents.row_ids[~groups.behind].tolist()
    expected = {p for p in given_rows.near(report.most_different) if set(p) <= set(standing)}
    assert len(found) == len(set(found))
    assert set(found) == expected


@given(rows(most_rows=40), st.integers(1, 9))
def test_slices_hold_every_entry_and_cut_no_bucket(given_rows: Rows, at_once: int) -> None:
    documents = given_rows.documents()
    for band in range(given_rows.num_bands):
        slices = list(documents.entries(band, at_once))
        keys = [key for part, _ in slices for key in part.tolist()]
        assert keys == sorted(keys)
        assert all(key >> 56 == band for key in keys)
        assert sorted(n for _, part in slices for n in part.tolist()) == list(range(len(documents)))
        ends = [(part[0], part[-1]) for part, _ in slices]
        assert all(one[1] != other[0] for one, other in pairwise(ends))


@pytest.mark.parametrize("search", [minhash_pairs, minhash_clusters])
@pytest.mark.parametrize(
    "bound", [-0.1, 1.1, math.nan, math.inf, -math.inf, True, "0.1", None, 1 + 1e-9]
)
def test_a_distance_out_of_range_is_refused(search: Any, bound: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"max_distance: got .* from 0 to 1"):
        search(Documents([], 128, 16), bound)


@pytest.mark.parametrize("search", [minhash_pairs, minhash_clusters])
@pytest.mark.parametrize("size", [1, 0, -1, 2.5, True, None])
def test_a_bucket_size_out_of_range_is_refused(search: Any, size: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"max_bucket: got .* at least 2"):
        search(Documents([], 128, 16), 0.1, max_bucket=size)


@pytest.mark.parametrize(
    ("search", "schema"), [(minhash_pairs, PAIRS_SCHEMA), (minhash_clusters, CLUSTERS_SCHEMA)]
)
def test_a_table_without_rows_has_no_duplicates(search: Any, schema: pa.Schema) -> None:
    result = search(Documents([], 128, 16), 0.1)
    assert result.schema == schema
    assert list(result.batches) == []
    assert result.report.complete


def test_the_bound_is_compared_as_the_distance_is() -> None:
    assert 0.29 * 100 < 29
    assert most_different(0.29, 100) == 29
    assert most_different(0.1, 128) == 12
    assert most_different(0, 128) == 0
    assert most_different(1, 4096) == 4096


def test_closing_the_batches_ends_the_work_and_holds_nothing() -> None:
    rng = np.random.default_rng(1)
    signatures = rng.integers(0, 2, (2_000, 16)).astype(np.uint16)
    documents = Rows(
        signatures, np.arange(2_000, dtype=np.uint64), 16, np.zeros(2_000, dtype=np.int64)
    ).documents()
    alive = weakref.ref(documents)
    result = minhash_pairs(documents, 1)
    first = next(result.batches)
    del documents
    assert alive() is not None
    given_so_far = result.report.rows_given
    assert given_so_far == first.num_rows
    result.batches.close()
    gc.collect()
    assert alive() is None
    assert list(result.batches) == []
    assert result.report.rows_given == given_so_far
