"""Upkeep of a label list index: pylance's, and a new one where pylance believes an old claim."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from datafusion_lance.engine import LanceSessionContext
from datafusion_lance.indexes.label_list.upkeep import optimize_label_list
from datafusion_lance.indexes.manifest import IndexSegment, read_indexes

NAME = "labels_idx"


def rows(keys: range, label: str) -> pa.Table:
    labels = pa.array([[label]] * len(keys), pa.list_(pa.string()))
    return pa.table({"key": pa.array(keys, pa.int64()), "labels": labels})


@pytest.fixture(params=[False, True], ids=["addresses", "stable row ids"])
def dataset(tmp_path: Path, request: pytest.FixtureRequest) -> lance.LanceDataset:
    """Two fragments of two rows."""
    made = lance.write_dataset(
        rows(range(4), "old"),
        tmp_path / "t",
        max_rows_per_file=2,
        enable_stable_row_ids=request.param,
    )
    made.create_scalar_index("labels", "LABEL_LIST", name=NAME)
    return made


def segments(dataset: lance.LanceDataset) -> tuple[IndexSegment, ...]:
    (index,) = (i for i in read_indexes(lance.dataset(dataset.uri)) if i.name == NAME)
    return index.segments


def rewrite(dataset: lance.LanceDataset) -> None:
    """Gives the first row another label, in place."""
    changes = rows(range(1), "new")
    fragment, fields = dataset.get_fragments()[0].update_columns(changes, left_on="key")
    operation = lance.LanceOperation.Update(updated_fragments=[fragment], fields_modified=fields)
    lance.LanceDataset.commit(dataset.uri, operation, read_version=dataset.version)


def keys(dataset: lance.LanceDataset, label: str) -> list[int]:
    session = LanceSessionContext()
    session.register_lance("t", dataset.uri)
    frame = session.sql(f"SELECT key FROM t WHERE array_has(labels, '{label}') ORDER BY key")
    return frame.to_pydict()["key"]


def uncovered(dataset: lance.LanceDataset) -> int:
    session = LanceSessionContext()
    session.register_lance("t", dataset.uri)
    (listed,) = session.lance_indexes("t").to_pylist()
    return listed["uncovered_fragments"]


def test_appended_rows_are_indexed_by_pylance_alone(dataset: lance.LanceDataset) -> None:
    lance.write_dataset(rows(range(4, 6), "more"), dataset.uri, mode="append")
    built_over = segments(dataset)[0].dataset_version
    assert uncovered(dataset) == 1

    optimize_label_list(dataset, NAME)

    assert uncovered(dataset) == 0
    assert keys(dataset, "more") == [4, 5]
    assert min(segment.dataset_version for segment in segments(dataset)) == built_over


def test_a_fragment_that_was_rewritten_in_place_is_indexed_again(
    dataset: lance.LanceDataset,
) -> None:
    rewrite(dataset)
    assert uncovered(dataset) == 1

    optimize_label_list(dataset, NAME)

    assert uncovered(dataset) == 0
    assert (keys(dataset, "new"), keys(dataset, "old")) == ([0], [1, 2, 3])


def test_its_old_labels_do_not_come_back_with_a_compaction(dataset: lance.LanceDataset) -> None:
    rewrite(dataset)
    optimize_label_list(dataset, NAME)

    lance.dataset(dataset.uri).optimize.compact_files()

    assert uncovered(dataset) == 0
    assert (keys(dataset, "new"), keys(dataset, "old")) == ([0], [1, 2, 3])


def test_an_index_that_is_up_to_date_is_left_alone(dataset: lance.LanceDataset) -> None:
    rewrite(dataset)
    optimize_label_list(dataset, NAME)
    version, held = dataset.latest_version, segments(dataset)

    optimize_label_list(dataset, NAME)

    assert (dataset.latest_version, segments(dataset)) == (version, held)
