"""`bitmap_page_lookup.lance` as the specification has it, and as pylance may write it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from datafusion_lance.indexes.cache import ReaderCache
from datafusion_lance.indexes.errors import UnsupportedVersionError, UnusableIndexError
from datafusion_lance.indexes.evaluation import evaluate
from datafusion_lance.indexes.query import And, HasAll, HasAny, Is, Not, Or
from datafusion_lance.indexes.search_stats import SearchStats
from datafusion_lance.indexes.snapshot import Snapshot

from ..answers import (
    covered,
    expected,
    has_all,
    has_any,
    only_index,
    snapshot_of,
    three_values,
    true_rows,
)
from .written_index import WrittenSegment, commit_index

_LISTS = [["a", "b"], ["b"], [], None, ["a", None], [None], ["c"], ["b", "b"]]


def _table(path: Path, lists: list[list[str | None] | None] = _LISTS) -> lance.LanceDataset:
    """Two rows to a fragment."""
    table = pa.table({"tags": pa.array(lists, pa.list_(pa.string()))})
    return lance.write_dataset(table, path / "table.lance", max_rows_per_file=2)


def _indexed(path: Path) -> Snapshot:
    dataset = _table(path)
    dataset.create_scalar_index("tags", "LABEL_LIST")
    return snapshot_of(dataset)


# -- what is asked of it --------------------------------------------------------------------


@pytest.mark.parametrize("match_null", [False, True])
@pytest.mark.parametrize("labels", [[], ["a"], ["a", "b"], ["b", "zz"], ["zz"]])
def test_has_any_and_has_all(tmp_path: Path, labels: list[str], match_null: bool) -> None:
    snapshot = _indexed(tmp_path)
    needles = {*labels, None} if match_null else set(labels)
    every = frozenset(snapshot.fragment_ids)
    any_of = has_any(snapshot, labels, match_null=match_null)
    assert three_values(snapshot, any_of) == expected(
        snapshot.dataset, every, lambda elements: not needles.isdisjoint(elements)
    )
    all_of = has_all(snapshot, labels, match_null=match_null)
    assert three_values(snapshot, all_of) == expected(
        snapshot.dataset, every, lambda elements: needles <= set(elements)
    )


def test_only_the_covered_fragments_are_answered(tmp_path: Path) -> None:
    snapshot = _indexed(tmp_path)
    query = has_any(snapshot, ["b"])
    answer = evaluate(query, snapshot, frozenset({0, 3}), SearchStats())
    assert answer.true.fragment_ids == (0, 3)
    negated = evaluate(Not(query), snapshot, frozenset({1, 2}), SearchStats())
    assert negated.true.addresses().tolist() == [1 << 32, 2 << 32, 2 << 32 | 1]


# -- bitmaps on demand, and the cache -------------------------------------------------------


def test_bitmaps_are_read_when_they_are_asked_for_and_once(tmp_path: Path) -> None:
    snapshot = _indexed(tmp_path)
    query = And((has_any(snapshot, ["a", "zz"]), Not(has_any(snapshot, ["b"]))))
    stats = SearchStats()
    first = true_rows(snapshot, query, stats)
    assert stats.bitmaps_read == 3  # a, b, and the null lists
    assert stats.bytes_read > 0
    assert stats.rows_found == len(first) == 1
    again = SearchStats()
    assert true_rows(snapshot, query, again) == first
    assert (again.bitmaps_read, again.bytes_read) == (0, 0)
    assert again.search_seconds > 0


def test_a_cache_too_small_for_anything_changes_no_answer(tmp_path: Path) -> None:
    dataset = _indexed(tmp_path).dataset
    snapshot = Snapshot(dataset, ReaderCache(0))
    query = Or((has_any(snapshot, ["a"]), has_any(snapshot, ["c"])))
    for _ in range(2):
        assert true_rows(snapshot, query) == {0, 2 << 32, 3 << 32}
    assert len(snapshot.cache) == 0


def test_threads_share_a_reader(tmp_path: Path) -> None:
    labels = [f"label-{i}" for i in range(300)]
    dataset = _table(tmp_path, [[labels[i % 300], labels[i * 7 % 300]] for i in range(2000)])
    dataset.create_scalar_index("tags", "LABEL_LIST")
    snapshot = snapshot_of(dataset)
    truth = dataset.to_table(with_row_address=True)
    rows = list(zip(truth["_rowaddr"].to_pylist(), truth["tags"].to_pylist(), strict=True))

    def search(label: str) -> bool:
        found = true_rows(snapshot, has_any(snapshot, [label]))
        return found == {address for address, elements in rows if label in elements}

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(search, labels[:40]))


# -- versions -------------------------------------------------------------------------------


def _versioned(path: Path, version: int) -> Snapshot:
    segment = WrittenSegment(
        [("a", {0: [0], 2: [0]}), ("b", {0: [0, 1], 3: [1]})],
        {0, 1, 2, 3},
        null_lists={1: [1]},
        index_version=version,
        nulls_metadata="" if version == 0 else None,
    )
    return snapshot_of(commit_index(_table(path), segment))


def test_version_0_stores_no_null_lists(tmp_path: Path) -> None:
    """TRUE is exact, NULL is not known, and so FALSE is not either."""
    snapshot = _versioned(tmp_path, 0)
    query = has_any(snapshot, ["b"])
    assert query.exact
    assert not query.null_known
    assert true_rows(snapshot, query) == {0, 1, 3 << 32 | 1}
    assert true_rows(snapshot, Is(query, True)) == {0, 1, 3 << 32 | 1}
    not_true = true_rows(snapshot, Not(Is(query, True)))
    assert not_true == {1 << 32, 1 << 32 | 1, 2 << 32, 2 << 32 | 1, 3 << 32}
    for refused in (lambda: Not(query), lambda: Is(query, False), lambda: Is(query, None)):
        with pytest.raises(ValueError, match="known NULL rows"):
            refused()
    with pytest.raises(UnusableIndexError, match="no null lists"):
        true_rows(snapshot, has_all(snapshot, []))


def test_version_1_does(tmp_path: Path) -> None:
    snapshot = _versioned(tmp_path, 1)
    query = has_any(snapshot, ["b"])
    assert true_rows(snapshot, Is(query, None)) == {1 << 32 | 1}


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    snapshot = _versioned(tmp_path, 2)
    with pytest.raises(UnsupportedVersionError, match="its version is 2, and 1 is the newest"):
        snapshot.covered_fragments(only_index(snapshot))


# -- what pylance's files are not, and the format allows ------------------------------------


def test_keys_need_no_order(tmp_path: Path) -> None:
    segment = WrittenSegment(
        [("c", {3: [0]}), (None, {2: [0, 1]}), ("b", {0: [0, 1], 3: [1]}), ("a", {0: [0], 2: [0]})],
        {0, 1, 2, 3},
        null_lists={1: [1]},
    )
    snapshot = snapshot_of(commit_index(_table(tmp_path), segment))
    for labels in (["a"], ["b", "c"], ["zz"]):
        assert three_values(snapshot, has_any(snapshot, labels, match_null=True)) == expected(
            snapshot.dataset,
            frozenset({0, 1, 2, 3}),
            lambda elements, labels=labels: not {*labels, None}.isdisjoint(elements),
        )


def test_a_posting_may_hold_a_whole_fragment(tmp_path: Path) -> None:
    dataset = _table(tmp_path, [["a"], ["a"], ["a"], ["b"], None, None])
    dataset.delete("_rowaddr = 1")
    segment = WrittenSegment(
        [("a", {0: None, 1: [0]}), ("b", {1: [1]})], {0, 1, 2}, null_lists={2: None}
    )
    snapshot = snapshot_of(commit_index(lance.dataset(dataset.uri), segment))
    query = has_any(snapshot, ["a"])
    assert three_values(snapshot, query) == {
        0: True,
        1 << 32: True,
        1 << 32 | 1: False,
        2 << 32: None,
        2 << 32 | 1: None,
    }
    assert three_values(snapshot, has_all(snapshot, ["a", "b"]))[0] is False


def test_rows_outside_the_claimed_fragments_do_not_count(tmp_path: Path) -> None:
    """pylance takes a rewritten fragment off the claims, and leaves its rows in the file."""
    segment = WrittenSegment([("a", {0: [0], 1: [0], 9: [5]})], {0}, null_lists={1: [1]})
    snapshot = snapshot_of(commit_index(_table(tmp_path), segment))
    assert covered(snapshot, has_any(snapshot, ["a"])) == {0}
    assert three_values(snapshot, has_any(snapshot, ["a"])) == {0: True, 1: False}


def test_bitmaps_may_be_large_binary(tmp_path: Path) -> None:
    segment = WrittenSegment([("a", {0: [0]})], {0}, bitmap_type=pa.large_binary())
    snapshot = snapshot_of(commit_index(_table(tmp_path), segment))
    assert true_rows(snapshot, has_any(snapshot, ["a"])) == {0}


# -- segments -------------------------------------------------------------------------------


def test_segments_are_one_index(tmp_path: Path) -> None:
    one = WrittenSegment([("a", {0: [0]}), ("b", {0: [0, 1]})], {0, 1}, null_lists={1: [1]})
    two = WrittenSegment(
        [(None, {2: [0, 1]}), ("a", {2: [0]}), ("b", {3: [1]}), ("c", {3: [0]})], {2, 3}
    )
    snapshot = snapshot_of(commit_index(_table(tmp_path), one, two))
    every = frozenset({0, 1, 2, 3})
    query = has_any(snapshot, ["a", "c"])
    assert covered(snapshot, query) == every
    assert three_values(snapshot, query) == expected(
        snapshot.dataset, every, lambda elements: not {"a", "c"}.isdisjoint(elements)
    )
    both = has_all(snapshot, ["a", "b"])
    assert three_values(snapshot, both) == expected(
        snapshot.dataset, every, lambda elements: {"a", "b"} <= set(elements)
    )


def test_each_segment_answers_for_its_own_fragments(tmp_path: Path) -> None:
    one = WrittenSegment([("a", {0: [0], 2: [1]})], {0, 1}, null_lists={3: [0]})
    two = WrittenSegment([("a", {0: [1], 2: [0]})], {2, 3})
    snapshot = snapshot_of(commit_index(_table(tmp_path), one, two))
    query = has_any(snapshot, ["a"])
    assert true_rows(snapshot, query) == {0, 2 << 32}
    assert true_rows(snapshot, Is(query, None)) == set()


def test_a_fragment_that_two_segments_claim_is_not_covered(tmp_path: Path) -> None:
    one = WrittenSegment([("a", {0: [0]})], {0, 1})
    two = WrittenSegment([("a", {2: [0]})], {1, 2})
    snapshot = snapshot_of(commit_index(_table(tmp_path), one, two))
    assert covered(snapshot, has_any(snapshot, ["a"])) == {0, 2}


def test_one_segment_without_null_lists_leaves_them_unknown(tmp_path: Path) -> None:
    one = WrittenSegment([("a", {0: [0]})], {0, 1}, null_lists={1: [1]})
    two = WrittenSegment([("a", {2: [0]})], {2, 3}, index_version=0, nulls_metadata="")
    snapshot = snapshot_of(commit_index(_table(tmp_path), one, two))
    assert not has_any(snapshot, ["a"]).null_known
    assert true_rows(snapshot, has_any(snapshot, ["a"])) == {0, 2 << 32}


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (
            WrittenSegment([], {1}, details=("/lance.table.BitmapIndexDetails", b"")),
            "segments are of different kinds",
        ),
        (WrittenSegment([], {1}, fields=[0, 1]), "not on one and the same column"),
    ],
)
def test_segments_that_do_not_belong_together_are_refused(
    tmp_path: Path, other: WrittenSegment, reason: str
) -> None:
    one = WrittenSegment([("a", {0: [0]})], {0})
    snapshot = snapshot_of(commit_index(_table(tmp_path), one, other))
    (index,) = snapshot.indexes
    with pytest.raises(UnusableIndexError, match=reason):
        snapshot.covered_fragments(index)


def test_labels_of_another_type_are_refused(tmp_path: Path) -> None:
    segment = WrittenSegment([(1, {0: [0]})], {0}, key_type=pa.int32())
    snapshot = snapshot_of(commit_index(_table(tmp_path), segment))
    with pytest.raises(UnusableIndexError, match="built over elements of type int32"):
        true_rows(snapshot, has_any(snapshot, ["a"]))


def test_leaves_of_both_kinds_over_one_index(tmp_path: Path) -> None:
    snapshot = _indexed(tmp_path)
    index = only_index(snapshot)
    a, ab = pa.array(["a"]), pa.array(["a", "b"])
    query = And((HasAny(index, "tags", a, False), Not(HasAll(index, "tags", ab, False))))
    assert true_rows(snapshot, query) == {2 << 32}
