"""Rows by their addresses: taken one by one or scanned and masked, the same rows come."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datafusion_lance.engine import kept_columns, row_fetch
from datafusion_lance.engine.column_cost import read_cost
from datafusion_lance.engine.fetch_cost import by_scan, rows_a_read
from datafusion_lance.engine.pushed_filter import Predicate, predicate_of
from datafusion_lance.engine.row_fetch import RowReader
from datafusion_lance.engine.value_width import fixed_width
from datafusion_lance.indexes.cache import ReaderCache
from datafusion_lance.indexes.row_set import RowSet
from datafusion_lance.indexes.snapshot import Snapshot

from .filter_cases import DOMAINS

NAMES = list(DOMAINS)


def sample(rows: int, seed: int = 0) -> pa.Table:
    """Columns of every type, and a number that is different in each row."""
    random = np.random.default_rng(seed)
    columns: dict[str, pa.Array] = {"n": pa.array(np.arange(rows))}
    for name, domain in DOMAINS.items():
        chosen = random.integers(0, len(domain.values), rows)
        columns[name] = domain.values.take(pa.array(chosen, mask=random.random(rows) < 0.2))
    return pa.table(columns)


def reader_of(dataset: lance.LanceDataset) -> RowReader:
    return RowReader(Snapshot(dataset, ReaderCache(1 << 20)))


@pytest.fixture(params=["take", "scan", "cache"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    scan = request.param == "scan"
    monkeypatch.setattr(row_fetch, "by_scan", lambda types, wanted, stored: scan)
    if request.param == "cache":
        keep_columns_at_once(monkeypatch)
    return request.param


def keep_columns_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the first read of a column keep it, as if reading it whole cost nothing."""
    monkeypatch.setattr(kept_columns, "read_microseconds", lambda types, wanted, stored: 0.0)


