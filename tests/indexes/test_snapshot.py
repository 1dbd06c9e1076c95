"""One version of a table: its live rows, its fields, and what its indexes still cover."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lance.dataset import LanceOperation
from lance.file import LanceFileWriter
from lance.fragment import DataFile
from pyroaring import BitMap

from datafusion_lance.indexes.errors import CorruptIndexError
from datafusion_lance.indexes.live_rows import decode_deletions
from datafusion_lance.indexes.manifest import DeletionFile
from datafusion_lance.indexes.row_set import RowSet
from datafusion_lance.indexes.snapshot import Snapshot

from .answers import covered, expected, has_any, only_index, snapshot_of, three_values


def _table(path: Path, rows: int = 40, *, stable_row_ids: bool = False) -> lance.LanceDataset:
    table = pa.table({"id": range(rows), "tags": [[f"t{i % 3}"] for i in range(rows)]})
    return lance.write_dataset(
        table,
        path / "table.lance",
        max_rows_per_file=max(rows // 4, 1),
        enable_stable_row_ids=stable_row_ids,
    )


def _indexed(path: Path, *, stable_row_ids: bool = False) -> lance.LanceDataset:
    """40 rows in four fragments."""
    dataset = _table(path, stable_row_ids=stable_row_ids)
    dataset.create_scalar_index("tags", "LABEL_LIST")
    return lance.dataset(dataset.uri)


def _covered(dataset: lance.LanceDataset) -> set[int]:
    """What the index covers, after checking that it answers there as the rows do."""
    snapshot = snapshot_of(lance.dataset(dataset.uri))
    query = has_any(snapshot, ["t1"])
    fragments = covered(snapshot, query)
    truth = expected(snapshot.dataset, fragments, lambda elements: "t1" in elements)
    assert three_values(snapshot, query) == truth
    return set(fragments)


# -- live rows ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "ending"), [("id % 997 = 3", "arrow"), ("id % 3 <> 0", "bin"), ("id < 500", None)]
)
def test_deleted_rows_are_not_live(tmp_path: Path, condition: str, ending: str | None) -> None:
    dataset = _table(tmp_path, 40_000)
    dataset.delete(condition)
    if ending is not None:
        files = list(Path(dataset.uri).glob("_deletions/*"))
        assert {file.suffix for file in files} == {f".{ending}"}
    snapshot = snapshot_of(dataset)
    live = snapshot.live_rows(snapshot.fragment_ids)
    scanned = dataset.to_table(columns=[], with_row_address=True).column("_rowaddr")
    assert live.addresses().tolist() == scanned.to_pylist()
    assert snapshot.live_rows([2]) == live.restrict([2])
    every = RowSet.from_bitmaps({f: BitMap(range(10_000)) for f in snapshot.fragment_ids})
    assert snapshot.live_among(every) == live
    assert snapshot.live_among(RowSet.from_bitmaps({}, snapshot.fragment_ids)) == live


def test_a_row_behind_the_last_is_refused(tmp_path: Path) -> None:
    snapshot = snapshot_of(_table(tmp_path))
    with pytest.raises(ValueError, match="row 10 in fragment 2 of 10 rows"):
        snapshot.live_among(RowSet.from_bitmaps({2: BitMap([10])}))


@pytest.mark.parametrize(
    ("damage", "check"),
    [
        (lambda file: file.unlink(), "missing index file"),
        (lambda file: file.write_bytes(b""), "deleted rows: "),
        (lambda file: file.write_bytes(file.read_bytes()[:-9]), "deleted rows: "),
    ],
)
@pytest.mark.parametrize("condition", ["id < 2", "id % 3 <> 0"])
def test_a_damaged_deletion_file_is_told_by_its_name(
    tmp_path: Path, damage: Callable[[Path], object], check: str, condition: str
) -> None:
    dataset = _table(tmp_path, 4_000)
    dataset.delete(condition)
    snapshot = snapshot_of(dataset)
    file = min(Path(dataset.uri).glob("_deletions/0-*"))
    damage(file)
    with pytest.raises(CorruptIndexError, match=check) as raised:
        snapshot.live_rows([0])
    assert raised.value.file == str(file)


@given(st.sets(st.integers(0, 2**32 - 1), max_size=50), st.booleans())
def test_deletion_files_are_read(offsets: set[int], roaring: bool) -> None:
    if roaring:
        data = BitMap(offsets).serialize()
    else:
        sink = pa.BufferOutputStream()
        table = pa.table({"row_id": pa.array(list(offsets), pa.uint32())})
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        data = sink.getvalue().to_pybytes()
    file = DeletionFile("f", roaring, len(offsets), None)
    assert decode_deletions(data, file) == BitMap(offsets)
    with pytest.raises(ValueError, match="the manifest says"):
        decode_deletions(data, DeletionFile("f", roaring, len(offsets) + 1, None))


# -- row ids --------------------------------------------------------------------------------


@pytest.mark.parametrize("external", [False, True])
def test_row_ids_are_found_where_a_scan_finds_them(
    tmp_path: Path, external: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = _table(tmp_path, stable_row_ids=True)
    dataset.update({"id": "id + 100"}, where="id % 5 = 1")
    dataset.delete("id = 4")
    dataset = lance.dataset(dataset.uri)
    table = dataset.to_table(columns=[], with_row_id=True, with_row_address=True)
    snapshot = snapshot_of(dataset)
    if external:
        # A manifest may keep the sequence in a file of its own; pylance 14 does not.
        fragments = type(snapshot.manifest.fragments[0])
        monkeypatch.setattr(fragments, "external_row_ids", property(lambda _: True))
    for row_id, address in zip(
        table["_rowid"].to_pylist(), table["_rowaddr"].to_pylist(), strict=True
    ):
        one = RowSet.from_addresses(np.array([row_id], dtype=np.uint64))
        assert snapshot.addresses_of(one).addresses().tolist() == [address]
    gone = RowSet.from_addresses(np.array([4, 1_000], dtype=np.uint64))
    assert snapshot.addresses_of(gone) == RowSet.EMPTY


def test_without_stable_row_ids_an_id_is_an_address(tmp_path: Path) -> None:
    snapshot = snapshot_of(_table(tmp_path))
    assert not snapshot.stable_row_ids
    rows = RowSet.from_bitmaps({0: BitMap([1])})
    assert snapshot.addresses_of(rows) is rows


# -- fields ---------------------------------------------------------------------------------


def test_fields_are_found_by_id_under_their_current_names(tmp_path: Path) -> None:
    struct = pa.struct({"inner": pa.list_(pa.struct({"leaf": pa.int8()}))})
    table = pa.table({"old": [["a"]], "s": pa.array([{"inner": []}], struct)})
    dataset = lance.write_dataset(table, tmp_path / "table.lance")
    dataset.create_scalar_index("old", "LABEL_LIST")
    renaming: Any = {"path": "old", "name": "new"}
    dataset.alter_columns(renaming)
    snapshot = snapshot_of(lance.dataset(dataset.uri))
    names = {i: snapshot.column_name(i) for i in range(6)}
    assert names == {
        0: "new",
        1: "new.item",
        2: "s",
        3: "s.inner",
        4: "s.inner.item",
        5: "s.inner.item.leaf",
    }
    assert snapshot.column_name(99) is None
    assert snapshot.field(99) is None
    assert snapshot.field(0) == pa.field("new", pa.list_(pa.string()))
    assert snapshot.field(1) == pa.field("item", pa.string())
    assert snapshot.field(5) == pa.field("leaf", pa.int8())
    assert only_index(snapshot, "new").name == "old_idx"
    assert snapshot.indexes_on("old") == ()


def test_an_index_inside_a_struct_is_on_no_column(tmp_path: Path) -> None:
    table = pa.table({"s": [{"tags": ["a"]}], "tags": [["b"]]})
    dataset = lance.write_dataset(table, tmp_path / "table.lance")
    dataset.create_scalar_index("s.tags", "LABEL_LIST")
    snapshot = snapshot_of(dataset)
    assert len(snapshot.indexes) == 1
    for name in ("s", "tags", "s.tags"):
        assert snapshot.indexes_on(name) == ()


# -- coverage -------------------------------------------------------------------------------

stable = pytest.mark.parametrize("stable_row_ids", [False, True])


@stable
def test_deletes_and_appends(tmp_path: Path, stable_row_ids: bool) -> None:
    dataset = _indexed(tmp_path, stable_row_ids=stable_row_ids)
    dataset.delete("id = 3 OR id >= 30")
    dataset.insert(pa.table({"id": [50], "tags": [["t1"]]}))
    assert _covered(dataset) == {0, 1, 2}


@stable
def test_an_update_of_the_indexed_column(tmp_path: Path, stable_row_ids: bool) -> None:
    dataset = _indexed(tmp_path, stable_row_ids=stable_row_ids)
    dataset.update({"tags": "['t1']"}, where="id = 3")
    assert _covered(dataset) == {0, 1, 2, 3}


@stable
def test_an_update_of_another_column(tmp_path: Path, stable_row_ids: bool) -> None:
    """With stable row ids pylance extends the claims to the rows' new fragment, rightly."""
    dataset = _indexed(tmp_path, stable_row_ids=stable_row_ids)
    dataset.update({"id": "-id"}, where="id = 4")
    assert _covered(dataset) == ({0, 1, 2, 3, 4} if stable_row_ids else {0, 1, 2, 3})


