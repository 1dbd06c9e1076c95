"""The rows that a query finds in the indexes, as a DataFusion table."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pytest
from datafusion import SessionContext
from datafusion.catalog import Table

from datafusion_lance.engine import index_scan
from datafusion_lance.engine.index_scan import IndexScan
from datafusion_lance.engine.lance_table import LanceTable
from datafusion_lance.indexes.cache import ReaderCache
from datafusion_lance.indexes.query import And, HasAll, HasAny, Not, Query
from datafusion_lance.indexes.snapshot import Snapshot

ROWS = 200_000
FRAGMENT = 50_000


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> lance.LanceDataset:
    """Four indexed fragments: every 1,000th row is `rare`, every second `common`."""
    tags: list[list[str] | None] = [["even"] if at % 2 == 0 else ["odd"] for at in range(1000)]
    tags[0] = ["rare", "even"]
    tags[5] = None
    path = tmp_path_factory.mktemp("scan") / "t"
    rows = pa.table(
        {
            "id": np.arange(ROWS),
            "tags": pa.array(tags * (ROWS // 1000), pa.list_(pa.string())),
            "score": np.arange(ROWS) / ROWS,
        }
    )
    written = lance.write_dataset(rows, path, max_rows_per_file=FRAGMENT)
    written.create_scalar_index("tags", "LABEL_LIST")
    lance.dataset(path).delete("id % 9000 = 0")
    return lance.dataset(path)


RARE = [at for at in range(0, ROWS, 1000) if at % 9000]
EVEN = [at for at in range(0, ROWS, 2) if at % 9000]


def table_of(dataset: lance.LanceDataset, row_id: bool = False) -> LanceTable:
    table = LanceTable(dataset, row_id=row_id)
    table.snapshot = Snapshot(dataset, ReaderCache(1 << 24))
    return table


def scan_of(table: LanceTable, *labels: str, fragments: frozenset[int] | None = None) -> IndexScan:
    snapshot = table.snapshot
    assert snapshot is not None
    (index,) = snapshot.indexes_on("tags")
    query = HasAny(index, "tags", pa.array(labels), False)
    covered = snapshot.covered_fragments(index)
    return IndexScan(table, snapshot, query, covered if fragments is None else fragments)


def context_of(scan: IndexScan) -> SessionContext:
    context = SessionContext()
    context.register_table("t", Table(scan))
    return context


def ids(context: SessionContext, sql: str) -> list[int]:
    return context.sql(sql).to_pydict()["id"]


def test_it_is_a_pyarrow_dataset(dataset: lance.LanceDataset) -> None:
    scan = scan_of(table_of(dataset), "rare")
    assert isinstance(scan, pyarrow.dataset.Dataset)
    assert scan.schema == dataset.schema
    assert scan.scanner(columns=["id"]).to_table().to_pydict() == {"id": RARE}


def test_few_rows_are_taken(dataset: lance.LanceDataset) -> None:
    scan = scan_of(table_of(dataset), "rare")
    assert ids(context_of(scan), "SELECT id FROM t ORDER BY id") == RARE
    assert scan.stats.fetch == "take"
    assert scan.stats.rows_found == scan.stats.rows_fetched == len(RARE)
    assert scan.stats.fetch_bytes >= 8 * len(RARE)
    assert scan.stats.fetch_seconds > 0
    assert scan.stats.search_seconds > 0


def test_many_rows_are_scanned(dataset: lance.LanceDataset) -> None:
    scan = scan_of(table_of(dataset), "even")
    assert ids(context_of(scan), "SELECT id FROM t ORDER BY id") == EVEN
    assert scan.stats.fetch == "scan"
    assert scan.stats.rows_fetched == len(EVEN)


def test_nothing_found(dataset: lance.LanceDataset) -> None:
    scan = scan_of(table_of(dataset), "absent")
    assert ids(context_of(scan), "SELECT id FROM t") == []
    assert context_of(scan).sql("SELECT count(*) AS c FROM t").to_pydict() == {"c": [0]}
    assert scan.stats.fetch == "none"


def test_filters_are_applied(dataset: lance.LanceDataset) -> None:
    for label, found in (("rare", RARE), ("even", EVEN)):
        context = context_of(scan_of(table_of(dataset), label))
        half = [at for at in found if at / ROWS > 0.5]
        assert ids(context, "SELECT id FROM t WHERE score > 0.5 ORDER BY id") == half
        count = context.sql("SELECT count(*) AS c FROM t WHERE score > 0.5").to_pydict()
        assert count == {"c": [len(half)]}
        assert ids(context, "SELECT id FROM t WHERE NULL") == []


def test_row_ids(dataset: lance.LanceDataset) -> None:
    for label, found in (("rare", RARE), ("even", EVEN)):
        context = context_of(scan_of(table_of(dataset, row_id=True), label))
        rows = context.sql("SELECT id, _rowid FROM t ORDER BY id").to_pydict()
        assert rows["id"] == found
        assert rows["_rowid"] == [(at // FRAGMENT << 32) + at % FRAGMENT for at in found]
        only = context.sql("SELECT _rowid FROM t ORDER BY _rowid").to_pydict()
        assert only == {"_rowid": rows["_rowid"]}


def test_only_covered_fragments(dataset: lance.LanceDataset) -> None:
    scan = scan_of(table_of(dataset), "rare", fragments=frozenset((1, 3)))
    inside = [at for at in RARE if at // FRAGMENT in (1, 3)]
    assert ids(context_of(scan), "SELECT id FROM t ORDER BY id") == inside


def test_counting_reads_no_data(dataset: lance.LanceDataset, tmp_path: Path) -> None:
    path = copied(dataset, tmp_path)
    for file in (path / "data").iterdir():
        file.unlink()
    scan = scan_of(table_of(lance.dataset(path)), "even")
    assert context_of(scan).sql("SELECT count(*) AS c FROM t").to_pydict() == {"c": [len(EVEN)]}
    assert scan.stats.fetch == "count"
    assert scan.stats.rows_fetched == 0


def copied(dataset: lance.LanceDataset, folder: Path) -> Path:
    return Path(shutil.copytree(dataset.uri, folder / "copy"))


@pytest.fixture
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many partitions on every machine."""
    monkeypatch.setattr(os, "cpu_count", lambda: 4)


