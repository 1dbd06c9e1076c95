"""Upkeep of a list element index: what it covers, holds and answers afterwards."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random

import lance
import pyarrow as pa
import pytest
from lance.commit import CommitConflictError

from datafusion_lance.indexes.cache import ReaderCache
from datafusion_lance.indexes.errors import (
    CorruptIndexError,
    InvalidArgumentError,
    LanceIndexError,
    UnusableIndexError,
)
from datafusion_lance.indexes.list_element import builder, upkeep
from datafusion_lance.indexes.list_element.btree import BTree
from datafusion_lance.indexes.list_element.builder import create_list_element
from datafusion_lance.indexes.list_element.upkeep import optimize_list_element
from datafusion_lance.indexes.manifest import IndexSegment, read_indexes
from datafusion_lance.indexes.search_stats import SearchStats
from datafusion_lance.indexes.snapshot import Snapshot

TYPE = pa.list_(pa.struct({"label": pa.string(), "n": pa.int32()}))
NAME = "d_idx"


def rows(first: int, count: int = 300) -> pa.Table:
    """Rows with NULL lists, empty ones, NULL elements, NULL keys and many equal keys."""
    random = Random(first)
    labels = ["car", "dog", "", None, "a longer label than a block"]
    lists: list[list[dict[str, object] | None] | None] = []
    for _ in range(count):
        elements: list[dict[str, object] | None] = []
        for _ in range(random.randrange(6)):
            elements.append({"label": random.choice(labels), "n": random.randrange(50)})
        if random.random() < 0.1:
            elements.append(None)
        lists.append(None if random.random() < 0.1 else elements)
    return pa.table({"id": range(first, first + count), "d": pa.array(lists, TYPE)})


@pytest.fixture(params=[False, True], ids=["addresses", "stable row ids"])
def dataset(tmp_path: Path, request: pytest.FixtureRequest) -> lance.LanceDataset:
    made = lance.write_dataset(
        rows(0), tmp_path / "t", max_rows_per_file=100, enable_stable_row_ids=request.param
    )
    create_list_element(made, "d", ["label", "n"], progress=False)
    return made


def append(dataset: lance.LanceDataset, first: int, count: int = 100) -> None:
    lance.write_dataset(rows(first, count), dataset.uri, mode="append")
    dataset.checkout_latest()


def optimize(dataset: lance.LanceDataset, **more: int) -> bool:
    return optimize_list_element(dataset, NAME, progress=False, **more)


def segments(dataset: lance.LanceDataset) -> tuple[IndexSegment, ...]:
    (index,) = read_indexes(lance.dataset(dataset.uri))
    return index.segments


def folders(dataset: lance.LanceDataset) -> set[str]:
    return {path.name for path in (Path(dataset.uri) / "_indices").iterdir()}


def entries(dataset: lance.LanceDataset) -> list[list[tuple[bytes | None, int]]]:
    """The entries of each segment, in their order, after all of its pages were checked."""
    snapshot = Snapshot(dataset, ReaderCache(1 << 30))
    (index,) = snapshot.indexes
    found: list[list[tuple[bytes | None, int]]] = []
    for segment in index.segments:
        files, folder = snapshot.files_of(segment)
        tree = BTree(segment, files, folder, ReaderCache(1 << 30))
        tree.lookup(SearchStats())
        table = files.open(f"{folder}/page_data.lance").read_all().to_table()
        found.append(list(zip(*(c.to_pylist() for c in table.columns), strict=True)))
    return found


def assert_right(dataset: lance.LanceDataset) -> None:
    """The index covers the table, and holds just the entries that a new one would."""
    snapshot = Snapshot(dataset, ReaderCache(0))
    (index,) = snapshot.indexes
    assert snapshot.covered_fragments(index) == frozenset(snapshot.fragment_ids)
    mine = entries(dataset)
    for of_segment in mine:
        values = [(value is not None, value or b"") for value, _ in of_segment]
        assert values == sorted(values)
    fresh = lance.dataset(dataset.uri)
    create_list_element(fresh, "d", ["label", "n"], replace=True, progress=False)
    live = set(fresh.scanner(columns=[], with_row_address=True).to_table()["_rowaddr"].to_pylist())
    anew = [entry for of_segment in entries(fresh) for entry in of_segment]
    ours = [entry for of_segment in mine for entry in of_segment if entry[1] in live]
    assert sorted(ours, key=repr) == sorted(anew, key=repr)


def appended(dataset: lance.LanceDataset) -> None:
    append(dataset, 1000)
    append(dataset, 2000)


def deleted(dataset: lance.LanceDataset) -> None:
    dataset.delete("id < 100 OR id % 7 = 0")


def updated(dataset: lance.LanceDataset) -> None:
    changed = rows(0, 60).set_column(1, "d", rows(5000, 60)["d"])
    dataset.merge_insert("id").when_matched_update_all().execute(changed)


def compacted(dataset: lance.LanceDataset) -> None:
    append(dataset, 1000, 50)
    append(dataset, 2000, 50)
    dataset.delete("id BETWEEN 110 AND 190")
    dataset.optimize.compact_files(target_rows_per_fragment=1000)


def overwritten_in_place(dataset: lance.LanceDataset) -> None:
    (fragment, *_) = dataset.get_fragments()
    new = rows(7000, 100).set_column(0, "id", pa.array(range(100), pa.int64()))
    merged, fields = fragment.update_columns(new, left_on="id", right_on="id")
    operation = lance.LanceOperation.Update(updated_fragments=[merged], fields_modified=fields)
    lance.LanceDataset.commit(dataset.uri, operation, read_version=dataset.version)
    dataset.checkout_latest()


CHANGES = [appended, deleted, updated, compacted, overwritten_in_place]


@pytest.mark.parametrize("change", CHANGES)
def test_afterwards_it_is_as_a_new_one(
    dataset: lance.LanceDataset, change: Callable[[lance.LanceDataset], None]
) -> None:
    change(dataset)

    optimize(dataset)

    assert_right(dataset)


def test_one_change_after_the_other(dataset: lance.LanceDataset) -> None:
    for number, change in enumerate((appended, updated, deleted, compacted, updated)):
        change(dataset)
        if number % 2 == 0:
            optimize(dataset)

    optimize(dataset)

    assert_right(dataset)
    assert not optimize(dataset)


def test_an_index_that_is_up_to_date_is_left_alone(dataset: lance.LanceDataset) -> None:
    version, held = dataset.latest_version, folders(dataset)

    assert not optimize(dataset)

    assert dataset.latest_version == version
    assert folders(dataset) == held


def test_appended_fragments_get_a_segment_of_their_own(dataset: lance.LanceDataset) -> None:
    (before,) = segments(dataset)
    append(dataset, 1000)

    assert optimize(dataset)

    assert [sorted(s.fragment_ids) for s in segments(dataset)] == [[0, 1, 2], [3]]
    assert segments(dataset)[0].uuid == before.uuid


@pytest.mark.parametrize("memory", [1 << 28, 1 << 12], ids=["at once", "range by range"])
def test_many_segments_become_one(dataset: lance.LanceDataset, memory: int) -> None:
    for number in range(3):
        append(dataset, 1000 * number + 1000, 5000)
        optimize(dataset)
    assert len(segments(dataset)) == 4
    snapshot = Snapshot(dataset, ReaderCache(0))
    (index,) = snapshot.indexes
    sources = snapshot.covered_by_segment(index)

    merged = upkeep.merge_segments(index, snapshot, sources, memory, progress=False)
    builder.commit(dataset, NAME, [merged], list(index.segments))

    assert len(segments(dataset)) == 1
    assert_right(dataset)


def test_segments_are_merged_beyond_a_number(dataset: lance.LanceDataset) -> None:
    counts = []
    for number in range(4):
        append(dataset, 1000 * number + 1000)
        optimize(dataset, most_segments=3)
        counts.append(len(segments(dataset)))

    assert counts == [2, 3, 2, 3]
    assert_right(dataset)


def test_a_merge_reads_nothing_of_the_table(
    dataset: lance.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(dataset, 1000)
    optimize(dataset)
    monkeypatch.setattr(upkeep, "build_segment", None)

    assert optimize(dataset, most_segments=1)

    assert_right(dataset)


def test_a_table_without_rows_keeps_its_index(dataset: lance.LanceDataset) -> None:
    dataset.delete("true")

    assert not optimize(dataset)
    append(dataset, 10)
    assert optimize(dataset)

    assert len(segments(dataset)) == 1
    assert_right(dataset)


def test_renamed_fields_are_followed(dataset: lance.LanceDataset) -> None:
    renamed = {"path": "d.item.label", "name": "what"}
    dataset.alter_columns(renamed)  # pyright: ignore[reportArgumentType]
    dataset.alter_columns({"path": "id", "name": "number"})  # pyright: ignore[reportArgumentType]
    table = rows(1000, 100).rename_columns(["number", "d"])
    lance.write_dataset(table.cast(dataset.schema), dataset.uri, mode="append")

    assert optimize(dataset)

    (index,) = read_indexes(dataset)
    assert [key.name for key in Snapshot(dataset, ReaderCache(0)).keys_of(index)] == ["what", "n"]


def test_what_cannot_be(dataset: lance.LanceDataset) -> None:
    with pytest.raises(InvalidArgumentError, match="name: got 'nope'"):
        optimize_list_element(dataset, "nope")
    dataset.drop_columns(["d.item.label"])
    with pytest.raises(UnusableIndexError, match="its key label is not in the table any more"):
        optimize(dataset)


def test_a_damaged_segment_is_not_copied(dataset: lance.LanceDataset) -> None:
    append(dataset, 1000)
    optimize(dataset)
    first, second = segments(dataset)
    folder = Path(dataset.uri) / "_indices"
    data = (folder / second.uuid / "page_data.lance").read_bytes()
    (folder / first.uuid / "page_data.lance").write_bytes(data)
    held = folders(dataset)

    with pytest.raises(CorruptIndexError, match=r"page_data\.lance|page_lookup\.lance"):
        optimize(dataset, most_segments=1)

    assert folders(dataset) == held


# -- Safety -------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["build_segment", "merge_segments", "commit"])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_failure_leaves_the_table_as_it_was(
    dataset: lance.LanceDataset,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    error: type[BaseException],
) -> None:
    append(dataset, 1000)
    optimize(dataset)
    append(dataset, 2000)
    version, held = dataset.latest_version, folders(dataset)

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(upkeep, place, fail)
    with pytest.raises(error):
        optimize(dataset, most_segments=1)

    assert dataset.latest_version == version
    assert folders(dataset) == held


def test_files_stay_where_the_failure_comes_after_the_commit(
    dataset: lance.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(dataset, 1000)
    commit = builder.commit

    def fail_afterwards(*arguments: object) -> None:
        commit(*arguments)  # pyright: ignore[reportArgumentType]
        raise KeyboardInterrupt

    monkeypatch.setattr(upkeep, "commit", fail_afterwards)
    with pytest.raises(KeyboardInterrupt):
        optimize(dataset)

    assert_right(lance.dataset(dataset.uri))


KILLED = """
import os, sys, threading, time, lance
from datafusion_lance.indexes.list_element.upkeep import optimize_list_element
dataset = lance.dataset(sys.argv[1])
threading.Thread(target=lambda: (time.sleep(float(sys.argv[2])), os._exit(9)), daemon=True).start()
optimize_list_element(dataset, "d_idx", most_segments=1, progress=False)
os._exit(0)
"""


def test_killed_at_any_moment(dataset: lance.LanceDataset) -> None:
    append(dataset, 1000, 3000)
    optimize(dataset)
    append(dataset, 5000, 3000)
    before = dataset.latest_version
    codes: list[int] = []

    for seconds in (0.0, 0.01, 0.02, 0.04, 0.08, 0.16):
        ended = subprocess.run(
            [sys.executable, "-c", KILLED, dataset.uri, str(seconds)], check=False
        )
        codes.append(ended.returncode)
        dataset.checkout_latest()
        # One run that is not killed adds a segment, and the next one merges the two.
        assert before <= dataset.version <= before + 2
        for segment in segments(dataset):
            assert segment.uuid in folders(dataset)

    assert 9 in codes
    optimize(dataset)
    assert_right(dataset)


def test_a_lost_race_is_run_again(
    dataset: lance.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(dataset, 1000)
    other = lance.dataset(dataset.uri)
    build, held = upkeep.build_segment, folders(dataset)

    def build_while_another_is_faster(*arguments: object, **more: object) -> object:
        built = build(*arguments, **more)  # pyright: ignore[reportArgumentType]
        monkeypatch.setattr(upkeep, "build_segment", build)
        optimize(other)
        return built

    monkeypatch.setattr(upkeep, "build_segment", build_while_another_is_faster)

    assert not optimize(dataset)

    assert len(folders(dataset) - held) == 1
    assert_right(dataset)


def test_a_race_that_is_lost_every_time(
    dataset: lance.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(dataset, 1000)
    held = folders(dataset)
    tries: list[int] = []

    def conflict(*_: object) -> None:
        tries.append(1)
        raise CommitConflictError("another was faster")

    monkeypatch.setattr(upkeep, "commit", conflict)
    with pytest.raises(LanceIndexError, match="'d_idx' was not optimized: another writer"):
        optimize(dataset)

    assert len(tries) == 3
    assert folders(dataset) == held


@pytest.mark.parametrize("change", CHANGES)
def test_beside_another_writer(
    dataset: lance.LanceDataset,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[lance.LanceDataset], None],
) -> None:
    append(dataset, 9000)
    other = lance.dataset(dataset.uri)
    build = upkeep.build_segment

    def build_beside(*arguments: object, **more: object) -> object:
        built = build(*arguments, **more)  # pyright: ignore[reportArgumentType]
        monkeypatch.setattr(upkeep, "build_segment", build)
        change(other)
        return built

    monkeypatch.setattr(upkeep, "build_segment", build_beside)
    optimize(dataset)
    optimize(dataset)

    assert_right(dataset)


def test_two_at_once_beside_writers(dataset: lance.LanceDataset) -> None:
    uri = dataset.uri
    lost: list[LanceIndexError] = []

    def upkeep_again_and_again() -> None:
        own = lance.dataset(uri)
        for most in (8, 1, 8, 1):
            try:
                optimize_list_element(own, NAME, most_segments=most, progress=False)
            except LanceIndexError as error:
                lost.append(error)

    def write() -> None:
        for number in range(4):
            own = lance.dataset(uri)
            append(own, 1000 * number + 1000)
            own.delete(f"id % 11 = {number}")
            # Where an upkeep is faster it is the compaction that has to begin again.
            with suppress(OSError):
                own.optimize.compact_files(target_rows_per_fragment=250)

    with ThreadPoolExecutor() as threads:
        work = [threads.submit(f) for f in (upkeep_again_and_again, upkeep_again_and_again, write)]
        for each in work:
            each.result()

    assert all("another writer was faster" in str(error) for error in lost)
    dataset.checkout_latest()
    named = {segment.uuid for segment in segments(dataset)}
    assert named <= folders(dataset)
    optimize(dataset)
    assert_right(dataset)


def test_the_bar_is_quiet_where_there_is_no_terminal(
    dataset: lance.LanceDataset, capfd: pytest.CaptureFixture[str]
) -> None:
    append(dataset, 1000)

    optimize_list_element(dataset, NAME, most_segments=1)

    assert "merging" not in capfd.readouterr().err
