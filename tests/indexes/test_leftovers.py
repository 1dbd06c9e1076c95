"""What killed builds leave behind, and when it is removed."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import lance
import pyarrow as pa
import pytest

from datafusion_lance.engine import LanceSessionContext
from datafusion_lance.indexes import leftovers
from datafusion_lance.indexes.leftovers import KEPT_SECONDS, MARK, remove_leftovers
from datafusion_lance.indexes.list_element.builder import (
    build_segment,
    commit_segments,
    create_list_element,
)
from datafusion_lance.indexes.list_element.upkeep import optimize_list_element
from datafusion_lance.indexes.manifest import read_indexes
from datafusion_lance.indexes.owner import this_process

ROWS = pa.table({"d": [[{"a": n}, {"a": n + 1}] for n in range(1000)]})

KILLED = """
import os, sys, lance
from datafusion_lance.indexes.list_element import builder
inner = builder.write_btree
def killed(*arguments):
    if sys.argv[2] == "written":
        inner(*arguments)
    os._exit(9)
builder.write_btree = killed
builder.create_list_element(lance.dataset(sys.argv[1]), "d", ["a"])
"""


@pytest.fixture
def dataset(tmp_path: Path) -> lance.LanceDataset:
    return lance.write_dataset(ROWS, tmp_path / "t", max_rows_per_file=500)


def folders(dataset: lance.LanceDataset) -> list[Path]:
    return sorted((Path(dataset.uri) / "_indices").glob("*"))


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def change(folder: Path, *, seconds: int = 0, owner: str | None = None) -> None:
    """Makes the mark in a folder so much older, or that of another owner."""
    made, _, process = (folder / MARK).read_text().partition(" ")
    (folder / MARK).write_text(f"{int(made) - seconds} {process if owner is None else owner}")


def elsewhere(owner: str) -> str:
    """An ended process of a machine that was started at another time."""
    return f"{uuid4()} {owner.split(' ', 1)[1]}"


def kill(dataset: lance.LanceDataset, when: str) -> Path:
    """The folder of a build that was killed."""
    before = folders(dataset)
    ended = subprocess.run([sys.executable, "-c", KILLED, dataset.uri, when], check=False)
    assert ended.returncode == 9
    (left,) = set(folders(dataset)) - set(before)
    return left


@pytest.mark.parametrize("when", ["begun", "written"])
def test_a_killed_build_is_removed(dataset: lance.LanceDataset, when: str) -> None:
    folder = kill(dataset, when)
    # What pylance writes before a file is whole has a name that no listing shows.
    (folder / "page_data.lance#1").write_bytes(b"half")

    assert remove_leftovers(dataset) == (folder.name,)
    assert folders(dataset) == []


def test_one_of_another_machine_is_removed_once_it_is_old(dataset: lance.LanceDataset) -> None:
    folder = kill(dataset, "written")
    change(folder, owner=elsewhere(this_process()))

    assert remove_leftovers(dataset) == ()
    change(folder, seconds=KEPT_SECONDS + 60)

    assert remove_leftovers(dataset) == (folder.name,)


@pytest.mark.parametrize("owner", ["", "a b c", "a b c d", "-1"])
def test_one_of_nobody_is_removed_once_it_is_old(dataset: lance.LanceDataset, owner: str) -> None:
    folder = kill(dataset, "written")
    change(folder, owner=owner)

    assert remove_leftovers(dataset) == ()
    change(folder, seconds=KEPT_SECONDS + 60)

    assert remove_leftovers(dataset) == (folder.name,)


def test_a_build_at_work_is_kept(dataset: lance.LanceDataset) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        folder = kill(dataset, "begun")
        boot, namespace, *_ = this_process().split(" ")
        began = Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2].split()[19]
        change(folder, owner=f"{boot} {namespace} {other.pid} {began}")

        assert remove_leftovers(dataset) == ()

        other.kill()
        # Not waited for yet, and does nothing more.
        while remove_leftovers(dataset) == ():
            time.sleep(0.01)
    assert folders(dataset) == []


def test_a_build_at_work_is_kept_however_old_it_seems(dataset: lance.LanceDataset) -> None:
    folder = kill(dataset, "begun")
    change(folder, seconds=KEPT_SECONDS + 60, owner=this_process())

    assert remove_leftovers(dataset, -1) == ()

    assert folders(dataset) == [folder]


def test_one_that_is_begun_again_meanwhile_is_kept(
    dataset: lance.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = build_segment(dataset, "d", ["a"], progress=False)
    (folder,) = folders(dataset)
    change(folder, seconds=KEPT_SECONDS + 60, owner="")
    inner = leftovers.segments_of_all_versions

    def marked_anew(dataset: lance.LanceDataset) -> frozenset[str]:
        change(folder, seconds=-KEPT_SECONDS)
        return inner(dataset)

    monkeypatch.setattr(leftovers, "segments_of_all_versions", marked_anew)

    assert remove_leftovers(dataset) == ()

    commit_segments(dataset, [built])


def test_a_branch_has_its_own(dataset: lance.LanceDataset) -> None:
    dataset.create_branch("dev")
    branch = dataset.checkout_version(("dev", None))
    create_list_element(branch, "d", ["a"], progress=False)
    (folder,) = (Path(dataset.uri) / "tree" / "dev" / "_indices").glob("*")
    assert not (folder / MARK).exists()
    # As after a build that was killed between its commit and the removal of its mark.
    (folder / MARK).write_text("0")

    assert remove_leftovers(dataset) == ()
    assert (folder / MARK).exists()
    assert remove_leftovers(branch) == ()

    assert files(folder) == ["page_data.lance", "page_lookup.lance"]


def test_one_that_was_killed_before_its_mark_was_there(dataset: lance.LanceDataset) -> None:
    boot, namespace, _, began = this_process().split(" ")
    owners = {"": False, this_process(): False, f"{boot} {namespace} {2**22 + 5} {began}": True}
    for number, owner in enumerate(owners):
        path = Path(dataset.uri) / "_indices" / f"{MARK} {number} {owner}".rstrip()
        path.mkdir(parents=True)
        (path / MARK).write_bytes(b"")

    remove_leftovers(dataset)

    kept = [path.name.split(" ")[1] for path in folders(dataset)]
    assert kept == [str(n) for n, ended in enumerate(owners.values()) if not ended]
    remove_leftovers(dataset, -1)
    assert folders(dataset) == []


def test_a_number_that_another_process_has_now(dataset: lance.LanceDataset) -> None:
    folder = kill(dataset, "begun")
    *process, began = this_process().split(" ")
    change(folder, owner=" ".join([*process, str(int(began) - 1)]))

    assert remove_leftovers(dataset) == (folder.name,)


def test_a_finished_build_leaves_no_mark(dataset: lance.LanceDataset) -> None:
    create_list_element(dataset, "d", ["a"], progress=False)
    lance.write_dataset(ROWS, dataset.uri, mode="append")
    dataset.checkout_latest()
    optimize_list_element(dataset, "d_idx", progress=False)
    optimize_list_element(dataset, "d_idx", most_segments=1, progress=False)

    for folder in folders(dataset):
        assert files(folder) == ["page_data.lance", "page_lookup.lance"]
    assert len(folders(dataset)) == 3
    assert remove_leftovers(dataset, -1) == ()
    assert len(folders(dataset)) == 3


def test_what_a_version_names_is_kept(dataset: lance.LanceDataset) -> None:
    create_list_element(dataset, "d", ["a"], progress=False)
    (folder,) = folders(dataset)
    # As after a build that was killed between its commit and the removal of its mark.
    (folder / MARK).write_text("0")
    dataset.drop_index("d_idx")

    assert remove_leftovers(dataset) == ()

    assert not (folder / MARK).exists()
    assert len(read_indexes(dataset.checkout_version(2))) == 1


def test_segments_that_wait_for_their_commit_are_kept(dataset: lance.LanceDataset) -> None:
    built = [build_segment(dataset, "d", ["a"], fragment_ids=[f], progress=False) for f in (0, 1)]

    assert remove_leftovers(dataset) == ()
    commit_segments(dataset, built)

    assert [len(files(folder)) for folder in folders(dataset)] == [2, 2]


def test_what_others_left_is_theirs(dataset: lance.LanceDataset) -> None:
    foreign = Path(dataset.uri) / "_indices" / "0123" / "page_data.lance"
    foreign.parent.mkdir(parents=True)
    foreign.write_bytes(b"")
    unreadable = kill(dataset, "written")
    (unreadable / MARK).write_text("yesterday")

    assert remove_leftovers(dataset, -1) == ()

    assert foreign.exists()
    assert unreadable.exists()


def test_upkeep_removes_them(dataset: lance.LanceDataset) -> None:
    old, new = kill(dataset, "written"), kill(dataset, "written")
    change(new, owner=elsewhere(this_process()))
    session = LanceSessionContext()
    session.register_lance("t", dataset.uri)
    session.create_lance_index("t", "d", "LIST_ELEMENT", keys=["a"])

    session.optimize_lance_index("t")

    assert not old.exists()
    assert new.exists()
    assert int((new / MARK).read_text().split()[0]) == pytest.approx(time.time(), abs=600)