@pytest.mark.usefixtures("four_cores")
def test_planning_searches_nothing(
    dataset: lance.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("searched while planning")

    monkeypatch.setattr(index_scan, "evaluate", refuse)
    context = context_of(scan_of(table_of(dataset), "even"))
    plan = context.sql("SELECT id FROM t WHERE score > 0.5").execution_plan()
    assert "DatasetExec: number_of_fragments=4" in plan.display_indent()
    context.sql("EXPLAIN SELECT id FROM t").collect()


@pytest.mark.usefixtures("four_cores")
def test_partitions_search_once(
    dataset: lance.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches = counted_searches(monkeypatch)
    scan = scan_of(table_of(dataset), "even")
    context = context_of(scan)
    frame = context.sql("SELECT id FROM t")
    assert frame.count() == frame.count() == len(EVEN)
    assert len(searches) == 1

    other = scan_of(table_of(dataset), "even")
    found: list[int] = []
    threads = [
        threading.Thread(
            target=lambda partition=partition: found.append(
                sum(b.num_rows for b in partition.scanner(None, ["id"]).to_batches())
            )
        )
        for partition in other.get_fragments()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(found) == len(EVEN)
    assert len(threads) == 4
    assert len(searches) == 2


def counted_searches(monkeypatch: pytest.MonkeyPatch) -> list[Query]:
    searches: list[Query] = []
    evaluate = index_scan.evaluate

    def counting(query: Query, *rest: Any) -> Any:
        searches.append(query)
        return evaluate(query, *rest)

    monkeypatch.setattr(index_scan, "evaluate", counting)
    return searches


@pytest.mark.usefixtures("four_cores")
def test_an_error_is_raised_in_every_partition(dataset: lance.LanceDataset, tmp_path: Path) -> None:
    path = copied(dataset, tmp_path)
    (lookup,) = (path / "_indices").glob("*/bitmap_page_lookup.lance")
    lookup.write_bytes(lookup.read_bytes()[:100])
    scan = scan_of(table_of(lance.dataset(path)), "even")
    messages: list[str] = []
    for partition in scan.get_fragments():
        with pytest.raises(Exception, match="corrupt index file") as caught:
            list(partition.scanner(None, ["id"]).to_batches())
        messages.append(str(caught.value))
    assert len(messages) == 4
    assert len(set(messages)) == 1
    # Through DataFusion the file's name and the failed check arrive.
    with pytest.raises(Exception, match=r"corrupt index file .*bitmap_page_lookup\.lance: "):
        context_of(scan).sql("SELECT id FROM t").collect()


@pytest.mark.parametrize("label", ["rare", "even"])
def test_a_limit_ends_the_read(dataset: lance.LanceDataset, label: str) -> None:
    scan = scan_of(table_of(dataset), label)
    context = context_of(scan)
    context.sql("SET datafusion.execution.batch_size = 10").collect()
    assert len(ids(context, "SELECT id FROM t LIMIT 3")) == 3
    assert scan.stats.rows_fetched < len(EVEN) if label == "even" else len(RARE)


def test_queries_combine(dataset: lance.LanceDataset) -> None:
    table = table_of(dataset)
    assert table.snapshot is not None
    (index,) = table.snapshot.indexes_on("tags")

    def labels(*names: str) -> pa.Array:
        return pa.array(names)

    query = And(
        (
            HasAll(index, "tags", labels("even"), False),
            Not(HasAny(index, "tags", labels("rare"), False)),
        )
    )
    covered = table.snapshot.covered_fragments(index)
    scan = IndexScan(table, table.snapshot, query, covered)
    wanted = [at for at in EVEN if at % 1000]
    assert ids(context_of(scan), "SELECT id FROM t ORDER BY id") == wanted
