"""A Lance dataset as a DataFusion table: types, projections, counts, partitions, streaming."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pytest
from datafusion import SessionContext
from datafusion.catalog import Table

from datafusion_lance.engine.lance_table import LanceTable, grouped_by_rows
from datafusion_lance.engine.row_counts import ROWS_A_BATCH, counted

from .filter_cases import DOMAINS


def context_of(table: LanceTable) -> SessionContext:
    context = SessionContext()
    context.register_table("t", Table(table))
    return context


def written(path: Path, rows: pa.Table, **options: Any) -> lance.LanceDataset:
    return lance.write_dataset(rows, path / "t.lance", **options)


def test_it_is_a_pyarrow_dataset(tmp_path: Path) -> None:
    table = LanceTable(written(tmp_path, pa.table({"id": range(10), "x": range(10)})))
    assert isinstance(table, pyarrow.dataset.Dataset)
    assert table.count_rows() == 10
    assert table.count_rows(filter=pc.field("id") > 7) == 2
    assert table.head(3, columns=["x"]).to_pydict() == {"x": [0, 1, 2]}
    assert table.to_table(filter=pc.field("id") == 4).to_pydict() == {"id": [4], "x": [4]}


# Every type that Lance stores, filled from the filter cases and some more.
TYPES: dict[str, pa.Array] = {
    **{name: domain.values for name, domain in DOMAINS.items()},
    "u16": pa.array([1, None], pa.uint16()),
    "u32": pa.array([1, None], pa.uint32()),
    "structs": pa.array([[{"x": 1, "y": None}, None], None]),
    "deep": pa.array([[[1], None], [[]]], pa.list_(pa.large_list(pa.int8()))),
    "nested_dictionary": pa.ListArray.from_arrays(
        [0, 2, 2], pa.array(["a", "b"]).dictionary_encode()
    ),
    "small_dictionary": pa.array(["a", None, "a"])
    .dictionary_encode()
    .cast(pa.dictionary(pa.int8(), pa.string())),
    "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
    "boolean_vector": pa.array([[True, False]], pa.list_(pa.bool_(), 2)),
    "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16, None], pa.binary(16))),
}


def values_of(column: pa.ChunkedArray) -> str:
    """All values as text: NaN equals itself there, and times have their nanoseconds."""
    if pa.types.is_timestamp(column.type) or pa.types.is_time64(column.type):
        column = column.cast(pa.int64())
    return repr(column.to_pylist())


@pytest.mark.parametrize("name", TYPES)
def test_every_type_comes_through(tmp_path: Path, name: str) -> None:
    rows = pa.table({"n": range(len(TYPES[name])), "Some Column": TYPES[name]})
    dataset = written(tmp_path, rows, data_storage_version="2.2")
    found = context_of(LanceTable(dataset)).sql("SELECT * FROM t ORDER BY n").to_arrow_table()
    expected = SessionContext()
    expected.register_record_batches("t", [rows.to_batches()])
    wanted = expected.sql("SELECT * FROM t ORDER BY n").to_arrow_table()
    assert found.schema == wanted.schema
    assert values_of(found["Some Column"]) == values_of(wanted["Some Column"])
    assert LanceTable(dataset).schema == dataset.schema


def test_projections(tmp_path: Path) -> None:
    context = context_of(LanceTable(written(tmp_path, pa.table({"a": [1, 2], "b": ["x", "y"]}))))
    assert context.sql("SELECT b, a FROM t").to_pydict() == {"b": ["x", "y"], "a": [1, 2]}
    assert context.sql("SELECT b FROM t WHERE a = 2").to_pydict() == {"b": ["y"]}
    assert context.sql("SELECT 1 AS one FROM t").to_pydict() == {"one": [1, 1]}


@pytest.mark.parametrize("name", ["A", "a b", 'a"b', "a'b", "é", "select", "a\\b", "*", "1", "[0]"])
def test_odd_column_names(tmp_path: Path, name: str) -> None:
    rows = pa.table({name: [1, 2, None], "other": [4, 5, 6]})
    context = context_of(LanceTable(written(tmp_path, rows)))
    quoted = '"' + name.replace('"', '""') + '"'
    assert context.sql(f"SELECT {quoted} FROM t WHERE {quoted} > 1").to_pydict() == {name: [2]}
    assert context.sql(f"SELECT count(*) AS c FROM t WHERE {quoted} IS NULL").to_pydict() == {
        "c": [1]
    }
    assert context.sql("SELECT * FROM t").to_arrow_table().schema.names == [name, "other"]


def test_names_that_differ_in_case(tmp_path: Path) -> None:
    context = context_of(LanceTable(written(tmp_path, pa.table({"a": [1, 2], "A": [2, 1]}))))
    assert context.sql('SELECT "A" FROM t WHERE "A" = 2').to_pydict() == {"A": [2]}
    assert context.sql('SELECT "A" FROM t WHERE a = 2').to_pydict() == {"A": [1]}


def test_counting_reads_no_data(tmp_path: Path) -> None:
    dataset = written(tmp_path, pa.table({"id": range(1000)}), max_rows_per_file=300)
    dataset.delete("id % 10 = 0")
    dataset = lance.dataset(dataset.uri)
    for file in (tmp_path / "t.lance" / "data").iterdir():
        file.unlink()
    assert context_of(LanceTable(dataset)).sql("SELECT count(*) AS c FROM t").to_pydict() == {
        "c": [900]
    }


def test_counts_come_in_bounded_batches() -> None:
    batches = list(counted(2 * ROWS_A_BATCH + 5))
    assert [batch.num_rows for batch in batches] == [ROWS_A_BATCH, ROWS_A_BATCH, 5]
    assert list(counted(0)) == []


def test_row_ids_are_the_last_column(tmp_path: Path) -> None:
    dataset = written(tmp_path, pa.table({"id": range(6)}), max_rows_per_file=3)
    table = LanceTable(dataset, row_id=True)
    assert table.schema.names == ["id", "_rowid"]
    context = context_of(table)
    ids = [0, 1, 2, 1 << 32, (1 << 32) + 1, (1 << 32) + 2]
    assert context.sql("SELECT * FROM t ORDER BY id").to_pydict() == {
        "id": list(range(6)),
        "_rowid": ids,
    }
    assert context.sql("SELECT _rowid FROM t WHERE id = 4").to_pydict() == {"_rowid": [ids[4]]}
    assert context.sql("SELECT count(*) AS c FROM t WHERE _rowid > 1").to_pydict() == {"c": [4]}
    assert context.sql(f"SELECT id FROM t WHERE _rowid = {ids[3]} AND id > 0").to_pydict() == {
        "id": [3]
    }


def test_restriction_to_fragments(tmp_path: Path) -> None:
    table = LanceTable(written(tmp_path, pa.table({"id": range(9)}), max_rows_per_file=3))
    assert table.shown_fragments == {0, 1, 2}
    some = table.restricted(frozenset((0, 2)))
    assert some.shown_fragments == {0, 2}
    context = context_of(some)
    found = context.sql("SELECT id FROM t ORDER BY id").to_pydict()["id"]
    assert found == [0, 1, 2, 6, 7, 8]
    assert context.sql("SELECT count(*) AS c FROM t").to_pydict() == {"c": [6]}
    assert context.sql("SELECT count(*) AS c FROM t WHERE id > 1").to_pydict() == {"c": [4]}
    assert some.restricted(frozenset((1, 2))).shown_fragments == {2}
    assert context_of(table.restricted(frozenset())).sql("SELECT id FROM t").to_pydict() == {
        "id": []
    }


def test_an_empty_dataset(tmp_path: Path) -> None:
    context = context_of(LanceTable(written(tmp_path, pa.table({"id": pa.array([], pa.int64())}))))
    assert context.sql("SELECT id FROM t WHERE id > 1").to_pydict() == {"id": []}
    assert context.sql("SELECT count(*) AS c FROM t").to_pydict() == {"c": [0]}


class FakeFragment:
    def __init__(self, rows: int) -> None:
        self.physical_rows = rows


def test_partitions_are_few_and_even() -> None:
    fragments: Any = [FakeFragment(5_000) for _ in range(10_000)]
    groups = grouped_by_rows(fragments, cores=2)
    assert [len(group) for group in groups] == [2500] * 4
    assert [fragment for group in groups for fragment in group] == fragments


def test_partitions_of_uneven_fragments() -> None:
    sizes = [1_000_000, 10, 10, 10, 500_000, 500_000]
    groups = grouped_by_rows([FakeFragment(rows) for rows in sizes], cores=2)  # type: ignore[arg-type]
    assert [[f.physical_rows for f in group] for group in groups] == [
        [1_000_000],
        [10, 10, 10, 500_000],
        [500_000],
    ]


def test_few_rows_are_one_partition() -> None:
    fragments: Any = [FakeFragment(100) for _ in range(50)]
    assert len(grouped_by_rows(fragments, cores=8)) == 1
    assert grouped_by_rows([], cores=8) == [()]


def test_fragments_whose_columns_differ(tmp_path: Path) -> None:
    dataset = written(tmp_path, pa.table({"id": range(4)}), max_rows_per_file=2)
    dataset.add_columns(pa.field("later", pa.string()))
    dataset = lance.dataset(dataset.uri)
    dataset = lance.write_dataset(pa.table({"id": [4], "later": ["x"]}), dataset.uri, mode="append")
    context = context_of(LanceTable(dataset))
    assert context.sql("SELECT later FROM t WHERE id >= 3 ORDER BY id").to_pydict() == {
        "later": [None, "x"]
    }
    assert context.sql("SELECT id FROM t WHERE later IS NOT NULL").to_pydict() == {"id": [4]}


def test_blobs_come_as_bytes(tmp_path: Path) -> None:
    schema = pa.schema(
        [
            pa.field("id", pa.int64()),
            pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"}),
        ]
    )
    rows = pa.table({"id": [1, 2, 3], "blob": [b"x" * 1000, None, b"z"]}, schema=schema)
    dataset = written(tmp_path, rows, data_storage_version="2.1")
    context = context_of(LanceTable(dataset))
    assert context.sql("SELECT * FROM t ORDER BY id").to_pydict()["blob"] == [
        b"x" * 1000,
        None,
        b"z",
    ]
    assert context.sql("SELECT blob FROM t WHERE id = 3").to_pydict() == {"blob": [b"z"]}
    assert context.sql("SELECT id FROM t WHERE blob = X'7a'").to_pydict() == {"id": [3]}


@pytest.fixture(scope="module")
def many_rows(tmp_path_factory: pytest.TempPathFactory) -> lance.LanceDataset:
    rows = 400_000
    return written(
        tmp_path_factory.mktemp("many"),
        pa.table({"id": np.arange(rows), "x": np.arange(rows) % 97}),
        max_rows_per_file=50_000,
    )


def test_a_limit_ends_the_read(many_rows: lance.LanceDataset) -> None:
    reads: list[str] = []

    class Watched(LanceTable):
        def get_fragments(self, filter: Any = None) -> list[Any]:
            return [WatchedPartition(part, reads) for part in super().get_fragments(filter)]

    context = context_of(Watched(many_rows))
    assert len(context.sql("SELECT id FROM t LIMIT 3").to_pydict()["id"]) == 3
    deadline = time.monotonic() + 10
    while reads.count("opened") != reads.count("closed") and time.monotonic() < deadline:
        context.sql("SELECT 1").collect()  # what is dropped without the GIL goes with the next call
    assert reads.count("opened") == reads.count("closed")
    assert reads.count("batch") < 8


class WatchedPartition:
    """A partition that notes when its batches begin, come and end."""

    def __init__(self, partition: Any, notes: list[str]) -> None:
        self._partition = partition
        self._notes = notes

    def scanner(self, *args: Any, **kwargs: Any) -> Any:
        scan = self._partition.scanner(*args, **kwargs)
        batches = scan.to_batches

        def noted() -> Any:
            self._notes.append("opened")
            try:
                for batch in batches():
                    self._notes.append("batch")
                    yield batch
            finally:
                self._notes.append("closed")

        scan.to_batches = noted
        return scan


def test_batches_are_bounded(many_rows: lance.LanceDataset) -> None:
    batches = list(LanceTable(many_rows).to_batches())
    assert sum(batch.num_rows for batch in batches) == 400_000
    assert max(batch.num_rows for batch in batches) <= 65_536


def test_wide_rows_come_in_small_batches(tmp_path: Path) -> None:
    vectors = pa.FixedSizeListArray.from_arrays(np.zeros(4_000 * 4_096, np.float32), 4_096)
    dataset = written(tmp_path, pa.table({"v": vectors}))
    partition = LanceTable(dataset).get_fragments()[0]
    batches = partition.scanner(None, columns=["v"], batch_size=8192).to_batches()
    assert max(batch.nbytes for batch in batches) <= 17 << 20


def test_threads_share_a_table(many_rows: lance.LanceDataset) -> None:
    context = context_of(LanceTable(many_rows))
    wrong: list[Any] = []

    def run(residue: int) -> None:
        for _ in range(3):
            found = context.sql(f"SELECT count(*) AS c FROM t WHERE x = {residue}").to_pydict()
            if found != {"c": [len(range(residue, 400_000, 97))]}:
                wrong.append(found)

    threads = [threading.Thread(target=run, args=(residue,)) for residue in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_an_error_of_lance_reaches_the_user(tmp_path: Path) -> None:
    dataset = written(tmp_path, pa.table({"id": range(10)}))
    context = context_of(LanceTable(dataset))
    (file,) = (tmp_path / "t.lance" / "data").iterdir()
    file.unlink()
    with pytest.raises(Exception, match=file.name):
        context.sql("SELECT id FROM t").collect()
