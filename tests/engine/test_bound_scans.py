"""Scans of one table that read through an index beside scans of it that do not."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import DataFrame, SessionContext

from datafusion_lance.engine import LanceSessionContext
from datafusion_lance.engine.dataframe import LanceDataFrame

from ..oracle_rows import Comparison, TwiceStored
from ..plan_shape_tables import memory, session, store_tables

BESIDE = (
    "SELECT shot, tags FROM images WHERE array_has(tags, 'night') AND id NOT IN "
    "(SELECT id FROM images WHERE score > 0.5 AND id IS NOT NULL)"
)
ALIKE = (
    "SELECT a.shot, b.tags FROM images a JOIN images b ON a.shot = b.shot "
    "WHERE array_has(a.tags, 'night') OFFSET 0"
)
IN_SELECT = (
    "SELECT shot, (SELECT count(*) FROM images WHERE array_has(tags, 'sea')) AS seas, "
    "(SELECT max(shot) FROM images) AS last FROM images WHERE score > 0.5"
)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[TwiceStored, ...]:
    return store_tables(tmp_path_factory.mktemp("bound"))


@pytest.fixture(scope="module")
def indexed(tables: tuple[TwiceStored, ...]) -> LanceSessionContext:
    return session(tables, use_indexes=True)


@pytest.fixture(scope="module")
def plain(tables: tuple[TwiceStored, ...]) -> SessionContext:
    return memory(tables)


def frame(context: LanceSessionContext, query: str) -> LanceDataFrame:
    made = context.sql(query)
    assert isinstance(made, LanceDataFrame)
    return made


@pytest.mark.parametrize("query", [BESIDE, IN_SELECT])
def test_only_the_scan_under_the_predicate_is_bound(
    query: str, indexed: LanceSessionContext
) -> None:
    execution = indexed.execution(frame(indexed, query), runs_unchanged=True)

    (bound,) = execution.bound
    assert bound.key is not None


@pytest.mark.parametrize("query", [BESIDE, IN_SELECT])
def test_nothing_is_bound_where_another_plan_may_run(
    query: str, indexed: LanceSessionContext
) -> None:
    """A count reads other columns, by which its scans would be taken for each other."""
    assert not indexed.execution(frame(indexed, query)).bound


def _written(frame: DataFrame, folder: Path) -> int:
    frame.write_parquet(folder / "written")
    return pq.read_table(folder / "written").num_rows


TERMINAL: dict[str, Callable[[DataFrame, Path], int]] = {
    "collect": lambda frame, _: sum(batch.num_rows for batch in frame.collect()),
    "count": lambda frame, _: frame.count(),
    "cache": lambda frame, _: frame.cache().count(),
    "execute_stream": lambda frame, _: sum(
        batch.to_pyarrow().num_rows for batch in frame.execute_stream()
    ),
    "from_stream": lambda frame, _: pa.RecordBatchReader.from_stream(frame).read_all().num_rows,
    "limit": lambda frame, _: frame.limit(10_000).count(),
    "to_pylist": lambda frame, _: len(frame.to_pylist()),
    "write_parquet": _written,
}


@pytest.mark.parametrize("method", TERMINAL)
@pytest.mark.parametrize("query", [BESIDE, ALIKE, IN_SELECT])
def test_each_way_of_running_gives_all_rows(
    query: str,
    method: str,
    indexed: LanceSessionContext,
    plain: SessionContext,
    tmp_path: Path,
) -> None:
    assert TERMINAL[method](indexed.sql(query), tmp_path) == plain.sql(query).count()


def test_threads_bind_their_own_scans(indexed: LanceSessionContext, plain: SessionContext) -> None:
    queries = [BESIDE.replace("night", tag) for tag in ("night", "sea", "car", "dog")] * 8
    expected = {query: plain.sql(query).to_arrow_table() for query in queries}

    with ThreadPoolExecutor(8) as threads:
        answers: list[Any] = list(threads.map(lambda q: indexed.sql(q).to_arrow_table(), queries))

    for query, answer in zip(queries, answers, strict=True):
        assert Comparison().difference(answer, expected[query]) is None


def test_a_table_is_made_although_its_filter_cannot_be_handed_over(
    indexed: LanceSessionContext, plain: SessionContext
) -> None:
    creation = (
        "CREATE OR REPLACE TABLE made AS SELECT shot FROM images "
        "WHERE id IN (NULL, 5) OR array_has(tags, 'sea') AND id IN (NULL, 7)"
    )
    contexts = (indexed, plain)
    for context in contexts:
        context.sql(creation)

    ours, wanted = (context.table("made").to_arrow_table() for context in contexts)

    assert Comparison().difference(ours, wanted) is None
