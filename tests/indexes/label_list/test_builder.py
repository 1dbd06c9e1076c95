"""Building through pylance, with the arguments checked before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from datafusion_lance.indexes.errors import InvalidArgumentError
from datafusion_lance.indexes.label_list.builder import create_label_list

from ..answers import has_any, snapshot_of, true_rows


@pytest.fixture
def dataset(tmp_path: Path) -> lance.LanceDataset:
    table = pa.table(
        {
            "id": [1, 2],
            "tags": [["a"], ["b", "a"]],
            "large": pa.array([["a"], None], pa.large_list(pa.string())),
            "nested": [[["a"]], []],
            "structs": [[{"x": 1}], []],
            "vector": pa.array([[1.0], [2.0]], pa.list_(pa.float32(), 1)),
        }
    )
    return lance.write_dataset(table, tmp_path / "table.lance")


@pytest.mark.parametrize("column", ["tags", "large"])
def test_it_builds_what_the_reader_reads(dataset: lance.LanceDataset, column: str) -> None:
    create_label_list(dataset, column)
    snapshot = snapshot_of(dataset)
    assert snapshot.indexes[0].name == f"{column}_idx"
    assert 0 in true_rows(snapshot, has_any(snapshot, ["a"], column=column))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("nope", "column: got 'nope', takes a column of the table: id, tags, large"),
        ("id", "column: got 'id: int64', takes a list column of elements that are not nested"),
        ("nested", r"got 'nested: list<.*>', takes a list column of elements that are not nested"),
        ("structs", "takes a list column of elements that are not nested"),
        ("vector", "takes a list column of elements that are not nested"),
    ],
)
def test_columns_that_it_does_not_take(
    dataset: lance.LanceDataset, column: str, message: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        create_label_list(dataset, column)
    assert dataset.describe_indices() == []


def test_a_name_is_taken_once(dataset: lance.LanceDataset) -> None:
    create_label_list(dataset, "tags", "labels")
    with pytest.raises(
        InvalidArgumentError, match="name: got 'labels', takes a name that no index"
    ):
        create_label_list(dataset, "large", "labels")
    create_label_list(dataset, "tags", "labels", replace=True)
    (index,) = snapshot_of(dataset).indexes
    assert index.name == "labels"
    with pytest.raises(InvalidArgumentError, match="name: got ''"):
        create_label_list(dataset, "tags", "")


@pytest.mark.parametrize("name", ["", 5])
def test_a_name_is_text(dataset: lance.LanceDataset, name: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="name: got"):
        create_label_list(dataset, "tags", name=name, replace=True)
