"""Filters that DataFusion cannot hand to a table give the answer all the same."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from datafusion import SessionContext

from datafusion_lance.engine import LanceSessionContext

ROWS = pa.table({"id": [1, 5, None], "n": [1, 2, 3], "tags": [["a"], ["b"], ["a"]]})


@pytest.fixture(params=[True, False], ids=["indexes", "no indexes"])
def session(request: pytest.FixtureRequest, tmp_path: Path) -> LanceSessionContext:
    dataset = lance.write_dataset(ROWS, tmp_path / "t.lance")
    dataset.create_scalar_index("tags", "LABEL_LIST")
    context = LanceSessionContext(use_indexes=request.param)
    context.register_lance("t", tmp_path / "t.lance")
    return context


@pytest.fixture
def memory() -> SessionContext:
    context = SessionContext()
    context.register_record_batches("t", [ROWS.to_batches()])
    return context


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM t WHERE id IN (NULL, 5)",
        "SELECT id FROM t WHERE id NOT IN (NULL, 5)",
        "SELECT id FROM t WHERE CAST(NULL AS BOOLEAN) AND n < 2",
        "SELECT id FROM t WHERE id IN (NULL, 5) AND array_has(tags, 'b')",
        "SELECT a.id FROM t a JOIN t b ON a.id = b.id "
        "WHERE a.id IN (NULL, 1) AND array_has(a.tags, 'a')",
    ],
)
def test_a_null_among_the_values(
    query: str, session: LanceSessionContext, memory: SessionContext
) -> None:
    expected = memory.sql(query).to_pydict()
    frame = session.sql(query)
    assert frame.to_pydict() == expected
    assert frame.count() == len(expected["id"])
    assert pa.table(frame).to_pydict() == expected
    assert [r for b in frame.execute_stream() for r in b.to_pyarrow().to_pylist()] == [
        {"id": value} for value in expected["id"]
    ]
    frame.show()
    frame.explain()
    assert session.sql(f"EXPLAIN {query}").to_pylist()


def test_the_session_goes_on_pushing_filters_down(session: LanceSessionContext) -> None:
    session.sql("SELECT id FROM t WHERE id IN (NULL, 5)").collect()
    plan = session.sql("SELECT id FROM t WHERE id = 5").optimized_logical_plan()
    assert "full_filters=[t.id = Int64(5)]" in plan.display_indent()
