"""An index over a table that has changed since: it answers for what it still knows, no more.

Tables with and without stable row ids go through random updates, deletes, appends, merges,
compactions and index updates by pylance. After each step, every fragment that the index
says it covers must be answered as the rows themselves say.
"""

from __future__ import annotations

from collections.abc import Callable
from tempfile import TemporaryDirectory
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from .answers import covered, expected, has_any, snapshot_of, three_values
from .effort import one_in

_LABELS = ["a", "b", "c", None]

Step = Callable[[lance.LanceDataset], None]


def _rows(ids: range, lists: list[list[str | None] | None]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "x": pa.array([0] * len(ids), pa.int64()),
            "tags": pa.array(
                [lists[i % len(lists)] for i in range(len(ids))], pa.list_(pa.string())
            ),
        }
    )


_lists = st.lists(
    st.one_of(st.none(), st.lists(st.sampled_from(_LABELS), max_size=3)), min_size=1, max_size=7
)
_ids = st.sets(st.integers(0, 45), min_size=1, max_size=12).map(sorted)


def _where(ids: list[int]) -> str:
    return f"id IN ({', '.join(map(str, ids))})"


def _steps() -> st.SearchStrategy[tuple[str, Step]]:
    def update(column: str, value: str) -> Callable[[list[int]], tuple[str, Step]]:
        return lambda ids: (
            f"update {column} of {ids}",
            lambda dataset: dataset.update({column: value}, where=_where(ids)) and None,
        )

    def delete(ids: list[int]) -> tuple[str, Step]:
        return f"delete {ids}", lambda dataset: dataset.delete(_where(ids)) and None

    def append(lists: list[list[str | None] | None]) -> tuple[str, Step]:
        rows = _rows(range(40, 46), lists)
        return f"append {lists}", lambda dataset: dataset.insert(rows)

    def merge(ids: list[int], lists: list[list[str | None] | None]) -> tuple[str, Step]:
        rows = _rows(range(len(ids)), lists).set_column(0, "id", pa.array(ids, pa.int64()))

        def run(dataset: lance.LanceDataset) -> None:
            merging = dataset.merge_insert("id").when_matched_update_all()
            merging.when_not_matched_insert_all().execute(rows)

        return f"merge {ids}", run

    def merge_column(ids: list[int], column: str) -> tuple[str, Step]:
        rows = _rows(range(len(ids)), [["b"], None])
        rows = rows.set_column(0, "id", pa.array(ids, pa.int64())).select(["id", column])

        def run(dataset: lance.LanceDataset) -> None:
            dataset.merge_insert("id").when_matched_update_all().execute(rows)

        return f"merge {column} of {ids}", run

    plain: list[tuple[str, Step]] = [
        ("compact", lambda dataset: dataset.optimize.compact_files() and None),
        ("optimize", lambda dataset: dataset.optimize.optimize_indices()),
        ("add segment", lambda d: d.optimize.optimize_indices(num_indices_to_merge=0)),
        ("compact, remap later", _compact_deferring),
        ("add column", lambda dataset: dataset.add_columns({f"y{dataset.version}": "x + 1"})),
        ("rename", _rename_and_back),
    ]
    return st.one_of(
        st.sampled_from(plain),
        _ids.map(update("x", "x + 1")),
        _ids.map(update("tags", "['c', 'b']")),
        _ids.map(delete),
        _lists.map(append),
        st.builds(merge, _ids, _lists),
        st.builds(merge_column, _ids, st.sampled_from(["x", "tags"])),
    )


def _compact_deferring(dataset: lance.LanceDataset) -> None:
    if not dataset.has_stable_row_ids:  # pylance refuses it there
        dataset.optimize.compact_files(defer_index_remap=True)


def _rename_and_back(dataset: lance.LanceDataset) -> None:
    for old, new in (("tags", "labels"), ("labels", "tags")):
        renaming: Any = {"path": old, "name": new}
        dataset.alter_columns(renaming)


def _overlapping(needles: set[str | None]) -> Callable[[list[object]], bool]:
    return lambda elements: not needles.isdisjoint(elements)


def _check(dataset: lance.LanceDataset) -> int:
    snapshot = snapshot_of(dataset)
    for labels, match_null in ((["a"], False), (["b", "c"], False), (["c"], True)):
        query = has_any(snapshot, labels, match_null=match_null)
        needles: set[str | None] = {*labels, None} if match_null else {*labels}
        fragments = covered(snapshot, query)
        assert three_values(snapshot, query) == expected(dataset, fragments, _overlapping(needles))
    return len(fragments)


@pytest.mark.parametrize("stable_row_ids", [False, True])
@one_in(8)
@given(lists=_lists, steps=st.lists(_steps(), min_size=1, max_size=7))
def test_what_is_covered_is_answered_right(
    stable_row_ids: bool,
    lists: list[list[str | None] | None],
    steps: list[tuple[str, Step]],
) -> None:
    with TemporaryDirectory() as folder:
        dataset = lance.write_dataset(
            _rows(range(40), lists),
            folder,
            max_rows_per_file=10,
            enable_stable_row_ids=stable_row_ids,
        )
        dataset.create_scalar_index("tags", "LABEL_LIST")
        for _, step in steps:
            step(lance.dataset(folder))
            _check(lance.dataset(folder))
