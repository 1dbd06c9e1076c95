"""Builds and upkeeps in several processes at once, beside writers: each ends right or says why."""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random

import lance
import pytest

from datafusion_lance.engine import InvalidArgumentError, LanceIndexError, LanceSessionContext

from .stopped_builds import ROWS, WORK, rows, write_indexed_table, write_table

ROUNDS = int(os.environ.get("ROUNDS", "2"))

PROCESSES = multiprocessing.get_context("forkserver")


def session(path: Path) -> LanceSessionContext:
    made = LanceSessionContext()
    made.register_lance("t", path)
    return made


def optimize(path: Path) -> Counter[str]:
    """How often each thing came of an upkeep."""
    came: Counter[str] = Counter()
    own = session(path)
    for _ in range(ROUNDS):
        try:
            own.optimize_lance_index("t", progress=False)
            came["done"] += 1
        except LanceIndexError as error:
            came["lost" if "another writer was faster, try again" in str(error) else "failed"] += 1
    return came


def append(path: Path) -> Counter[str]:
    for number in range(ROUNDS):
        lance.write_dataset(rows(10_000 * number + 200_000, ROWS // 2), path, mode="append")
    return Counter()


def delete_and_update(path: Path) -> Counter[str]:
    random = Random(1)
    for _ in range(ROUNDS):
        # Where another is faster too often it is Lance that gives up.
        with suppress(OSError, RuntimeError):
            lance.dataset(path).delete(f"id % 17 = {random.randrange(17)}")
        with suppress(OSError, RuntimeError):
            where = f"id % 19 = {random.randrange(19)}"
            lance.dataset(path).update({"text": "concat(text, ' and more')"}, where=where)
    return Counter()


def compact(path: Path) -> Counter[str]:
    for _ in range(ROUNDS):
        with suppress(OSError, RuntimeError):
            lance.dataset(path).optimize.compact_files(target_rows_per_fragment=3 * ROWS)
    return Counter()


def read(path: Path) -> Counter[str]:
    """Queries give what they give without index, at whatever version they are."""
    for _ in range(ROUNDS):
        dataset = lance.dataset(path)
        indexed, plain = LanceSessionContext(), LanceSessionContext(use_indexes=False)
        for each in (indexed, plain):
            each.register_lance("t", path, version=dataset.version)
        for predicate in (
            "any_element(d, 'label = ''label 3''')",
            "array_has(tags, 'label 5')",
            "minhash_distance(text, 'label 1 label 2', 16, 4) < 0.5",
        ):
            query = f"SELECT count(*) AS n, sum(id) AS s FROM t WHERE {predicate}"
            assert indexed.sql(query).to_pydict() == plain.sql(query).to_pydict()
    return Counter()


@pytest.mark.parametrize("stable_row_ids", [False, True], ids=["addresses", "stable row ids"])
def test_upkeep_beside_all_others(tmp_path: Path, stable_row_ids: bool) -> None:
    path = tmp_path / "t.lance"
    write_indexed_table(path, stable_row_ids=stable_row_ids)
    work: list[Callable[[Path], Counter[str]]] = [
        optimize,
        optimize,
        append,
        delete_and_update,
        compact,
        read,
    ]
    with ProcessPoolExecutor(len(work), mp_context=PROCESSES) as pool:
        came = sum((f.result() for f in [pool.submit(w, path) for w in work]), Counter[str]())

    assert came["done"] + came["lost"] == 2 * ROUNDS
    print(came)
    own = session(path)
    for row in own.lance_indexes("t").to_pylist():
        if row["kind"] != "FragmentReuse":
            found = own.check_lance_index("t", row["name"], progress=False)
            assert found.sound, str(found)
    own.optimize_lance_index("t")
    for row in own.lance_indexes("t").to_pylist():
        found = own.check_lance_index("t", row["name"], progress=False)
        assert found.sound, str(found)
        assert row["uncovered_rows"] == 0


def build(name: str, path: Path) -> str:
    try:
        WORK[name][0](path)
    except InvalidArgumentError as error:
        return "taken" if "a name that no index has yet" in str(error) else str(error)
    return "built"


@pytest.mark.parametrize("name", [name for name in WORK if "build" in name])
def test_builds_of_one_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / "t.lance"
    write_table(path, stable_row_ids=False)
    with ProcessPoolExecutor(3, mp_context=PROCESSES) as pool:
        came = [f.result() for f in [pool.submit(build, name, path) for _ in range(3)]]

    assert sorted(came) == ["built", "taken", "taken"]
    (row,) = session(path).lance_indexes("t").to_pylist()
    assert session(path).check_lance_index("t", row["name"]).sound
    if name != "build label list":
        assert len(list(path.glob("_indices/*"))) == 1
