"""Which fragments an index answers for: only those that hold what it was built from."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.dataset import Index, IndexFile

from datafusion_lance.indexes.cache import ReaderCache
from datafusion_lance.indexes.list_element.builder import build_segment, create_list_element
from datafusion_lance.indexes.list_element.details import TYPE_URL, ListElementIndexDetails
from datafusion_lance.indexes.list_element.key_range import In, KeySearch
from datafusion_lance.indexes.list_element.reader import ListElementReader
from datafusion_lance.indexes.manifest import read_indexes
from datafusion_lance.indexes.search_stats import SearchStats
from datafusion_lance.indexes.snapshot import Snapshot

ELEMENT = pa.struct([("label", pa.string()), ("n", pa.int32())])
LABELS = ["a", "b", "c", None]


def rows(ids: range, shift: int = 0) -> pa.Table:
    lists = [[{"label": LABELS[(i + shift) % 4], "n": i}] * (i % 3) for i in ids]
    return pa.table({"id": np.array(ids), "other": [0] * len(ids), "d": lists}).set_column(
        2, "d", pa.array(lists, pa.list_(ELEMENT))
    )


def table(path: Path, stable: bool) -> lance.LanceDataset:
    return lance.write_dataset(
        rows(range(100)), path, max_rows_per_file=25, enable_stable_row_ids=stable
    )


def check(dataset: lance.LanceDataset) -> frozenset[int]:
    """The fragments that the index answers for, in which its answers are the data's."""
    snapshot = Snapshot(dataset, ReaderCache(1 << 20))
    (index,) = (i for i in snapshot.indexes if i.kind == "ListElement")
    reader = ListElementReader(index, snapshot)
    covered = reader.fragment_ids
    assert covered == snapshot.covered_fragments(index)
    live = snapshot.live_rows(covered)
    data = dataset.to_table(columns=["d"], with_row_address=True)
    lists = dict(
        zip(data.column("_rowaddr").to_pylist(), data.column("d").to_pylist(), strict=True)
    )
    lists = {at: elements for at, elements in lists.items() if at >> 32 in covered}
    for label in LABELS[:3]:
        search = KeySearch((In.of(reader.keys[0].codec, pa.array([label])),))
        answer = reader.answer(search, covered, SearchStats())
        assert answer.null is not None
        expected = {at for at, e in lists.items() if any(x["label"] == label for x in e or [])}
        assert set((answer.true & live).addresses().tolist()) == expected
        unknown = {at for at, e in lists.items() if any(x["label"] is None for x in e or [])}
        assert set((answer.null & live).addresses().tolist()) == unknown - expected
    return covered


def update(dataset: lance.LanceDataset) -> None:
    dataset.update({"d": "NULL"}, where="id = 30")


def merge_insert(dataset: lance.LanceDataset) -> None:
    merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(rows(range(80, 110), shift=1))


def merge_insert_d(dataset: lance.LanceDataset) -> None:
    merge = dataset.merge_insert("id").when_matched_update_all()
    merge.execute(rows(range(10, 20), shift=1).select(["id", "d"]))


def append(dataset: lance.LanceDataset) -> None:
    dataset.insert(rows(range(100, 110)))


def delete(dataset: lance.LanceDataset) -> None:
    dataset.delete("id % 7 = 0")


def compact(dataset: lance.LanceDataset) -> None:
    dataset.optimize.compact_files(target_rows_per_fragment=60)


def optimize(dataset: lance.LanceDataset) -> None:
    dataset.optimize.optimize_indices()


def add_column(dataset: lance.LanceDataset) -> None:
    dataset.add_columns({"more": "id + 1"})


def rewrite(dataset: lance.LanceDataset, column: str) -> None:
    """Writes new values of a column of fragment 1 in place."""
    new = rows(range(25, 50), shift=2).select(["id", column])
    old = dataset.get_fragment(1)
    assert old is not None
    fragment, modified = old.update_columns(new, left_on="id", right_on="id")
    operation = lance.LanceOperation.Update(updated_fragments=[fragment], fields_modified=modified)
    lance.LanceDataset.commit(dataset, operation, read_version=dataset.version)
    dataset.checkout_latest()


def rewrite_d(dataset: lance.LanceDataset) -> None:
    rewrite(dataset, "d")


def rewrite_other(dataset: lance.LanceDataset) -> None:
    rewrite(dataset, "other")


