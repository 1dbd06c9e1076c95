"""A scan is served for the table that it reads, whatever name that table had or has."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from datafusion import DataFrame

from datafusion_lance.engine import LanceSessionContext

OLD = [["a"], ["b"], None, ["a", "b"]]
NEW = [["b"], ["a"], ["a"], []]


def stored(path: Path, tags: list[list[str] | None]) -> str:
    lance.write_dataset(pa.table({"id": range(len(tags)), "tags": tags}), path)
    lance.dataset(path).create_scalar_index("tags", "LABEL_LIST")
    return str(path)


@pytest.fixture
def session(tmp_path: Path) -> LanceSessionContext:
    context = LanceSessionContext()
    context.register_lance("old", stored(tmp_path / "old.lance", OLD))
    context.register_lance("new", stored(tmp_path / "new.lance", NEW))
    return context


def ids(frame: DataFrame) -> list[int]:
    return sorted(frame.to_pydict()["id"])


def test_a_dataframe_keeps_the_table_whose_name_went_to_another(
    session: LanceSessionContext, tmp_path: Path
) -> None:
    frame = session.sql("SELECT id FROM old WHERE array_has(tags, 'a')")
    session.deregister_table("old")
    session.register_lance("old", tmp_path / "new.lance")
    assert ids(frame) == [0, 3]
    assert ids(session.sql("SELECT id FROM old WHERE array_has(tags, 'a')")) == [1, 2]


def test_two_tables_of_one_name_in_one_plan(session: LanceSessionContext, tmp_path: Path) -> None:
    first = session.sql("SELECT id FROM old WHERE array_has(tags, 'a')")
    session.deregister_table("old")
    session.register_lance("old", tmp_path / "new.lance")
    second = session.sql("SELECT id FROM old WHERE array_has(tags, 'b')")
    assert ids(first.union(second)) == [0, 0, 3]


def test_a_name_that_went_to_a_table_in_memory(session: LanceSessionContext) -> None:
    first = session.sql("SELECT id FROM old WHERE array_has(tags, 'a')")
    session.deregister_table("old")
    session.from_pydict({"id": [7, 8], "tags": [["a"], ["b"]]}, name="old")
    second = session.sql("SELECT id FROM old WHERE array_has(tags, 'a')")
    assert ids(second) == [7]
    assert ids(first.union(second)) == [0, 3, 7]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, (SELECT count(*) FROM old) AS n FROM memory WHERE array_has(tags, 'a')",
        "SELECT id FROM memory WHERE array_has(tags, 'a') AND id > (SELECT min(id) FROM old)",
        "SELECT id FROM memory WHERE array_has(tags, 'a') AND id IN (SELECT id + 7 FROM old)",
    ],
)
def test_a_table_in_memory_beside_a_lance_table_in_a_subquery(
    session: LanceSessionContext, query: str
) -> None:
    session.from_pydict({"id": [7, 8], "tags": [["a"], ["b"]]}, name="memory")
    assert ids(session.sql(query)) == [7]


def test_a_refreshed_table_and_the_dataframe_that_was_built_before(
    session: LanceSessionContext, tmp_path: Path
) -> None:
    frame = session.sql("SELECT id FROM old WHERE array_has(tags, 'a')")
    lance.write_dataset(
        pa.table({"id": [9], "tags": [["a"]]}), tmp_path / "old.lance", mode="append"
    )
    session.refresh("old")
    assert ids(frame) == [0, 3]
    assert ids(session.sql("SELECT id FROM old WHERE array_has(tags, 'a')")) == [0, 3, 9]
    assert ids(session.table("old").join(frame, "id", how="anti")) == [1, 2, 9]
