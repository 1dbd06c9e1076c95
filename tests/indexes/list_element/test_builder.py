"""Building a list element index: arguments, segments, other writers, interruptions."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from datafusion_lance.indexes.cache import ReaderCache
from datafusion_lance.indexes.errors import InvalidArgumentError, LanceIndexError
from datafusion_lance.indexes.list_element import builder
from datafusion_lance.indexes.list_element.builder import (
    build_segment,
    commit_segments,
    create_list_element,
)
from datafusion_lance.indexes.list_element.key_range import In, KeySearch
from datafusion_lance.indexes.list_element.reader import ListElementReader
from datafusion_lance.indexes.manifest import read_indexes
from datafusion_lance.indexes.search_stats import SearchStats
from datafusion_lance.indexes.snapshot import Snapshot

ELEMENT = pa.struct(
    [
        ("label", pa.string()),
        ("confidence", pa.float32()),
        ("box", pa.struct([("width", pa.float32())])),
        ("price", pa.decimal128(10, 2)),
    ]
)


def rows(start: int, stop: int) -> pa.Table:
    lists = [
        [{"label": f"label {i % 5}", "confidence": i / 8}] * (i % 3) for i in range(start, stop)
    ]
    return pa.table(
        {
            "id": np.arange(start, stop),
            "tags": [["a"]] * (stop - start),
            "d": pa.array(lists, pa.list_(ELEMENT)),
        }
    )


@pytest.fixture
def dataset(tmp_path: Path) -> lance.LanceDataset:
    return lance.write_dataset(rows(0, 100), tmp_path / "t", max_rows_per_file=25)


def create(dataset: lance.LanceDataset, *keys: str, **options: Any) -> None:
    create_list_element(dataset, "d", keys or ["label"], progress=False, **options)


def found(dataset: lance.LanceDataset, label: str = "label 1") -> tuple[list[int], frozenset[int]]:
    """The ids of the rows with a label, by the index alone, and the fragments it answers for."""
    snapshot = Snapshot(dataset, ReaderCache(1 << 20))
    (index,) = (i for i in snapshot.indexes if i.kind == "ListElement")
    reader = ListElementReader(index, snapshot)
    search = KeySearch((In.of(reader.keys[0].codec, pa.array([label])),))
    answer = reader.answer(search, reader.fragment_ids, SearchStats())
    live = answer.true & snapshot.live_rows(reader.fragment_ids)
    scan = dataset.to_table(columns=["id"], with_row_address=True)
    kept = np.isin(scan.column("_rowaddr").to_numpy(), live.addresses())
    return sorted(scan.column("id").filter(pa.array(kept)).to_pylist()), reader.fragment_ids


def expected(dataset: lance.LanceDataset, fragments: Any, label: str = "label 1") -> list[int]:
    some = [f for f in dataset.get_fragments() if f.fragment_id in fragments]
    table = dataset.scanner(columns=["id", "d"], fragments=some).to_table() if some else None
    pairs = [] if table is None else table.to_pylist()
    return sorted(
        row["id"] for row in pairs if any(e and e["label"] == label for e in row["d"] or [])
    )


def folders(dataset: lance.LanceDataset) -> list[str]:
    indices = Path(dataset.uri) / "_indices"
    return sorted(p.name for p in indices.iterdir()) if indices.exists() else []


def test_the_dataset_is_at_the_version_that_has_the_index(dataset: lance.LanceDataset) -> None:
    create(dataset, "label", "confidence")
    assert dataset.version == dataset.latest_version == 2
    (index,) = read_indexes(dataset)
    (segment,) = index.segments
    assert (index.name, index.kind) == ("d_idx", "ListElement")
    assert segment.fragment_ids == {0, 1, 2, 3}
    assert (segment.dataset_version, segment.index_version) == (1, 0)
    folder = Path(dataset.uri) / "_indices" / segment.uuid
    assert dict(segment.files) == {p.name: p.stat().st_size for p in folder.iterdir()}
    assert found(dataset) == (expected(dataset, range(4)), frozenset(range(4)))


def test_pylance_leaves_the_index_alone(dataset: lance.LanceDataset) -> None:
    create(dataset)
    before = read_indexes(dataset)
    dataset.optimize.optimize_indices()
    dataset.create_scalar_index("tags", "LABEL_LIST")
    assert [i for i in read_indexes(dataset) if i.name == "d_idx"] == list(before)
    assert dataset.count_rows("id > 10") == 89


# -- arguments -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "argument", "says"),
    [
        ({"column": "e"}, "column", "got 'e', takes a column of the table: id, tags, d"),
        ({"column": "id"}, "column", "'id: int64', takes a List or LargeList of structs"),
        ({"column": "tags"}, "column", "'tags: list', takes a List or LargeList of structs"),
        ({"keys": []}, "keys", "got [], takes a list of one field name or more"),
        ({"keys": "label"}, "keys", "got 'label', takes a list of one field name or more"),
        ({"keys": ["label", "label"]}, "keys", "got ['label', 'label'], takes each field once"),
        (
            {"keys": ["label", "size"]},
            "keys",
            "got 'size', takes direct fields of the elements of d: label, confidence, box, price",
        ),
        ({"keys": ["box.width"]}, "keys", "got 'box.width', takes direct fields"),
        ({"keys": [3]}, "keys", "got 3, takes direct fields"),
        ({"keys": ["box"]}, "keys", "large_binary, timestamp of any unit and zone"),
        ({"keys": ["price"]}, "keys", "got 'price: decimal:128:10:2', takes fields of type"),
        ({"name": ""}, "name", "got ''"),
        ({"fragment_ids": [3, 9]}, "fragment_ids", "got [9], takes fragments of the table: [0, 1"),
        ({"fragment_ids": []}, "fragment_ids", "got []"),
        ({"sort_memory": 1000}, "sort_memory", "got 1000, takes"),
    ],
)
def test_bad_arguments_are_named(
    dataset: lance.LanceDataset, arguments: dict[str, Any], argument: str, says: str
) -> None:
    with pytest.raises(InvalidArgumentError) as error:
        create_list_element(dataset, **{"column": "d", "keys": ["label"], **arguments})
    assert error.value.argument == argument
    assert says in str(error.value)
    assert dataset.latest_version == 1
    assert folders(dataset) == []


def test_a_name_in_use_needs_replace(dataset: lance.LanceDataset) -> None:
    dataset.create_scalar_index("id", "BTREE", name="taken")
    create(dataset)
    for name in (None, "taken"):
        with pytest.raises(InvalidArgumentError, match="replace=True"):
            create(dataset, "confidence", name=name)
    create(dataset, "label", "confidence", replace=True)
    (index,) = (i for i in read_indexes(dataset) if i.kind == "ListElement")
    assert len(index.segments) == 1
    assert [k.name for k in ListElementReader(index, Snapshot(dataset, ReaderCache(0))).keys] == [
        "label",
        "confidence",
    ]
    create(dataset, name="taken", replace=True)
    assert [i.kind for i in read_indexes(dataset) if i.name == "taken"] == ["ListElement"]


# -- segments ------------------------------------------------------------------------------


def test_segments_are_built_apart_and_committed_together(dataset: lance.LanceDataset) -> None:
    uri = dataset.uri
    segments = [
        build_segment(lance.dataset(uri), "d", ["label"], fragment_ids=ids, progress=False)
        for ids in ([0, 1], [3])
    ]
    assert dataset.latest_version == 1
    commit_segments(dataset, pickle.loads(pickle.dumps(segments)))
    (index,) = read_indexes(dataset)
    assert [sorted(s.fragment_ids) for s in index.segments] == [[0, 1], [3]]
    assert found(dataset) == (expected(dataset, {0, 1, 3}), frozenset({0, 1, 3}))


def test_segments_that_do_not_go_together_are_refused(dataset: lance.LanceDataset) -> None:
    first = build_segment(dataset, "d", ["label"], fragment_ids=[0, 1], progress=False)
    overlapping = build_segment(dataset, "d", ["label"], fragment_ids=[1, 2], progress=False)
    other = build_segment(dataset, "d", ["confidence"], fragment_ids=[2], progress=False)
    for segments, says in (
        ([], "one segment or more"),
        ([first, overlapping], "share no fragment"),
        ([first, other], "segments with the keys ('label',)"),
    ):
        with pytest.raises(InvalidArgumentError) as error:
            commit_segments(dataset, segments)
        assert says in str(error.value)
    commit_segments(dataset, [first])
    with pytest.raises(InvalidArgumentError, match="replace=True"):
        commit_segments(dataset, [other])


# -- other writers -------------------------------------------------------------------------


def during_the_build(
    monkeypatch: pytest.MonkeyPatch, change: Any, uri: str, times: int = 1
) -> list[int]:
    """Let `change` happen to the table between the first writing of files and the commit."""
    write, calls = builder.write_btree, [0]

    def with_change(*arguments: Any) -> Any:
        written = write(*arguments)
        calls[0] += 1
        if calls[0] <= times:
            change(lance.dataset(uri))
        return written

    monkeypatch.setattr(builder, "write_btree", with_change)
    return calls


def update_columns(dataset: lance.LanceDataset) -> None:
    """Rewrites `d` of fragment 1 in place."""
    new = pa.table({"id": [30, 31], "d": rows(16, 18).column("d")})
    old = dataset.get_fragment(1)
    assert old is not None
    fragment, modified = old.update_columns(new, left_on="id", right_on="id")
    operation = lance.LanceOperation.Update(updated_fragments=[fragment], fields_modified=modified)
    lance.LanceDataset.commit(dataset, operation, read_version=dataset.version)


CHANGES = {
    "an append": (lambda d: d.insert(rows(100, 120)), {0, 1, 2, 3}),
    "a delete": (lambda d: d.delete("id < 20"), {0, 1, 2, 3}),
    "an update": (lambda d: d.update({"id": "id + 1000"}, where="id = 31"), {0, 1, 2, 3}),
    "a rewrite in place": (update_columns, {0, 2, 3}),
    "another index": (lambda d: d.create_scalar_index("id", "BTREE"), {0, 1, 2, 3}),
    "a rename": (lambda d: d.alter_columns({"path": "d.item.label", "name": "l"}), {0, 1, 2, 3}),
    "a compaction": (lambda d: d.optimize.compact_files(), {4}),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("stable", [False, True], ids=["row addresses", "stable row ids"])
def test_what_another_writer_does_meanwhile_is_kept(
    change: str, stable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = lance.write_dataset(
        rows(0, 100), tmp_path / "t", max_rows_per_file=25, enable_stable_row_ids=stable
    )
    act, fragments = CHANGES[change]
    during_the_build(monkeypatch, act, dataset.uri)
    create(dataset)
    ids, covered = found(dataset)
    assert covered == fragments
    label = "l" if change == "a rename" else "label"
    some = [f for f in dataset.get_fragments() if f.fragment_id in covered]
    table = dataset.scanner(columns=["id", "d"], fragments=some).to_table().to_pylist()
    assert ids == sorted(r["id"] for r in table if any(e[label] == "label 1" for e in r["d"]))
    assert len(folders(dataset)) == len(read_indexes(dataset))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: create(d), "a name that no index has yet"),
        (lambda d: d.drop_columns(["d"]), None),
        (lambda d: lance.write_dataset(rows(0, 5), d.uri, mode="overwrite"), None),
        (lambda d: lance.dataset(d.uri, version=1).restore(), None),
    ],
    ids=["the same index", "a dropped column", "an overwrite", "a restore"],
)
def test_a_lost_race_is_an_error_or_another_try(
    dataset: lance.LanceDataset, change: Any, says: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset.delete("id = 16")
    calls = during_the_build(monkeypatch, change, dataset.uri)
    if says is not None:
        with pytest.raises(InvalidArgumentError, match=says):
            create(dataset)
        assert calls[0] == 2
        assert len(read_indexes(dataset)) == 1
    else:
        create(dataset)
        if "d" in dataset.schema.names:
            ids, covered = found(dataset)
            assert ids == expected(dataset, covered)
            assert covered == {f.fragment_id for f in dataset.get_fragments()}
    assert len(folders(dataset)) <= 1


def test_who_loses_every_race_is_told(
    dataset: lance.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    def append_and_compact(other: lance.LanceDataset) -> None:
        other.insert(rows(0, 10))
        other.optimize.compact_files()

    during_the_build(monkeypatch, append_and_compact, dataset.uri, times=9)
    with pytest.raises(LanceIndexError, match="another writer was faster"):
        create(dataset)
    assert folders(dataset) == []


def test_segments_of_compacted_fragments_are_refused(dataset: lance.LanceDataset) -> None:
    segment = build_segment(dataset, "d", ["label"], progress=False)
    lance.dataset(dataset.uri).optimize.compact_files()
    with pytest.raises(LanceIndexError, match="another writer was faster"):
        commit_segments(dataset, [segment])


def test_of_two_builders_one_wins(dataset: lance.LanceDataset) -> None:
    errors: list[InvalidArgumentError] = []

    def build() -> None:
        try:
            create(lance.dataset(dataset.uri))
        except InvalidArgumentError as error:
            errors.append(error)

    threads = [threading.Thread(target=build) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == 2
    dataset.checkout_latest()
    (index,) = read_indexes(dataset)
    assert len(index.segments) == 1
    assert folders(dataset) == [index.segments[0].uuid]


# -- interruptions -------------------------------------------------------------------------


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, MemoryError])
def test_a_failed_build_leaves_nothing(
    dataset: lance.LanceDataset, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise error

    during_the_build(monkeypatch, fail, dataset.uri)
    with pytest.raises(error):
        create(dataset)
    assert folders(dataset) == []
    assert dataset.latest_version == 1


KILLED = """
import os, sys, lance
from datafusion_lance.indexes.list_element import builder
place = sys.argv[2]
inner = getattr(builder, place)
def killed(*arguments):
    if place == "write_btree":
        inner(*arguments)
    os._exit(9)
setattr(builder, place, killed)
builder.create_list_element(lance.dataset(sys.argv[1]), "d", ["label"])
"""


@pytest.mark.parametrize("place", ["externally_sorted", "write_btree", "commit"])
def test_a_killed_build_leaves_the_table_as_it_was(dataset: lance.LanceDataset, place: str) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED, dataset.uri, place], check=False)
    assert ended.returncode == 9
    again = lance.dataset(dataset.uri)
    assert again.latest_version == 1
    assert read_indexes(again) == ()
    create(again)
    assert found(again)[0] == expected(again, range(4))


def test_the_bar_is_quiet_where_there_is_no_terminal(
    dataset: lance.LanceDataset, capfd: pytest.CaptureFixture[str]
) -> None:
    create_list_element(dataset, "d", ["label"])
    assert "indexing d" not in capfd.readouterr().err