def clean_up(dataset: lance.LanceDataset) -> None:
    dataset.cleanup_old_versions(datetime.timedelta(0), delete_unverified=True)


Change = Callable[[lance.LanceDataset], None]
ALL = frozenset(range(4))
HISTORIES: list[tuple[list[Change], frozenset[int] | None]] = [
    ([append], ALL),
    ([delete], ALL),
    ([update], ALL),
    ([merge_insert], ALL),
    ([merge_insert_d], ALL),
    ([add_column], ALL),
    ([rewrite_other], ALL),
    ([rewrite_d], ALL - {1}),
    ([rewrite_d, clean_up], ALL - {1}),
    ([rewrite_d, compact], None),
    ([update, append, merge_insert, delete, rewrite_d, clean_up, update], ALL - {1}),
    ([compact], None),
    ([update, compact, clean_up], None),
    ([merge_insert, compact, update, compact, clean_up, optimize], None),
    ([update, clean_up], ALL),
    ([update, optimize, clean_up, append], ALL),
]


@pytest.mark.parametrize("stable", [False, True], ids=["row addresses", "stable row ids"])
@pytest.mark.parametrize(
    ("history", "covered"),
    HISTORIES,
    ids=[", ".join(change.__name__ for change in history) for history, _ in HISTORIES],
)
def test_answers_are_right_after(
    history: list[Change], covered: frozenset[int] | None, stable: bool, tmp_path: Path
) -> None:
    dataset = table(tmp_path / "t", stable)
    create_list_element(dataset, "d", ["label"], progress=False)
    answered = check(dataset)
    assert answered == ALL
    for change in history:
        change(dataset)
        answered = check(dataset)
        # A fragment's id says when it was made: the index has seen the first four alone.
        assert answered <= ALL
    if covered is not None:
        assert answered == covered


@pytest.mark.parametrize("stable", [False, True], ids=["row addresses", "stable row ids"])
@pytest.mark.parametrize(
    ("history", "_covered"),
    HISTORIES,
    ids=[", ".join(change.__name__ for change in history) for history, _ in HISTORIES],
)
def test_an_index_without_record_answers_right_or_not_at_all(
    history: list[Change], _covered: object, stable: bool, tmp_path: Path
) -> None:
    """As another writer builds it, who knows nothing of this package's record."""
    dataset = table(tmp_path / "t", stable)
    built = build_segment(dataset, "d", ["label"], progress=False)
    details = ListElementIndexDetails.decode(built.details)
    segment = Index(
        uuid=built.uuid,
        name="d_idx",
        fields=[built.column_id],
        dataset_version=built.dataset_version,
        fragment_ids=set(built.fragment_ids),  # pyright: ignore[reportArgumentType]
        index_version=0,
        files=[IndexFile(*file) for file in built.files],
        index_details=(TYPE_URL, replace(details, built=None).encode()),
    )
    operation = lance.LanceOperation.CreateIndex([segment], [])
    dataset = lance.LanceDataset.commit(dataset, operation, read_version=dataset.version)
    assert check(dataset) == ALL
    for change in history:
        change(dataset)
        assert check(dataset) <= ALL


def test_a_compaction_that_defers_the_remap_takes_its_fragments_away(tmp_path: Path) -> None:
    dataset = table(tmp_path / "t", stable=False)
    create_list_element(dataset, "d", ["label"], progress=False)
    dataset.optimize.compact_files(target_rows_per_fragment=60, defer_index_remap=True)
    assert check(dataset) <= ALL


def test_pylance_does_extend_the_bitmap_with_stable_row_ids(tmp_path: Path) -> None:
    """The reason for the record; a pylance that stops doing it makes this test fail."""
    dataset = table(tmp_path / "t", stable=True)
    create_list_element(dataset, "d", ["label"], progress=False)
    dataset.update({"other": "1"}, where="id = 3")
    (index,) = read_indexes(dataset)
    assert index.segments[0].fragment_ids == {0, 1, 2, 3, 4}
    assert check(dataset) == ALL


def test_the_record_is_in_the_details(tmp_path: Path) -> None:
    dataset = table(tmp_path / "t", stable=False)
    create_list_element(dataset, "d", ["label"], fragment_ids=[1, 3], progress=False)
    (index,) = read_indexes(dataset)
    details = ListElementIndexDetails.decode(index.segments[0].details)
    assert [fragment for fragment, _ in details.built or ()] == [1, 3]
    assert check(dataset) == {1, 3}
