"""Where rows are, one by one: equal to what is told of them as a set."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from datafusion_lance.indexes.row_set import RowSet

from .answers import snapshot_of


def _table(folder: Path, *, stable_row_ids: bool) -> lance.LanceDataset:
    rows = pa.table({"id": range(100), "x": range(100)})
    return lance.write_dataset(
        rows, folder, max_rows_per_file=10, enable_stable_row_ids=stable_row_ids
    )


def _shuffled_ids(dataset: lance.LanceDataset) -> npt.NDArray[np.uint64]:
    ids = dataset.to_table(columns=[], with_row_id=True)["_rowid"].to_numpy().astype(np.uint64)
    np.random.default_rng(1).shuffle(ids)
    return ids


def _check(dataset: lance.LanceDataset, ids: npt.NDArray[np.uint64]) -> None:
    snapshot = snapshot_of(dataset)
    every = frozenset(snapshot.fragment_ids)
    for fragments in (every, frozenset(sorted(every)[::2]), frozenset[int]()):
        addresses, counts = snapshot.locate(ids, fragments)
        live = snapshot.live_rows(fragments)
        singly = [
            snapshot.addresses_of(RowSet.from_addresses(ids[at : at + 1])) & live
            for at in range(len(ids))
        ]
        assert counts.tolist() == [bool(rows) for rows in singly]
        found = [int(rows.addresses()[0]) for rows in singly if rows]
        assert addresses[counts].tolist() == found


@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_rows_that_were_moved_updated_and_deleted(stable_row_ids: bool, tmp_path: Path) -> None:
    dataset = _table(tmp_path, stable_row_ids=stable_row_ids)
    ids = _shuffled_ids(dataset)
    dataset.delete("id % 9 = 4")
    _check(lance.dataset(tmp_path), ids)
    dataset.update({"x": "x + 1"}, where="id % 7 = 2")
    _check(lance.dataset(tmp_path), ids)
    lance.dataset(tmp_path).optimize.compact_files()
    _check(lance.dataset(tmp_path), ids)
    assert not len(_located(lance.dataset(tmp_path), ids[:0]))


def test_rows_whose_move_the_table_remembers(tmp_path: Path) -> None:
    dataset = _table(tmp_path, stable_row_ids=False)
    dataset.create_scalar_index("x", "BTREE")
    ids = _shuffled_ids(dataset)
    dataset.delete("id % 9 = 4")
    dataset.optimize.compact_files(defer_index_remap=True)
    dataset = lance.dataset(tmp_path)
    _check(dataset, ids)
    assert len(_located(dataset, ids)) == 89


def _located(dataset: lance.LanceDataset, ids: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    snapshot = snapshot_of(dataset)
    addresses, counts = snapshot.locate(ids, frozenset(snapshot.fragment_ids))
    return addresses[counts]


def test_a_row_behind_the_last_one(tmp_path: Path) -> None:
    snapshot = snapshot_of(_table(tmp_path, stable_row_ids=False))
    ids = np.array([3, 10], dtype=np.uint64)
    with pytest.raises(ValueError, match="row 10 in fragment 0, which has 10 rows"):
        snapshot.locate(ids, frozenset({0}))
    assert snapshot.locate(ids, frozenset({1}))[1].tolist() == [False, False]