@stable
def test_rows_changed_before_do_not_come_back(tmp_path: Path, stable_row_ids: bool) -> None:
    dataset = _indexed(tmp_path, stable_row_ids=stable_row_ids)
    dataset.update({"tags": "['t1']"}, where="id = 3")
    dataset.update({"id": "-id"}, where="id IN (3, 4)")
    assert _covered(dataset) == {0, 1, 2, 3}
    dataset.optimize.compact_files()
    dataset.optimize.optimize_indices()
    dataset = lance.dataset(dataset.uri)
    assert _covered(dataset) == {f.fragment_id for f in dataset.get_fragments()}


@stable
def test_compaction(tmp_path: Path, stable_row_ids: bool) -> None:
    dataset = _indexed(tmp_path, stable_row_ids=stable_row_ids)
    dataset.delete("id % 4 = 1")
    dataset.optimize.compact_files()
    dataset = lance.dataset(dataset.uri)
    (fragment,) = dataset.get_fragments()
    assert _covered(dataset) == {fragment.fragment_id} == {4}


def test_compaction_whose_remapping_is_put_off(tmp_path: Path) -> None:
    """The next commit claims the new fragment, while the file has the rows' old addresses."""
    dataset = _indexed(tmp_path)
    dataset.delete("id = 5")
    dataset.optimize.compact_files(defer_index_remap=True)
    assert _covered(dataset) == set()
    dataset = lance.dataset(dataset.uri)
    dataset.update({"id": "-id"}, where="id = 4")
    assert _covered(dataset) == {4}
    dataset = lance.dataset(dataset.uri)
    dataset.optimize.compact_files(defer_index_remap=True)
    dataset.insert(pa.table({"id": [50], "tags": [["t1"]]}))
    _covered(dataset)
    dataset.optimize.optimize_indices()
    assert len(_covered(dataset)) > 0


