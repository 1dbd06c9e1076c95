"""Entries are sorted in bounded memory, whatever their number and width."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datafusion_lance.indexes.list_element.btree_files import PAGE_DATA_SCHEMA
from datafusion_lance.indexes.list_element.external_sort import externally_sorted

Values = list[bytes | None]


def batches(values: Values, first_id: int, rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(values), rows):
        part = values[start : start + rows]
        ids = np.arange(first_id + start, first_id + start + len(part), dtype=np.uint64)
        columns = [pa.array(part, pa.binary()), pa.array(ids)]
        yield pa.record_batch(columns, schema=PAGE_DATA_SCHEMA)


def sorted_pairs(left: Values, right: Values, rows: int, memory: int) -> list[tuple[Any, int]]:
    parts = [batches(left, 0, rows), batches(right, len(left), rows)]
    table = pa.Table.from_batches(
        externally_sorted(parts, PAGE_DATA_SCHEMA, memory), PAGE_DATA_SCHEMA
    )
    values, ids = table.column("values").to_pylist(), table.column("ids").to_pylist()
    order = [(value is not None, value or b"") for value in values]
    assert order == sorted(order)
    return sorted(zip(order, ids, strict=True))


VALUES = st.lists(st.none() | st.binary(max_size=3), max_size=60)


@settings(max_examples=60)
@given(left=VALUES, right=VALUES, rows=st.integers(1, 9), memory=st.integers(1, 3000))
def test_runs_are_merged_into_the_order_of_all_entries(
    left: Values, right: Values, rows: int, memory: int
) -> None:
    expected = [((v is not None, v or b""), i) for i, v in enumerate(left + right)]
    assert sorted_pairs(left, right, rows, memory) == sorted(expected)


@pytest.mark.parametrize("width", [16, 5_000])
def test_what_is_beyond_memory_goes_through_files_that_are_removed(
    width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    memory, size = (8 << 20, 40 << 20) if width > 1000 else (1 << 20, 6 << 20)
    rows = 100 if width > 1000 else 8192

    def random_batches(seed: int) -> Iterator[pa.RecordBatch]:
        draw = np.random.default_rng(seed)
        for number in range(size // 2 // (rows * width)):
            data = draw.integers(0, 256, rows * width, dtype=np.uint8)
            offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(width)
            buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
            values = pa.BinaryArray.from_buffers(pa.binary(), rows, buffers)
            ids = pa.array(np.arange(rows, dtype=np.uint64) + np.uint64(number * rows))
            yield pa.record_batch([values, ids], schema=PAGE_DATA_SCHEMA)

    parts = [random_batches(1), random_batches(2)]
    spilled, count, last = 0, 0, b""
    for batch in externally_sorted(parts, PAGE_DATA_SCHEMA, memory):
        spilled = max(spilled, sum(f.stat().st_size for f in tmp_path.rglob("*") if f.is_file()))
        values = batch.column("values").to_pylist()
        assert last <= values[0]
        assert values == sorted(values)
        count, last = count + len(values), values[-1]
    assert count == 2 * (size // 2 // (rows * width)) * rows
    assert spilled > size // 2
    assert list(tmp_path.iterdir()) == []


def test_one_value_may_be_more_than_memory_holds() -> None:
    left: Values = [b"same"] * 30_000
    right: Values = [None] * 10_000 + [b"same", b"sane"] * 5_000
    assert len(sorted_pairs(left, right, 1000, 50_000)) == 50_000


def test_files_are_removed_where_the_iterator_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    values: Values = [bytes((i % 251, i % 7)) for i in range(20_000)]
    iterator = externally_sorted([batches(values, 0, 1000)], PAGE_DATA_SCHEMA, 20_000)
    next(iterator)
    assert list(tmp_path.iterdir()) != []
    iterator.close()  # pyright: ignore[reportAttributeAccessIssue]
    assert list(tmp_path.iterdir()) == []
