"""No filter may be applied after a search for the nearest has cut off the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from datafusion_lance.engine.index_scan import IndexScan
from datafusion_lance.engine.lance_table import LanceTable
from datafusion_lance.indexes.cache import ReaderCache
from datafusion_lance.indexes.query import Nearest
from datafusion_lance.indexes.snapshot import Snapshot

from ..minhash_tables import INDEX, Sessions, base_texts, store
from ..oracle_rows import index_scans

NEAR = f"minhash_distance(u, '{base_texts()[0]}')"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("nearest") / "t"
    store(path, stable_row_ids=False, parameters={})
    return path


@pytest.fixture(scope="module")
def sessions(path: Path) -> Sessions:
    return Sessions.over(path)


def scan_of(path: Path, count: int, *, foreseen: bool = False) -> IndexScan:
    table = LanceTable(lance.dataset(path))
    table.snapshot = Snapshot(table.lance_dataset, ReaderCache(1 << 24))
    (index,) = table.snapshot.indexes_on("u")
    query = Nearest(index, "u", base_texts()[0], count, ties=False, nulls=False)
    covered = table.snapshot.covered_fragments(index)
    return IndexScan(table, table.snapshot, query, covered, foreseen=foreseen)


def ids(scan: IndexScan, filter: Any = None) -> set[int]:
    fragments = scan.get_fragments(filter)
    found = [f.scanner(columns=["i", "x"], filter=filter).to_table() for f in fragments]
    return set(pa.concat_tables(found)["i"].to_pylist())


def test_a_filter_that_was_not_foreseen_is_applied_to_all_covered_rows(path: Path) -> None:
    every = ids(scan_of(path, 10**6))
    columns = lance.dataset(path).to_table(columns=["i", "x"]).to_pydict()
    x = dict(zip(columns["i"], columns["x"], strict=True))
    assert len(ids(scan_of(path, 10))) == 10
    assert ids(scan_of(path, 10), pc.field("x") == 2) == {i for i in every if x[i] == 2}


def test_a_filter_that_the_search_has_seen_drops_none_of_its_rows(path: Path) -> None:
    nearest = ids(scan_of(path, 10))
    assert ids(scan_of(path, 10, foreseen=True), pc.field("i") >= 0) == nearest


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT i FROM t ORDER BY {d}, i LIMIT 10",
        "SELECT i FROM t WHERE x < 3 AND x IN (1, NULL) ORDER BY {d}, i LIMIT 10",
        "SELECT * FROM (SELECT i, x FROM t ORDER BY {d}, i LIMIT 20) WHERE x = 2 ORDER BY i",
        "SELECT * FROM (SELECT i, x FROM t ORDER BY {d}, i LIMIT 20) WHERE i > 90 "
        "ORDER BY i LIMIT 3",
        "SELECT o.x FROM o JOIN (SELECT i FROM t ORDER BY {d}, i LIMIT 90) n ON o.x = n.i "
        "WHERE o.x < 50 ORDER BY o.x",
        "SELECT i FROM t WHERE i IN (SELECT i FROM t ORDER BY {d}, i LIMIT 9) AND i < 200 "
        "ORDER BY i",
        "SELECT i FROM (SELECT i FROM t ORDER BY {d}, i LIMIT 20) ORDER BY i LIMIT 2",
        "SELECT n.i FROM (SELECT i FROM t WHERE x < 3 ORDER BY {d}, i LIMIT 20) n, o "
        "WHERE n.i = o.x AND n.i = 17",
    ],
)
def test_no_filter_is_handed_over(
    sessions: Sessions, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed: list[Any] = []
    get_fragments = IndexScan.get_fragments

    def noted(scan: IndexScan, filter: Any = None) -> list[Any]:
        if "nearest(" in str(scan.query):
            handed.append(filter)
        return get_fragments(scan, filter)

    monkeypatch.setattr(IndexScan, "get_fragments", noted)
    text = statement.format(d=NEAR)
    found = sessions.indexed.sql(text).to_pylist()
    assert found == sessions.memory.sql(text).to_pylist()
    assert handed
    assert set(handed) == {None}


def test_explain_tells_what_is_searched_for(sessions: Sessions) -> None:
    near = base_texts()[0]
    frame = sessions.indexed.sql(
        f"SELECT i FROM t WHERE x < 3 AND array_has(tags, 'a') ORDER BY {NEAR} LIMIT 10 OFFSET 5"
    )
    (scan,) = index_scans(frame)
    assert scan.startswith(
        f"IndexScan: table=t, index=tags_labels+{INDEX}, kind=LabelList+MinHashLsh, "
        f"query=nearest(u, '{near}', 15, where array_has(tags, 'a') AND t.x < Int32(3)), "
        "answer=exact, uncovered_fragments="
    )


def test_explain_analyze_tells_what_the_search_did(sessions: Sessions) -> None:
    frame = sessions.indexed.sql(f"EXPLAIN ANALYZE SELECT i FROM t ORDER BY {NEAR} LIMIT 10")
    (plan,) = frame.to_pydict()["plan"]
    assert "query=nearest(u, " in plan
    assert "rows_found=10" in plan
    assert "signatures_compared=" in plan


@pytest.mark.parametrize("other", ["SELECT i FROM t", "SELECT i FROM t WHERE u LIKE '%ant%'"])
def test_a_table_that_is_scanned_twice_shows_each_scan_what_it_needs(
    sessions: Sessions, other: str
) -> None:
    text = (
        f"SELECT x FROM o WHERE x NOT IN (SELECT i FROM t WHERE x < 3 ORDER BY {NEAR}, i LIMIT 5) "
        f"AND x NOT IN ({other}) ORDER BY x"
    )
    assert sessions.indexed.sql(text).to_pylist() == sessions.memory.sql(text).to_pylist()