def _update_columns(dataset: lance.LanceDataset, place: int = 1) -> None:
    """Writes the list column of one fragment anew, in place."""
    changes = pa.table({"id": [10, 11], "tags": [["t1"], ["t2"]]})
    old = dataset.get_fragments()[place]
    fragment, fields = old.update_columns(changes, left_on="id", right_on="id")
    operation = LanceOperation.Update(updated_fragments=[fragment], fields_modified=fields)
    lance.LanceDataset.commit(dataset.uri, operation, read_version=dataset.version)


@stable
def test_a_column_rewritten_in_place(tmp_path: Path, stable_row_ids: bool) -> None:
    """pylance goes on claiming the fragment, and answers with the old labels itself."""
    dataset = _indexed(tmp_path, stable_row_ids=stable_row_ids)
    _update_columns(dataset)
    assert _covered(dataset) == {0, 2, 3}


@stable
def test_a_column_rewritten_in_place_after_a_compaction(
    tmp_path: Path, stable_row_ids: bool
) -> None:
    """The fragment is in no version that the index was built over."""
    dataset = _indexed(tmp_path, stable_row_ids=stable_row_ids)
    dataset.optimize.compact_files()
    _update_columns(lance.dataset(dataset.uri), place=0)
    assert _covered(dataset) == set()


@stable
def test_a_column_rewritten_in_place_long_ago(tmp_path: Path, stable_row_ids: bool) -> None:
    """The manifest that the index was built over is gone; what was replaced still shows."""
    dataset = _indexed(tmp_path, stable_row_ids=stable_row_ids)
    _update_columns(dataset)
    lance.dataset(dataset.uri).cleanup_old_versions(timedelta(0))
    assert _covered(dataset) == {0, 2, 3}


@stable
def test_columns_added_later_cost_no_coverage(tmp_path: Path, stable_row_ids: bool) -> None:
    dataset = _table(tmp_path, stable_row_ids=stable_row_ids)
    dataset.add_columns({"more": "['t1']"})
    dataset.create_scalar_index("more", "LABEL_LIST")
    dataset.add_columns({"other": "id + 1"})
    dataset.drop_columns(["id"])
    for _ in range(2):
        snapshot = snapshot_of(lance.dataset(dataset.uri))
        assert snapshot.covered_fragments(only_index(snapshot, "more")) == {0, 1, 2, 3}
        lance.dataset(dataset.uri).cleanup_old_versions(timedelta(0))


