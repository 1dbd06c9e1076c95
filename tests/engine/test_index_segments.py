"""`build_segment` and `commit_segments`: one index, built by several processes."""

from __future__ import annotations

import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

import lance
import pytest

from datafusion_lance.engine import (
    BuiltSegment,
    InvalidArgumentError,
    LanceIndexError,
    LanceSessionContext,
    build_segment,
    commit_segments,
)
from datafusion_lance.indexes import segment_commit
from datafusion_lance.indexes.leftovers import KEPT_SECONDS, MARK, remove_leftovers
from datafusion_lance.indexes.manifest import read_indexes

from ..stopped_builds import FRAGMENTS, ROWS, rows, write_table

KINDS: Final[list[tuple[str, str, dict[str, Any]]]] = [
    ("d", "LIST_ELEMENT", {"keys": ["label", "n"], "progress": False}),
    ("text", "MINHASHLSH", {"num_hashes": 16, "num_bands": 4}),
    ("tags", "LABEL_LIST", {}),
]


@pytest.fixture(params=[False, True], ids=["addresses", "stable row ids"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    write_table(tmp_path / "t.lance", stable_row_ids=request.param)
    return tmp_path / "t.lance"


def assert_sound(table: Path, name: str) -> None:
    session = LanceSessionContext()
    session.register_lance("t", table)
    found = session.check_lance_index("t", name)
    assert found.sound, str(found)
    assert found.rows == session.table("t").count()


@pytest.mark.parametrize(
    ("column", "kind", "parameters"), KINDS, ids=[kind for _, kind, _ in KINDS]
)
def test_several_processes(table: Path, column: str, kind: str, parameters: dict[str, Any]) -> None:
    parts = [range(start, FRAGMENTS, 3) for start in range(3)]
    processes = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(2, mp_context=processes) as pool:
        built = list(pool.map(partial(build_segment, table, column, kind, **parameters), parts))
    assert lance.dataset(table).version == 1
    # The processes that have built them have ended.
    assert remove_leftovers(lance.dataset(table)) == ()
    lance.write_dataset(rows(50_000, ROWS), table, mode="append")
    lance.dataset(table).delete("id % 5 = 0")

    version = commit_segments(table, built)

    assert version == lance.dataset(table).version == 4
    (index,) = read_indexes(lance.dataset(table))
    assert index.name == f"{column}_idx"
    assert [sorted(segment.fragment_ids) for segment in index.segments] == [list(p) for p in parts]
    session = LanceSessionContext()
    session.register_lance("t", table)
    assert session.check_lance_index("t", index.name).sound
    session.optimize_lance_index("t")
    assert_sound(table, index.name)
    assert not list(table.glob(f"_indices/*/{MARK}"))


def test_a_segment_is_a_value(table: Path) -> None:
    built = build_segment(table, "text", "minhashlsh", [2], num_bands=8)

    assert isinstance(built, BuiltSegment)
    assert pickle.loads(pickle.dumps(built)) == built
    assert built.fragment_ids == (2,)
    for name, size in built.files:
        assert (table / "_indices" / built.uuid / name).stat().st_size == size


def test_all_fragments_and_a_name(table: Path) -> None:
    built = build_segment(lance.dataset(table), "d", "LIST_ELEMENT", keys=["n"], progress=False)
    commit_segments(table, [built], "mine")
    again = build_segment(table, "d", "LIST_ELEMENT", keys=["label"], progress=False)
    with pytest.raises(InvalidArgumentError, match=r"^name: got 'mine', takes a name that no"):
        commit_segments(table, [again], "mine")
    commit_segments(table, [again], "mine", replace=True)

    (index,) = read_indexes(lance.dataset(table))
    assert [segment.uuid for segment in index.segments] == [again.uuid]
    assert_sound(table, "mine")


@pytest.mark.parametrize(
    ("arguments", "parameters", "says"),
    [
        (("d", "BTREE"), {}, "kind: got 'BTREE', takes one of LABEL_LIST, LIST_ELEMENT, MIN"),
        (("d", "LIST_ELEMENT"), {}, r"keys: got \(\), takes a list of one field name or more"),
        (("d", "LIST_ELEMENT", []), {"keys": ["n"]}, r"fragment_ids: got \[\], takes fragments"),
        (("text", "MINHASHLSH", [99]), {}, r"fragment_ids: got \[99\], takes fragments of the"),
        (("tags", "LABEL_LIST", [99]), {}, r"fragment_ids: got \[99\], takes fragments of the"),
        (("id", "LABEL_LIST"), {}, "column: got 'id: int64', takes a list column"),
        (("id", "MINHASHLSH"), {}, "column: got 'id: int64', takes a column of texts"),
        (("nope", "MINHASHLSH"), {}, "column: got 'nope', takes a column of the table"),
        (("tags", "LABEL_LIST"), {"keys": ["n"]}, "takes nothing: LABEL_LIST takes no parameters"),
        (("text", "MINHASHLSH"), {"bands": 3}, "takes nothing: MINHASHLSH takes num_hashes, num"),
        (("text", "MINHASHLSH"), {"num_bands": 7}, "num_hashes: got 128, takes a multiple of"),
    ],
)
def test_what_cannot_be_built(
    table: Path, arguments: tuple[Any, ...], parameters: dict[str, Any], says: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        build_segment(table, *arguments, **parameters)

    assert not list(table.glob("_indices/*"))


def test_what_cannot_be_committed(table: Path) -> None:
    signed = build_segment(table, "text", "MINHASHLSH", [0], num_bands=8)
    other = build_segment(table, "text", "MINHASHLSH", [1], num_bands=16)
    overlapping = build_segment(table, "text", "MINHASHLSH", [0, 2], num_bands=8)
    labels = build_segment(table, "tags", "LABEL_LIST", [1])
    lists = build_segment(table, "d", "LIST_ELEMENT", [1], keys=["n"], progress=False)

    for segments, says in (
        ([], "one segment or more"),
        ([signed, other], "segments that were built with the same parameters"),
        ([signed, overlapping], "segments that share no fragment"),
        ([signed, labels], "segments that were built with the same parameters"),
        ([lists, labels], "segments that were built with the same parameters"),
    ):
        with pytest.raises(InvalidArgumentError, match=says):
            commit_segments(table, segments)

    assert lance.dataset(table).version == 1


def test_a_segment_is_committed_once(table: Path) -> None:
    built = build_segment(table, "text", "MINHASHLSH", [0])
    commit_segments(table, [built])

    with pytest.raises(LanceIndexError, match=r"'again' was not created: segment .* is committed"):
        commit_segments(table, [built], "again")


def test_one_that_waited_for_too_long(table: Path) -> None:
    built = build_segment(table, "tags", "LABEL_LIST")
    mark = table / "_indices" / built.uuid / MARK
    mark.write_text(str(int(mark.read_text()) - KEPT_SECONDS - 60))
    assert remove_leftovers(lance.dataset(table)) == (built.uuid,)

    with pytest.raises(LanceIndexError, match="or its files are gone"):
        commit_segments(table, [built])


@pytest.mark.parametrize(
    ("column", "kind", "parameters"), KINDS, ids=[kind for _, kind, _ in KINDS]
)
def test_one_that_lacks_a_file(
    table: Path, column: str, kind: str, parameters: dict[str, Any]
) -> None:
    built = build_segment(table, column, kind, **parameters)
    (table / "_indices" / built.uuid / built.files[-1][0]).unlink()

    with pytest.raises(LanceIndexError, match="or its files are gone"):
        commit_segments(table, [built])

    assert read_indexes(lance.dataset(table)) == ()


@pytest.mark.parametrize(
    ("column", "kind", "parameters"), KINDS, ids=[kind for _, kind, _ in KINDS]
)
def test_on_a_branch(table: Path, column: str, kind: str, parameters: dict[str, Any]) -> None:
    lance.dataset(table).create_branch("dev")
    branch = lance.dataset(table).checkout_version(("dev", None))
    built = [
        build_segment(branch, column, kind, part, **parameters)
        for part in (range(4), range(4, FRAGMENTS))
    ]

    assert commit_segments(branch, built) == 2

    assert not list(table.rglob(MARK))
    assert read_indexes(lance.dataset(table)) == ()
    assert_sound(table / "tree" / "dev", f"{column}_idx")


def test_a_process_that_ends_in_its_commit_loses_no_segment(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = build_segment(table, "tags", "LABEL_LIST")

    def stopped(*_: Any) -> None:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(segment_commit, "commit", stopped)
        with pytest.raises(SystemExit):
            commit_segments(table, [built])
    mark = table / "_indices" / built.uuid / MARK
    assert mark.read_text().split() == [mark.read_text().strip()]

    commit_segments(table, [built])

    assert_sound(table, "tags_idx")


def test_a_commit_that_another_writer_has_replaced_keeps_its_files(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replaced(*_: Any) -> None:
        lance.dataset(table).drop_index("text_idx")
        raise KeyboardInterrupt

    session = LanceSessionContext()
    session.register_lance("t", table)
    with monkeypatch.context() as patched:
        patched.setattr(segment_commit, "unmark", replaced)
        with pytest.raises(KeyboardInterrupt):
            session.create_lance_index("t", "text", "MINHASHLSH")

    assert read_indexes(lance.dataset(table)) == ()
    session.register_lance("before", lance.dataset(table, version=2))
    assert session.check_lance_index("before", "text_idx").sound


def test_a_commit_that_fails_can_be_tried_again(table: Path) -> None:
    lance.dataset(table).create_scalar_index("id", "BTREE", name="taken")
    built = build_segment(table, "tags", "LABEL_LIST")
    with pytest.raises(InvalidArgumentError, match="name: got 'taken'"):
        commit_segments(table, [built], "taken")

    commit_segments(table, [built])

    assert_sound(table, "tags_idx")


@pytest.mark.parametrize(
    ("column", "kind", "parameters"), KINDS, ids=[kind for _, kind, _ in KINDS]
)
def test_of_compacted_fragments(
    table: Path, column: str, kind: str, parameters: dict[str, Any]
) -> None:
    built = build_segment(table, column, kind, **parameters)
    lance.dataset(table).optimize.compact_files()

    with pytest.raises(LanceIndexError, match="another writer was faster, build it again"):
        commit_segments(table, [built])

    assert read_indexes(lance.dataset(table)) == ()
