"""Builds and upkeeps in processes that are stopped, and what must be true of the table then."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess as Process
from pathlib import Path
from random import Random
from typing import Any, Final

import lance
import pyarrow as pa

from datafusion_lance.engine import (
    LanceSessionContext,
    build_segment,
    commit_segments,
)
from datafusion_lance.indexes.manifest import read_indexes, segments_of_all_versions

FRAGMENTS: Final = 9
ROWS: Final = 200

_PROCESSES: Final = multiprocessing.get_context("forkserver")
# Else a process would import for longer than it works.
_PROCESSES.set_forkserver_preload(["datafusion_lance.engine"])

_INTERRUPTED: Final = 7
"""How a process exits that was told to stop, and has cleaned up."""

_MOST_MISSED: Final = 5
"""How often the work may have ended before it was stopped, for each time that it was."""

Work = Callable[[Path], None]


def rows(first: int, count: int) -> pa.Table:
    random = Random(first)
    labels = [f"label {number}" for number in range(30)]
    structs = pa.list_(pa.struct({"label": pa.string(), "n": pa.int32()}))
    lists = [
        [{"label": random.choice(labels), "n": random.randrange(9)} for _ in range(4)]
        for _ in range(count)
    ]
    return pa.table(
        {
            "id": range(first, first + count),
            "d": pa.array(lists, structs),
            "text": [" ".join(random.choices(labels, k=9)) for _ in range(count)],
            "tags": [random.sample(labels, k=3) for _ in range(count)],
        }
    )


def write_table(path: Path, *, stable_row_ids: bool) -> None:
    """A table without index."""
    lance.write_dataset(
        rows(0, FRAGMENTS * ROWS),
        path,
        max_rows_per_file=ROWS,
        enable_stable_row_ids=stable_row_ids,
    )


def write_indexed_table(path: Path, *, stable_row_ids: bool) -> None:
    """One whose indexes have all a full upkeep before them: merges, new rows, rows that went."""
    write_table(path, stable_row_ids=stable_row_ids)
    parts = range(FRAGMENTS)
    columns: list[tuple[str, str, dict[str, Any]]] = [
        ("d", "LIST_ELEMENT", {"keys": ["label", "n"], "progress": False}),
        ("text", "MINHASHLSH", {"num_hashes": 16, "num_bands": 4}),
        ("tags", "LABEL_LIST", {}),
    ]
    for column, kind, parameters in columns:
        build = partial(build_segment, path, column, kind, **parameters)
        built = [build([part]) for part in parts]
        commit_segments(path, built)
    lance.dataset(path).delete("id % 10 = 3")
    lance.write_dataset(rows(100_000, ROWS), path, mode="append")


def build_list_element(path: Path) -> None:
    _session(path).create_lance_index("t", "d", "LIST_ELEMENT", keys=["label", "n"])


def build_minhash(path: Path) -> None:
    _session(path).create_lance_index("t", "text", "MINHASHLSH", num_hashes=16, num_bands=4)


def build_label_list(path: Path) -> None:
    _session(path).create_lance_index("t", "tags", "LABEL_LIST")


def upkeep(path: Path) -> None:
    _session(path).optimize_lance_index("t")


WORK: Final[dict[str, tuple[Work, bool]]] = {
    "build list element": (build_list_element, False),
    "build minhash": (build_minhash, False),
    "build label list": (build_label_list, False),
    "upkeep": (upkeep, True),
}
"""What is killed, and whether it needs a table with indexes."""


def _session(path: Path) -> LanceSessionContext:
    session = LanceSessionContext()
    session.register_lance("t", path)
    return session


@dataclass
class Stops:
    """How often the work was stopped before any commit, between or after them, and not at all."""

    before: int = 0
    between: int = 0
    never: int = 0


def stop_at_random(
    name: str,
    template: Path,
    folder: Path,
    times: int,
    random: Random,
    by: signal.Signals = signal.SIGKILL,
) -> Stops:
    """Stops the work so often, at random moments of its time, and proves the table each time.

    `template` is the table that every run begins with; `folder` is where the copies go. After
    SIGINT no file may be left over, after SIGKILL none after the next upkeep.
    """
    work, _ = WORK[name]
    last, seconds = _whole_run(work, template, folder)
    first = lance.dataset(template).version
    data = lance.dataset(template).to_table().sort_by("id")
    of_lance = name in ("build label list", "upkeep")
    stops = Stops()
    while stops.before + stops.between < times and stops.never < _MOST_MISSED * times:
        path = folder / f"stopped {stops.before} {stops.between} {stops.never}"
        shutil.copytree(template, path)
        delay = random.uniform(0, seconds)
        stopped = _is_stopped(work, path, delay, by)
        version = lance.dataset(path).version
        stops.never += not stopped
        stops.before += stopped and version == first
        stops.between += stopped and version != first
        assert first <= version <= last
        try:
            _prove(path, data)
            if by == signal.SIGINT:
                _prove_no_leftovers(path, of_lance=of_lance)
            # No lock is left, and what was left of files goes.
            if version == first:
                work(path)
            _session(path).optimize_lance_index("t")
            _prove(path, data)
            _prove_no_leftovers(path, of_lance=of_lance)
        except BaseException as error:
            error.add_note(f"{name}, {by.name} after {delay:.4f} s of {seconds:.4f} s: {path}")
            raise
        shutil.rmtree(path)
    return stops


def _whole_run(work: Work, template: Path, folder: Path) -> tuple[int, float]:
    """The version that the work ends with, and how long it takes in a new process."""
    took: list[float] = []
    version = 0
    for number in range(3):
        path = folder / f"whole {number}"
        shutil.copytree(template, path)
        process, begun = _begin(work, path), time.perf_counter()
        process.join()
        took.append(time.perf_counter() - begun)
        assert process.exitcode == 0
        version = lance.dataset(path).version
        shutil.rmtree(path)
    return version, sorted(took)[1]


def _begin(work: Work, path: Path) -> Process:
    """A process that has everything imported and begins to work now."""
    ours, theirs = _PROCESSES.Pipe(duplex=False)
    process = _PROCESSES.Process(target=_child, args=(work, path, theirs))
    process.start()
    with ours:
        ours.recv()
    return process


def _child(work: Work, path: Path, ready: Connection) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # What DataFusion makes of a KeyboardInterrupt while its first session begins is its own.
    LanceSessionContext()
    try:
        ready.send(None)
        work(path)
    except KeyboardInterrupt:
        os._exit(_INTERRUPTED)
    # Without what Python and its libraries do at their end.
    os._exit(0)


def _is_stopped(work: Work, path: Path, delay: float, by: signal.Signals) -> bool:
    """Whether the work was stopped after so many seconds; else it had ended before."""
    process = _begin(work, path)
    process.join(delay)
    if process.pid is not None and process.exitcode is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, by)
    process.join()
    assert process.exitcode in (0, _INTERRUPTED, -signal.SIGKILL), process.exitcode
    return process.exitcode != 0


def _prove(path: Path, data: pa.Table) -> None:
    session = _session(path)
    for row in session.lance_indexes("t").to_pylist():
        assert row["unusable"] is None
        found = session.check_lance_index("t", row["name"], progress=False)
        assert found.sound, str(found)
    assert lance.dataset(path).to_table().sort_by("id") == data


def _prove_no_leftovers(path: Path, *, of_lance: bool) -> None:
    """No version lacks a file, and none is left over; `of_lance` admits those of pylance's."""
    dataset = lance.dataset(path)
    named = segments_of_all_versions(dataset)
    held = {entry.name for entry in path.glob("_indices/*")}
    assert named <= held
    left = held - named
    if of_lance:
        left = {name for name in left if list((path / "_indices" / name).glob("unfinished*"))}
    assert not [
        entry
        for name in left
        for entry in (path / "_indices" / name, *path.glob(f"_indices/{name}/*"))
    ]
    for index in read_indexes(dataset):
        for segment in index.segments:
            files = {entry.name for entry in (path / "_indices" / segment.uuid).iterdir()}
            assert files == {name for name, _ in segment.files}
