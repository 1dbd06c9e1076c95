"""Query Evaluation: equal to pylance's own search, and to a comparison of all signatures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datafusion_lance.indexes.minhash_lsh.ranked import Ranked
from datafusion_lance.indexes.minhash_lsh.search import nearest
from datafusion_lance.indexes.row_set import RowSet
from datafusion_lance.indexes.search_stats import SearchStats

from ..effort import one_in
from .searched import Searched, corpus, index_text, listed, table_of


@dataclass
class Only:
    """A filter that says which rows pass, and remembers which it was asked about."""

    rows: RowSet
    asked: list[RowSet] = field(default_factory=list)

    def passing(self, rows: RowSet) -> RowSet:
        self.asked.append(rows)
        return rows & self.rows


def _check(searched: Searched, texts: list[str]) -> None:
    stats, reader, covered = SearchStats(), searched.reader, searched.covered
    assert reader.signed(covered, stats) == searched.rows.rows
    num_hashes, num_bands = reader.parameters.num_hashes, reader.parameters.num_bands
    for text in texts:
        signature = searched.sign(text)
        if signature is None:
            continue
        every = searched.expected_all(signature)
        candidates = searched.expected_candidates(signature)
        assert listed(reader.candidates(signature, covered, stats)) == listed(candidates)
        assert listed(reader.all_rows(signature, covered, stats)) == listed(every)
        for low, high in ((0, 0), (0, num_bands - 1), (1, num_bands), (3, num_hashes), (5, 4)):
            within = every[(every.different >= low) & (every.different <= high)].rows
            assert reader.within(signature, low, high, covered, stats) == within
        half = covered & set(sorted(covered)[::2])
        inside = every[np.isin(every.addresses >> np.uint64(32), np.array(sorted(half), np.uint64))]
        assert listed(reader.all_rows(signature, half, stats)) == listed(inside)
        assert reader.signed(half, stats) == inside.rows
        for count in (1, 5, 1000):
            found = nearest(reader, signature, count, covered, None, False, stats)
            assert listed(found) == listed(every[:count])
            only = Only(every.rows if count == 1 else inside.rows)
            passing = every if count == 1 else inside
            found = nearest(reader, signature, count, covered, only, False, stats)
            assert listed(found) == listed(passing[:count])
            found = nearest(reader, signature, count, covered, only, True, stats)
            assert listed(found) == listed(_with_ties(passing, count))


def _with_ties(rows: Ranked, count: int) -> Ranked:
    return rows[rows.different <= rows.different[count - 1]] if count < len(rows) else rows


def _same_as_pylance(searched: Searched, texts: list[str], *, updated: bool = False) -> None:
    """`updated` says that rows may have kept their ids, and pylance what they held before."""
    known = frozenset(searched.rows.row_ids.tolist())
    for text in texts:
        signature = searched.sign(text)
        if signature is None:
            assert searched.pylance(text) == []
            continue
        ours = searched.distances(searched.candidates(text))
        theirs = [hit for hit in searched.pylance(text) if hit[0] in known]
        if updated:
            true = frozenset(searched.distances(searched.expected_all(signature)))
            theirs = [hit for hit in theirs if hit in true]
        assert ours == theirs


@pytest.mark.parametrize("stable_row_ids", [False, True])
@pytest.mark.parametrize(
    "parameters",
    [{}, {"num_hashes": 24, "num_bands": 6, "shingle_size": 2}, {"num_hashes": 7, "num_bands": 7}],
)
def test_a_corpus_in_several_segments(
    parameters: dict[str, int], stable_row_ids: bool, tmp_path: Path
) -> None:
    texts = corpus(1500, 1)
    dataset = table_of(
        tmp_path, texts[:800], per_fragment=300, enable_stable_row_ids=stable_row_ids
    )
    index_text(dataset, **parameters)
    for start in (800, 1100):
        part = texts[start : start + 300]
        count = len(part)
        rows = {"id": np.arange(start, start + count), "x": np.zeros(count, np.int64)}
        dataset.insert(pa.table({**rows, "text": pa.array(part, pa.string())}))
        if start == 800:
            dataset.optimize.optimize_indices(num_indices_to_merge=0)
    dataset.delete("id % 7 = 3")
    searched = Searched(lance.dataset(tmp_path))
    assert len(searched.covered) == 4
    queries = [text for text in texts[::19] if text] + ["w1 w2 w3 never seen words", ""]
    _same_as_pylance(searched, queries)
    _check(searched, queries[:20])
    for text in queries[:20]:
        assert searched.pylance(text, 7) == searched.distances(searched.candidates(text)[:7])


Step = Callable[[lance.LanceDataset], object]

_ids = st.sets(st.integers(0, 45), min_size=1, max_size=12).map(sorted)


def _where(ids: list[int]) -> str:
    return f"id IN ({', '.join(map(str, ids))})"


def _rows(ids: list[int], seed: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "x": pa.array([0] * len(ids), pa.int64()),
            "text": pa.array(corpus(len(ids), seed, 6), pa.string()),
        }
    )


def _steps() -> st.SearchStrategy[tuple[str, Step]]:
    def update(column: str, value: str) -> Callable[[list[int]], tuple[str, Step]]:
        return lambda ids: (
            f"update {column} of {ids}",
            lambda dataset: dataset.update({column: value}, where=_where(ids)),
        )

    def merge(ids: list[int], seed: int, columns: list[str]) -> tuple[str, Step]:
        def run(dataset: lance.LanceDataset) -> None:
            merging = dataset.merge_insert("id").when_matched_update_all()
            if len(columns) == 3:
                merging = merging.when_not_matched_insert_all()
            merging.execute(_rows(ids, seed).select(columns))

        return f"merge {columns} of {ids} {seed}", run

    def compact_deferring(dataset: lance.LanceDataset) -> None:
        if not dataset.has_stable_row_ids:  # pylance refuses it there
            dataset.optimize.compact_files(defer_index_remap=True)

    plain: list[tuple[str, Step]] = [
        ("compact", lambda dataset: dataset.optimize.compact_files()),
        ("optimize", lambda dataset: dataset.optimize.optimize_indices()),
        ("add segment", lambda d: d.optimize.optimize_indices(num_indices_to_merge=0)),
        ("compact, remap later", compact_deferring),
    ]
    columns = [["id", "x", "text"], ["id", "text"], ["id", "x"]]
    return st.one_of(
        st.sampled_from(plain),
        _ids.map(update("x", "x + 1")),
        _ids.map(update("text", "'w1 w2 w3 w' || cast(id as string)")),
        _ids.map(lambda ids: (f"delete {ids}", lambda d: d.delete(_where(ids)))),
        st.integers(0, 99).map(
            lambda seed: (f"append {seed}", lambda d: d.insert(_rows(list(range(40, 46)), seed)))
        ),
        st.builds(merge, _ids, st.integers(0, 99), st.sampled_from(columns)),
    )


@pytest.mark.parametrize("stable_row_ids", [False, True])
@one_in(10)
@given(seed=st.integers(0, 99), steps=st.lists(_steps(), min_size=1, max_size=7))
def test_a_table_that_has_changed_since(
    stable_row_ids: bool, seed: int, steps: list[tuple[str, Step]]
) -> None:
    with TemporaryDirectory() as folder:
        texts = corpus(40, seed, 6)
        dataset = table_of(folder, texts, per_fragment=10, enable_stable_row_ids=stable_row_ids)
        index_text(dataset, num_hashes=24, num_bands=12, shingle_size=1)
        queries = [text for text in texts[::20] if text] + ["w1 w2 w3 w4"]
        for _, step in steps:
            step(lance.dataset(folder))
            searched = Searched(lance.dataset(folder))
            _check(searched, queries)
            _same_as_pylance(searched, queries, updated=stable_row_ids)


def test_a_filter_is_asked_about_the_closest_rows_first(tmp_path: Path) -> None:
    texts = [f"the very same text {n % 3000} again and again" for n in range(6000)]
    dataset = table_of(tmp_path, texts, per_fragment=2500)
    index_text(dataset)
    searched = Searched(lance.dataset(tmp_path))
    signature = searched.sign(texts[7])
    assert signature is not None
    every = searched.expected_all(signature)

    def ask(only: Only, count: int) -> tuple[Ranked, SearchStats]:
        stats = SearchStats()
        found = nearest(searched.reader, signature, count, searched.covered, only, True, stats)
        asked = RowSet.union(only.asked)
        assert len(asked) == sum(map(len, only.asked))  # about each row once
        return found, stats

    only = Only(every.rows)
    found, stats = ask(only, 2)
    assert found.row_ids.tolist() == [7, 1 << 32 | 507]
    assert sum(map(len, only.asked)) <= 256
    candidates = len(searched.expected_candidates(signature))
    assert stats.signatures_compared == (candidates if candidates * 8 < 6000 else 6000)
    only = Only(RowSet.from_addresses(every.addresses[-3:]))
    found, _ = ask(only, 2)
    assert len(found) >= 2
    assert found.rows & only.rows == found.rows
    assert RowSet.union(only.asked) == every.rows
    only = Only(RowSet.EMPTY)
    found, _ = ask(only, 10**30)
    assert len(found) == 0
    only = Only(every.rows)
    assert len(ask(only, 0)[0]) == len(only.asked) == 0


def test_a_fragment_that_is_not_covered_is_not_searched(tmp_path: Path) -> None:
    dataset = table_of(tmp_path, ["a b c d e f"] * 20, per_fragment=10)
    index_text(dataset)
    dataset.insert(pa.table({"id": [20], "x": [0], "text": ["a b c d e f"]}))
    searched = Searched(lance.dataset(tmp_path))
    assert searched.covered == {0, 1}
    signature = searched.sign("a b c d e f")
    assert signature is not None
    everywhere = frozenset({0, 1, 2, 99})
    found = searched.reader.candidates(signature, everywhere, SearchStats())
    assert found.row_ids.tolist() == searched.rows.row_ids.tolist()
    assert len(found) == 20
    stats = SearchStats()
    assert len(searched.reader.all_rows(signature, frozenset({2}), stats)) == 0
    assert stats == SearchStats()
