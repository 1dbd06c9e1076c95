"""Upkeep of a MinHash LSH index: what it covers, holds and answers afterwards."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.commit import CommitConflictError
from lance.file import LanceFileReader
from lance.query import MinHashQuery

from datafusion_lance.indexes.cache import ReaderCache
from datafusion_lance.indexes.errors import (
    CorruptIndexError,
    InvalidArgumentError,
    LanceIndexError,
)
from datafusion_lance.indexes.manifest import IndexSegment, read_indexes
from datafusion_lance.indexes.minhash_lsh import upkeep
from datafusion_lance.indexes.minhash_lsh.builder import create_minhash_lsh
from datafusion_lance.indexes.minhash_lsh.check import check_minhash_lsh
from datafusion_lance.indexes.minhash_lsh.upkeep import optimize_minhash_lsh
from datafusion_lance.indexes.snapshot import Snapshot

NAME = "text_idx"
WORDS = [f"word{number}" for number in range(40)]


def rows(first: int, count: int = 300) -> pa.Table:
    """Rows with NULL and empty texts, short ones, and many near duplicates."""
    random = Random(first)
    texts: list[str | None] = []
    for number in range(count):
        words = random.choices(WORDS, k=random.randrange(1, 15))
        near = texts[-1] if number % 3 == 1 else None
        texts.append(f"{near} more" if near else " ".join(words))
    texts[::50] = [None] * len(texts[::50])
    texts[1::50] = [" "] * len(texts[1::50])
    return pa.table({"id": range(first, first + count), "text": pa.array(texts, pa.string())})


@pytest.fixture(params=[False, True], ids=["addresses", "stable row ids"])
def dataset(tmp_path: Path, request: pytest.FixtureRequest) -> lance.LanceDataset:
    made = lance.write_dataset(
        rows(0), tmp_path / "t", max_rows_per_file=100, enable_stable_row_ids=request.param
    )
    create_minhash_lsh(made, "text", num_hashes=12, num_bands=4)
    return made


def append(dataset: lance.LanceDataset, first: int, count: int = 100) -> None:
    lance.write_dataset(rows(first, count), dataset.uri, mode="append")
    dataset.checkout_latest()


def optimize(dataset: lance.LanceDataset, **more: int) -> bool:
    return optimize_minhash_lsh(dataset, NAME, progress=False, **more)


def segments(dataset: lance.LanceDataset) -> tuple[IndexSegment, ...]:
    (index,) = (i for i in read_indexes(lance.dataset(dataset.uri)) if i.name == NAME)
    return index.segments


def folders(dataset: lance.LanceDataset) -> set[str]:
    return {path.name for path in (Path(dataset.uri) / "_indices").iterdir()}


def file(dataset: lance.LanceDataset, segment: IndexSegment, name: str) -> LanceFileReader:
    return LanceFileReader(str(Path(dataset.uri) / "_indices" / segment.uuid / name))


def assert_right(dataset: lance.LanceDataset) -> None:
    """The index covers the table, is sound, and pylance finds by it what it finds by scanning."""
    dataset = lance.dataset(dataset.uri)
    snapshot = Snapshot(dataset, ReaderCache(1 << 20))
    (index,) = (i for i in snapshot.indexes if i.name == NAME)
    assert snapshot.covered_fragments(index) == frozenset(snapshot.fragment_ids)
    found = check_minhash_lsh(index, snapshot, progress=False)
    assert found.sound, str(found)
    plain = lance.write_dataset(
        dataset.to_table(columns=["id", "text"]), f"{dataset.uri}.plain", mode="overwrite"
    )
    create_minhash_lsh(plain, "text", num_hashes=12, num_bands=4, replace=True)
    for number in (2, 7, 40):
        text = " ".join(WORDS[number % 30 : number % 30 + 6]) if number == 40 else None
        text = text or dataset.take([number], columns=["text"])["text"][0].as_py()
        query = MinHashQuery(text or "word1 word2", "text")
        mine, theirs = (
            d.scanner(columns=["id"], nearest=query, limit=20, fast_search=True).to_table()
            for d in (dataset, plain)
        )
        assert mine["_distance"].to_pylist() == theirs["_distance"].to_pylist()


def appended(dataset: lance.LanceDataset) -> None:
    append(dataset, 1000)
    append(dataset, 2000)


def deleted(dataset: lance.LanceDataset) -> None:
    dataset.delete("id < 100 OR id % 7 = 0")


def updated(dataset: lance.LanceDataset) -> None:
    changed = rows(0, 60).set_column(1, "text", rows(5000, 60)["text"])
    dataset.merge_insert("id").when_matched_update_all().execute(changed)


def updated_elsewhere(dataset: lance.LanceDataset) -> None:
    dataset.update({"id": "id + 100000"}, where="id % 9 = 4")


def compacted(dataset: lance.LanceDataset) -> None:
    append(dataset, 1000, 50)
    append(dataset, 2000, 50)
    dataset.delete("id BETWEEN 110 AND 190")
    dataset.optimize.compact_files(target_rows_per_fragment=1000)


def compacted_and_remapped_later(dataset: lance.LanceDataset) -> None:
    dataset.delete("id BETWEEN 110 AND 190")
    if not dataset.has_stable_row_ids:
        dataset.optimize.compact_files(target_rows_per_fragment=1000, defer_index_remap=True)


def overwritten_in_place(dataset: lance.LanceDataset) -> None:
    (fragment, *_) = dataset.get_fragments()
    new = rows(7000, 100).set_column(0, "id", pa.array(range(100), pa.int64()))
    merged, fields = fragment.update_columns(new, left_on="id", right_on="id")
    operation = lance.LanceOperation.Update(updated_fragments=[merged], fields_modified=fields)
    lance.LanceDataset.commit(dataset.uri, operation, read_version=dataset.version)
    dataset.checkout_latest()


CHANGES = [
    appended,
    deleted,
    updated,
    updated_elsewhere,
    compacted,
    compacted_and_remapped_later,
    overwritten_in_place,
]


@pytest.mark.parametrize("most", [8, 1], ids=["a segment more", "merged"])
@pytest.mark.parametrize("change", CHANGES)
def test_afterwards_it_is_right(
    dataset: lance.LanceDataset, change: Callable[[lance.LanceDataset], None], most: int
) -> None:
    append(dataset, 20_000)
    optimize(dataset)
    change(dataset)

    optimize(dataset, most_segments=most)

    if most == 1:
        optimize(dataset, most_segments=most)
        assert len(segments(dataset)) == 1
    assert_right(dataset)


def test_one_change_after_the_other(dataset: lance.LanceDataset) -> None:
    for number, change in enumerate(
        (appended, updated, deleted, compacted, overwritten_in_place, updated_elsewhere, updated)
    ):
        if change is overwritten_in_place and number:
            append(dataset, 30_000 + number)
        else:
            change(dataset)
        if number % 2 == 0:
            optimize(dataset, most_segments=2)

    optimize(dataset)

    assert_right(dataset)
    assert not optimize(dataset)


def test_an_index_that_is_up_to_date_is_left_alone(dataset: lance.LanceDataset) -> None:
    version, held = dataset.latest_version, folders(dataset)

    assert not optimize(dataset)

    assert dataset.latest_version == version
    assert folders(dataset) == held


def test_segments_are_merged_beyond_a_number(dataset: lance.LanceDataset) -> None:
    counts: list[int] = []
    for number in range(4):
        append(dataset, 1000 * number + 1000)
        optimize(dataset, most_segments=3)
        counts.append(len(segments(dataset)))

    assert counts == [2, 3, 2, 3]
    assert_right(dataset)


def test_a_merge_reads_nothing_of_the_table(dataset: lance.LanceDataset) -> None:
    append(dataset, 1000)
    optimize(dataset)
    for path in Path(dataset.uri).glob("data/*"):
        path.write_bytes(b"")

    assert optimize(dataset, most_segments=1)

    (segment,) = segments(dataset)
    assert file(dataset, segment, "signatures.lance").metadata().num_rows == 384


def test_a_merge_in_many_ranges(
    dataset: lance.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(dataset, 1000, 9000)
    optimize(dataset)
    monkeypatch.setattr(upkeep, "_ENTRIES_AT_ONCE", 100)

    assert optimize(dataset, most_segments=1)

    assert_right(dataset)


def test_the_files_are_as_pylance_writes_them(dataset: lance.LanceDataset) -> None:
    (before,) = segments(dataset)
    append(dataset, 1000)
    optimize(dataset)
    optimize(dataset, most_segments=1)
    (after,) = segments(dataset)

    assert after.details == before.details
    assert after.index_version == before.index_version
    for name in ("signatures.lance", "bands.lance"):
        theirs, mine = (file(dataset, segment, name).metadata() for segment in (before, after))
        assert theirs.schema.equals(mine.schema, check_metadata=False)
        assert set(theirs.schema.metadata) == set(mine.schema.metadata)
        assert [f.metadata for f in theirs.schema] == [f.metadata for f in mine.schema]
        for number, field in enumerate(theirs.schema):
            layouts = {
                re.sub(r"num_(visible_)?items: \d+", "", file.columns[number].pages[0].encoding)
                for file in (theirs, mine)
            }
            # Row ids are compressed as their values allow.
            assert len(layouts) == 1 or field.name == "_rowid"


def test_a_table_without_rows_keeps_its_index(dataset: lance.LanceDataset) -> None:
    dataset.delete("true")

    assert not optimize(dataset)
    append(dataset, 100)
    assert optimize(dataset)

    assert len(segments(dataset)) == 1
    assert_right(dataset)


def test_a_renamed_column_is_followed(dataset: lance.LanceDataset) -> None:
    dataset.alter_columns({"path": "text", "name": "words"})  # pyright: ignore[reportArgumentType]
    table = rows(1000, 100).rename_columns(["id", "words"])
    lance.write_dataset(table, dataset.uri, mode="append")

    assert optimize(dataset)

    snapshot = Snapshot(lance.dataset(dataset.uri), ReaderCache(0))
    (index,) = (i for i in snapshot.indexes if i.name == NAME)
    assert check_minhash_lsh(index, snapshot, progress=False).sound
    assert len(snapshot.covered_fragments(index)) == 4


def test_what_cannot_be(dataset: lance.LanceDataset) -> None:
    with pytest.raises(InvalidArgumentError, match="name: got 'nope'"):
        optimize_minhash_lsh(dataset, "nope")


def test_a_damaged_segment_is_not_copied(dataset: lance.LanceDataset) -> None:
    append(dataset, 1000)
    optimize(dataset)
    first, second = segments(dataset)
    folder = Path(dataset.uri) / "_indices"
    data = (folder / second.uuid / "bands.lance").read_bytes()
    (folder / first.uuid / "bands.lance").write_bytes(data)
    held = folders(dataset)

    with pytest.raises(CorruptIndexError, match=r"bands\.lance"):
        optimize(dataset, most_segments=1)

    assert folders(dataset) == held


# -- Safety -------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["sign_segment", "merge_segments", "write_bands", "commit"])
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


@pytest.mark.parametrize("change", [*CHANGES, optimize])
def test_beside_another_writer(
    dataset: lance.LanceDataset,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[lance.LanceDataset], Any],
) -> None:
    append(dataset, 9000)
    other = lance.dataset(dataset.uri)
    sign = upkeep.sign_segment

    def sign_beside(*arguments: Any) -> Any:
        built = sign(*arguments)
        monkeypatch.setattr(upkeep, "sign_segment", sign)
        change(other)
        return built

    monkeypatch.setattr(upkeep, "sign_segment", sign_beside)
    optimize(dataset)
    optimize(dataset)

    assert_right(dataset)
    named = {segment.uuid for segment in segments(dataset)}
    assert named <= folders(dataset)


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
    with pytest.raises(LanceIndexError, match="'text_idx' was not optimized: another writer"):
        optimize(dataset)

    assert len(tries) == 3
    assert folders(dataset) == held


def test_the_bar_is_quiet_where_there_is_no_terminal(
    dataset: lance.LanceDataset, capfd: pytest.CaptureFixture[str]
) -> None:
    append(dataset, 1000)

    optimize_minhash_lsh(dataset, NAME, most_segments=1)

    assert capfd.readouterr().err == ""