@pytest.fixture(scope="module", params=[False, True], ids=["addresses", "stable row ids"])
def dataset(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> lance.LanceDataset:
    """Five fragments, one of them without deletions, one gone, rows moved by an update."""
    path = tmp_path_factory.mktemp("rows") / "t"
    written = lance.write_dataset(
        sample(500), path, max_rows_per_file=100, enable_stable_row_ids=request.param
    )
    written.delete("n % 7 = 3 AND n < 300")
    written.delete("n >= 100 AND n < 200")
    written.update({"text": "'moved'"}, where="n = 42 OR n = 433")
    return lance.dataset(path)


def live(dataset: lance.LanceDataset) -> pa.Table:
    return dataset.to_table(with_row_address=True, with_row_id=True)


def expected(table: pa.Table, rows: RowSet) -> pa.Table:
    return table.filter(pc.is_in(table["_rowaddr"], pa.array(rows.addresses())))


def some_of(table: pa.Table, share: float) -> RowSet:
    chosen = np.random.default_rng(1).random(table.num_rows) < share
    return RowSet.from_addresses(table["_rowaddr"].to_numpy()[chosen])


def same(found: list[pa.RecordBatch], schema: pa.Schema, wanted: pa.Table) -> None:
    table = pa.Table.from_batches(found, schema)
    assert table.schema.types == [wanted.schema.field(name).type for name in schema.names]
    for name in schema.names:
        assert values(table[name]) == values(wanted[name]), name


def values(column: pa.ChunkedArray) -> str:
    if pa.types.is_timestamp(column.type) or pa.types.is_time64(column.type):
        column = column.cast(pa.int64())
    return repr(column.to_pylist())


@pytest.mark.parametrize("share", [0.02, 0.5, 1.0])
def test_all_types(dataset: lance.LanceDataset, way: str, share: float) -> None:
    table = live(dataset)
    rows = some_of(table, share)
    schema = pa.schema([*dataset.schema, pa.field("_rowid", pa.uint64())])
    same(list(reader_of(dataset).fetch(rows, schema, None)), schema, expected(table, rows))


def test_a_column_alone(dataset: lance.LanceDataset, way: str) -> None:
    table = live(dataset)
    reader = reader_of(dataset)
    rows = some_of(table, 0.3)
    for field in dataset.schema:
        schema = pa.schema([field])
        for _ in range(2):
            same(list(reader.fetch(rows, schema, None)), schema, expected(table, rows))


def test_columns_in_any_order(dataset: lance.LanceDataset, way: str) -> None:
    table = live(dataset)
    rows = some_of(table, 0.3)
    for names in (["n"], ["text", "n"], ["_rowid"], ["_rowid", "f64"], ["pair", "labels"]):
        types = {"_rowid": pa.uint64()}
        schema = pa.schema(
            [(name, types.get(name) or dataset.schema.field(name).type) for name in names]
        )
        same(list(reader_of(dataset).fetch(rows, schema, None)), schema, expected(table, rows))


def test_no_columns(dataset: lance.LanceDataset, way: str) -> None:
    rows = some_of(live(dataset), 0.4)
    predicate = predicate_of(pc.field("n") > 250)
    batches = list(reader_of(dataset).fetch(rows, pa.schema([]), predicate))
    wanted = expected(live(dataset), rows)
    count = sum(batch.num_rows for batch in batches)
    assert count == wanted.filter(pc.field("n") > 250).num_rows
    assert all(batch.num_columns == 0 for batch in batches)


def test_batches_hold_at_most_the_batch_size_when_taken(
    dataset: lance.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_fetch, "by_scan", lambda types, wanted, stored: False)
    rows = some_of(live(dataset), 1.0)
    schema = pa.schema([dataset.schema.field("n")])
    batches = list(reader_of(dataset).fetch(rows, schema, None, batch_size=64))
    assert {batch.num_rows for batch in batches[:-1]} == {64}
    same(batches, schema, live(dataset))


def test_no_rows(dataset: lance.LanceDataset, way: str) -> None:
    schema = pa.schema([dataset.schema.field("n")])
    assert list(reader_of(dataset).fetch(RowSet.EMPTY, schema, None)) == []


def filters() -> list[Predicate | None]:
    n, flag = pc.field("n"), pc.field("flag")
    return [
        predicate_of(filter)
        for filter in (
            n > 400,
            flag,
            ~flag & (n < 300),
            n.isin([5, 50, 150, 450]),
            pc.field("text").is_null() | (pc.field("f64") > 0.5),
            pa.scalar(None, pa.bool_()),
            True,
        )
    ]


@pytest.mark.parametrize("predicate", filters())
@pytest.mark.parametrize("first", [False, True], ids=["at once", "filter first"])
def test_filters(
    dataset: lance.LanceDataset,
    way: str,
    predicate: Predicate,
    first: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(RowReader, "_pays_to_filter_first", lambda *_: first)
    monkeypatch.setattr(row_fetch, "_FILTERED_AT_ONCE", 150)
    table = live(dataset)
    rows = some_of(table, 0.5)
    if first and not row_fetch.columns_of(predicate):
        pytest.skip("a filter without columns is never read first")
    schema = pa.schema([dataset.schema.field(name) for name in ("n", "labels", "vector")])
    found = list(reader_of(dataset).fetch(rows, schema, predicate))
    wanted = expected(table, rows).combine_chunks()
    kept = row_fetch.kept_rows(wanted.to_batches()[0], predicate)
    same(found, schema, pa.table(kept))


def test_what_was_read_is_told(dataset: lance.LanceDataset, way: str) -> None:
    told: list[tuple[str, int, int, float]] = []
    rows = some_of(live(dataset), 0.3)
    schema = pa.schema([dataset.schema.field("n")])
    list(reader_of(dataset).fetch(rows, schema, None, 64, lambda *read: told.append(read)))
    assert {read[0] for read in told} == {way}
    assert sum(read[1] for read in told) == len(rows)
    assert sum(read[2] for read in told) >= 8 * len(rows)


def test_ending_early_ends_the_reading(dataset: lance.LanceDataset, way: str) -> None:
    told: list[Any] = []
    schema = pa.schema([dataset.schema.field("n")])
    rows = some_of(live(dataset), 1.0)
    batches: Iterator[pa.RecordBatch] = reader_of(dataset).fetch(
        rows, schema, None, 10, lambda *read: told.append(read)
    )
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert len(told) == 1


def test_blobs_come_as_bytes(tmp_path: Path, way: str) -> None:
    schema = pa.schema(
        [
            pa.field("id", pa.int64()),
            pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"}),
        ]
    )
    for stable in (False, True):
        blobs = [b"x" * 100, None, b"z", b""]
        dataset = lance.write_dataset(
            pa.table({"id": range(4), "blob": blobs}, schema=schema),
            tmp_path / f"blobs {stable}",
            max_rows_per_file=2,
            enable_stable_row_ids=stable,
            data_storage_version="2.1",
        )
        wanted = pa.schema([("blob", pa.large_binary()), ("id", pa.int64())])
        rows = RowSet.from_addresses(np.array([1, 1 << 32, (1 << 32) + 1], np.uint64))
        found = pa.Table.from_batches(reader_of(dataset).fetch(rows, wanted, None))
        assert dict(zip(*found.select(["id", "blob"]).to_pydict().values(), strict=True)) == {
            1: None,
            2: b"z",
            3: b"",
        }


@settings(max_examples=settings().max_examples // 5)
@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(0, 59), unique=True, max_size=60),
    st.lists(st.integers(0, 59), unique=True, max_size=60),
    st.booleans(),
    st.booleans(),
)
def test_any_rows_of_any_table(
    seed: int, deleted: list[int], chosen: list[int], stable: bool, scan: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_fetch, "by_scan", lambda types, wanted, stored: scan)
        rows = pa.table({"n": range(60), "text": [f"row {at}" for at in range(60)]})
        fragment_rows = 7 + seed % 30
        path = Path(folder) / "t"
        dataset = lance.write_dataset(
            rows, path, max_rows_per_file=fragment_rows, enable_stable_row_ids=stable
        )
        if deleted:
            dataset.delete(f"n IN ({', '.join(map(str, deleted))})")
        dataset = lance.dataset(path)
        table = live(dataset)
        keep = pc.is_in(table["n"], pa.array(chosen, pa.int64()))
        wanted = table.filter(keep)
        addresses = RowSet.from_addresses(wanted["_rowaddr"].to_numpy())
        schema = dataset.schema
        same(list(reader_of(dataset).fetch(addresses, schema, None, 8)), schema, wanted)


def test_the_crossover_depends_on_the_columns() -> None:
    def share(kind: pa.DataType, values: pa.Array | None = None) -> float:
        cost = read_cost(kind, values)
        wanted = round(1_000_000 * cost.scanned / cost.by_address)
        assert not by_scan([cost], wanted - 1, 1_000_000)
        assert by_scan([cost], wanted + 1, 1_000_000)
        return wanted / 1_000_000

    # What was measured is in the documentation of engine/column_cost.py.
    assert 0.01 < share(pa.int64()) < 0.02
    assert 0.04 < share(pa.string()) < 0.06
    assert 0.01 < share(pa.string(), pa.array(["short"])) < 0.02
    assert share(pa.string(), pa.array(["a text that is long" * 100])) > 0.9
    assert 0.001 < share(pa.list_(pa.float32(), 8)) < 0.003
    assert 0.02 < share(pa.list_(pa.float32(), 128)) < 0.03
    assert 0.1 < share(pa.list_(pa.float32(), 768)) < 0.2
    five_texts = pa.array([["w00001", "w00002", None, "w00004", "w00005"]])
    assert 0.1 < share(five_texts.type, five_texts) < 0.15
    structs = pa.array([[{"a": 1, "b": 0.5}] * 4])
    assert 0.02 < share(structs.type, structs) < 0.04


@pytest.mark.parametrize(
    "values",
    [
        pa.array([{"a": 1, "b": None}, None]),
        pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        pa.array([["a", "b"], None], pa.list_(pa.string(), 2)),
        pa.array([["a"], None], pa.list_view(pa.string())),
        pa.array([[[1], []], None], pa.large_list(pa.list_(pa.int8()))),
        pa.array([b"x", None], pa.large_binary()),
        pa.array(["a", None], pa.string_view()),
        pa.array([b"0" * 16, None], pa.uuid()),
        pa.array(["a", "b"]).dictionary_encode(),
        pa.nulls(2),
    ],
    ids=lambda values: str(values.type),
)
def test_every_type_has_a_cost(values: pa.Array) -> None:
    for cost in (read_cost(values.type), read_cost(values.type, values)):
        assert cost.by_address > 0
        assert cost.scanned > 0
    assert read_cost(values.type, values[:0]) == read_cost(values.type)


def test_long_values_are_found_out_before_a_large_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_fetch, "_LARGE_READ", 0.0)
    texts = pa.array([f"{at} " * 300 for at in range(5_000)])
    dataset = lance.write_dataset(pa.table({"text": texts}), tmp_path / "t")
    rows = some_of(live(dataset), 0.2)
    methods: set[str] = set()
    batches = reader_of(dataset).fetch(
        rows, dataset.schema, None, counted=lambda method, *_: methods.add(method)
    )
    same(list(batches), dataset.schema, expected(live(dataset), rows))
    assert methods == {"take"}


def test_reads_are_longer_where_rows_are_narrow() -> None:
    assert rows_a_read([pa.int64()], 8192) == 65_536
    assert rows_a_read([pa.list_(pa.float32(), 1024)], 8192) == 1024
    assert rows_a_read([pa.list_(pa.float32(), 1 << 20)], 100) == 100


@pytest.mark.parametrize(
    ("kind", "width"),
    [
        (pa.bool_(), 1),
        (pa.int32(), 4),
        (pa.decimal128(20, 2), 16),
        (pa.list_(pa.float32(), 8), 32),
        (pa.struct([("x", pa.int64()), ("y", pa.int8())]), 9),
        (pa.struct([("x", pa.int64()), ("y", pa.string())]), None),
        (pa.dictionary(pa.int16(), pa.string()), 2),
        (pa.uuid(), 16),
        (pa.null(), 0),
        (pa.string(), None),
        (pa.list_(pa.int8()), None),
    ],
)
def test_widths(kind: pa.DataType, width: int | None) -> None:
    assert fixed_width(kind) == width