@stable
def test_a_column_of_the_same_name_is_another_column(tmp_path: Path, stable_row_ids: bool) -> None:
    dataset = _indexed(tmp_path, stable_row_ids=stable_row_ids)
    dataset.drop_columns(["tags"])
    dataset.add_columns({"tags": "['t1']"})
    assert snapshot_of(lance.dataset(dataset.uri)).indexes_on("tags") == ()


@stable
def test_replaced_data(tmp_path: Path, stable_row_ids: bool) -> None:
    dataset = _table(tmp_path, stable_row_ids=stable_row_ids)
    dataset.add_columns({"more": "['t1']"})
    dataset = lance.dataset(dataset.uri)
    dataset.create_scalar_index("more", "LABEL_LIST")
    old = dataset.get_fragments()[2].metadata.files[-1]
    data = pa.table({"more": [["t2"]] * 10})
    with LanceFileWriter(f"{dataset.uri}/data/new.lance", data.schema) as writer:
        writer.write_batch(data)
    new = DataFile(
        "new.lance", old.fields, old.column_indices, old.file_major_version, old.file_minor_version
    )
    group = LanceOperation.DataReplacementGroup(2, new)
    operation = LanceOperation.DataReplacement([group])
    dataset = lance.LanceDataset.commit(dataset.uri, operation, read_version=dataset.version)
    snapshot = snapshot_of(dataset)
    assert snapshot.covered_fragments(only_index(snapshot, "more")) == {0, 1, 3}


@stable
def test_an_overlay(tmp_path: Path, stable_row_ids: bool) -> None:
    """New values over single cells: the fragments where they came after the index are out."""
    dataset = _indexed(tmp_path, stable_row_ids=stable_row_ids)
    _, old = dataset.get_fragments()[:2]
    data = pa.table({"tags": [["t1"], ["t2"]]})
    with LanceFileWriter(f"{dataset.uri}/data/over.lance", data.schema) as writer:
        writer.write_batch(data)
    (field,) = (f for f in old.metadata.files[0].fields if f > 1)
    versions = (old.metadata.files[0].file_major_version, old.metadata.files[0].file_minor_version)
    file = DataFile("over.lance", [field], [0], *versions)
    group = LanceOperation.DataOverlayGroup(1, [LanceOperation.DataOverlayFile(file, [3, 5])])
    operation = LanceOperation.DataOverlay([group])
    dataset = lance.LanceDataset.commit(dataset.uri, operation, read_version=dataset.version)
    snapshot = snapshot_of(dataset)
    assert snapshot.covered_fragments(only_index(snapshot)) == {0, 2, 3}


@stable
def test_a_restored_version(tmp_path: Path, stable_row_ids: bool) -> None:
    dataset = _indexed(tmp_path, stable_row_ids=stable_row_ids)
    _update_columns(dataset)
    lance.dataset(dataset.uri, version=2).restore()
    assert _covered(dataset) == {0, 1, 2, 3}


@stable
def test_an_older_version_is_answered_as_it_was(tmp_path: Path, stable_row_ids: bool) -> None:
    dataset = _indexed(tmp_path, stable_row_ids=stable_row_ids)
    version = dataset.version
    dataset.update({"tags": "['t1']"}, where="id = 3")
    dataset.optimize.compact_files()
    old = lance.dataset(dataset.uri, version=version)
    snapshot = Snapshot(old, snapshot_of(dataset).cache)
    query = has_any(snapshot, ["t1"])
    assert covered(snapshot, query) == {0, 1, 2, 3}
    assert three_values(snapshot, query) == expected(
        old, frozenset({0, 1, 2, 3}), lambda elements: "t1" in elements
    )


@stable
def test_a_table_written_again_at_the_same_place(tmp_path: Path, stable_row_ids: bool) -> None:
    """It has the same version numbers, and shares the session's cache with the one before."""
    cache = snapshot_of(_table(tmp_path / "other")).cache
    for order in (1, -1):
        shutil.rmtree(tmp_path / "table.lance", ignore_errors=True)
        dataset = _table(tmp_path, stable_row_ids=stable_row_ids)
        dataset.update({"id": "id + 100"}, where=f"id * {order} % 7 > 2 * {order}")
        dataset = lance.dataset(dataset.uri)
        dataset.create_scalar_index("tags", "LABEL_LIST")
        snapshot = Snapshot(dataset, cache)
        query = has_any(snapshot, ["t1"])
        assert three_values(snapshot, query) == expected(
            dataset, covered(snapshot, query), lambda elements: "t1" in elements
        )
