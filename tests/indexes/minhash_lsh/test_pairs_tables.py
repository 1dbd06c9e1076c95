"""Pairs and clusters of Lance tables with an index, over segments, deletes, updates and appends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lance.indices import IndexConfig

from datafusion_lance.indexes.errors import CorruptIndexError, InvalidArgumentError
from datafusion_lance.indexes.minhash_lsh.parameters import MinHashParameters
from datafusion_lance.indexes.minhash_lsh.signature import SignatureProcedure
from datafusion_lance.indexes.minhash_lsh.table_duplicates import (
    UnindexedColumn,
    clusters,
    pairs,
)
from datafusion_lance.indexes.search_stats import SearchStats
from datafusion_lance.indexes.snapshot import Snapshot

from ..answers import only_index, snapshot_of
from ..effort import one_in
from . import signed_rows
from .signed_rows import Rows
from .test_pairs import clusters_of, pairs_of

PARAMETERS = MinHashParameters(num_hashes=16, num_bands=8, shingle_size=2)

Step = Callable[[lance.LanceDataset], object]


def text(number: int) -> str | None:
    """A text of a few words, often near others; some are the same, some are NULL or empty."""
    rng = np.random.default_rng(number // 3)
    words = rng.integers(0, 50, 12)
    if number % 3 == 1:
        words[int(rng.integers(0, 12))] = 99
    if number % 13 == 12:
        return None if number % 2 else " "
    return " ".join(f"w{word}" for word in words)


def table(numbers: list[int], seed: int = 0) -> pa.Table:
    texts = pa.array([text(number + seed) for number in numbers], pa.string())
    return pa.table({"id": pa.array(numbers, pa.int64()), "text": texts})


def written(folder: str | Path, *, stable_row_ids: bool = False) -> lance.LanceDataset:
    dataset = lance.write_dataset(
        table(list(range(40))),
        folder,
        max_rows_per_file=10,
        enable_stable_row_ids=stable_row_ids,
    )
    dataset.create_scalar_index(
        "text",
        IndexConfig("minhashlsh", parameters={"num_hashes": 16, "num_bands": 8, "shingle_size": 2}),
    )
    return dataset


def rows_of(dataset: lance.LanceDataset) -> Rows:
    """Every live row that has a signature, scanned without any index."""
    found = dataset.to_table(columns=["text"], with_row_id=True)
    signed, signatures = SignatureProcedure.of(PARAMETERS).sign(found["text"])
    row_ids = found["_rowid"].to_numpy()[signed]
    return Rows(signatures, row_ids, PARAMETERS.num_bands, np.zeros(len(row_ids), dtype=np.int64))


def check(dataset: lance.LanceDataset, indexed: Any = None) -> None:
    snapshot = snapshot_of(dataset)
    index = indexed or only_index(snapshot, "text")
    rows = rows_of(dataset)
    for most_different in (0, 4, 12):
        every = rows.near(most_different)
        result = pairs(index, snapshot, most_different / 16)
        assert pairs_of(result) == {pair: apart / 16 for pair, apart in every.items()}
        assert result.report.documents == len(rows.row_ids)
        found = clusters_of(clusters(index, snapshot, most_different / 16))
        assert found == signed_rows.clusters(every)


ids = st.sets(st.integers(0, 45), min_size=1, max_size=12).map(sorted)


def update(changed: list[int]) -> Step:
    condition = f"id IN ({', '.join(map(str, changed))})"
    return lambda dataset: dataset.update({"text": f"'{text(8)}'"}, where=condition)


def update_id(changed: list[int]) -> Step:
    condition = f"id IN ({', '.join(map(str, changed))})"
    return lambda dataset: dataset.update({"id": "id + 0"}, where=condition)


def delete(gone: list[int]) -> Step:
    return lambda dataset: dataset.delete(f"id IN ({', '.join(map(str, gone))})")


def append(seed: int) -> Step:
    return lambda dataset: dataset.insert(table(list(range(40, 46)), seed))


def merge(changed: list[int], seed: int) -> Step:
    def run(dataset: lance.LanceDataset) -> None:
        merging = dataset.merge_insert("id").when_matched_update_all()
        merging.when_not_matched_insert_all().execute(table(changed, seed))

    return run


def compact(dataset: lance.LanceDataset) -> None:
    dataset.optimize.compact_files()


def compact_deferring(dataset: lance.LanceDataset) -> None:
    if not dataset.has_stable_row_ids:  # pylance refuses it there
        dataset.optimize.compact_files(defer_index_remap=True)


def optimize(dataset: lance.LanceDataset) -> None:
    dataset.optimize.optimize_indices()


def add_segment(dataset: lance.LanceDataset) -> None:
    dataset.optimize.optimize_indices(num_indices_to_merge=0)


STEPS = st.one_of(
    st.sampled_from([compact, compact_deferring, optimize, add_segment]),
    ids.map(update),
    ids.map(update_id),
    ids.map(delete),
    st.integers(0, 9).map(append),
    st.builds(merge, ids, st.integers(0, 9)),
)


@pytest.mark.parametrize("stable_row_ids", [False, True])
@one_in(10)
@given(steps=st.lists(STEPS, min_size=1, max_size=6))
def test_a_table_that_changed_is_answered_as_its_rows_say(
    stable_row_ids: bool, steps: list[Step]
) -> None:
    with TemporaryDirectory() as folder:
        written(folder, stable_row_ids=stable_row_ids)
        for step in steps:
            step(lance.dataset(folder))
            check(lance.dataset(folder))


@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_pairs_reach_over_segments_and_appended_rows(tmp_path: Path, stable_row_ids: bool) -> None:
    dataset = written(tmp_path, stable_row_ids=stable_row_ids)
    for seed, step in ((0, add_segment), (1, compact), (2, lambda _: None)):
        dataset.insert(table(list(range(40, 46)), seed))
        step(dataset)
    dataset = lance.dataset(tmp_path)
    dataset.delete("id IN (0, 3, 41)")
    check(lance.dataset(tmp_path))


def test_a_column_without_index_is_scanned(tmp_path: Path) -> None:
    dataset = lance.write_dataset(table(list(range(60))), tmp_path, max_rows_per_file=25)
    dataset.delete("id = 7")
    check(lance.dataset(tmp_path), UnindexedColumn("text", PARAMETERS))


def test_nothing_is_read_before_the_first_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = written(tmp_path)
    snapshot = snapshot_of(dataset)
    index = only_index(snapshot, "text")
    stats = SearchStats()
    monkeypatch.setattr(Snapshot, "files_of", lambda *_: pytest.fail("a segment was opened"))
    result = pairs(index, snapshot, 0.2, stats=stats)
    with pytest.raises(InvalidArgumentError, match="max_distance"):
        pairs(index, snapshot, -1)
    monkeypatch.undo()
    assert sum(len(batch) for batch in result.batches) > 0
    assert stats.pages_read > 0


def test_a_damaged_bands_file_is_named_when_batches_are_read(tmp_path: Path) -> None:
    dataset = written(tmp_path)
    snapshot = snapshot_of(dataset)
    index = only_index(snapshot, "text")
    (segment,) = index.segments
    file = tmp_path / "_indices" / segment.uuid / "bands.lance"
    file.write_bytes(file.read_bytes()[:-40])
    result = pairs(index, snapshot, 0.2)
    with pytest.raises(CorruptIndexError, match=r"bands\.lance"):
        list(result.batches)
