"""One session under many threads, within its limits of memory and open files."""

from __future__ import annotations

import gc
import random
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from datafusion import RecordBatchStream, SessionConfig

from datafusion_lance.engine import LanceSessionContext

from .oracle.asking import Failed, Statement, compare, frame_of
from .oracle.exploring import moments_of
from .oracle.pools import draw_pools, draw_statement
from .oracle.situations import Sessions, Situation
from .oracle.worlds import draw_world

THREADS = 32
LIMIT = 180.0
"""Seconds after which threads count as stuck."""


@pytest.fixture(scope="module", params=[3, 29, 58])
def asked(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Sessions, list[tuple[Statement, pa.Table]]]:
    """A world of the oracle, and statements with the answers that plain DataFusion gives."""
    world = draw_world(request.param)
    draw = random.Random(request.param)
    situation = Situation(world, tmp_path_factory.mktemp("world"))
    sessions = situation.at([m for m in moments_of(world) if m.past is None][-1])
    pools = draw_pools(draw, sessions)
    answers: list[tuple[Statement, pa.Table]] = []
    while len(answers) < 60:
        statement = draw_statement(draw, pools, sessions)
        if statement.shape.setup:
            continue  # names that all threads share
        frame = frame_of(statement.shape, statement.text(in_memory=True), sessions.memory)
        try:
            answers.append((statement, frame.to_arrow_table()))
        except Exception:
            continue
    return sessions, answers


def everywhere(run: Callable[[int], Any]) -> list[Any]:
    """What `run` gives for each of 32 numbers, in as many threads that begin together."""
    started = threading.Barrier(THREADS)

    def begin(number: int) -> Any:
        started.wait()
        return run(number)

    pool = ThreadPoolExecutor(THREADS)
    try:
        futures = [pool.submit(begin, number) for number in range(THREADS)]
        end = time.monotonic() + LIMIT
        return [future.result(timeout=max(0.1, end - time.monotonic())) for future in futures]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files in /proc")
def test_mixed_statements_on_32_threads(
    asked: tuple[Sessions, list[tuple[Statement, pa.Table]]],
) -> None:
    sessions, statements = asked
    before, most = open_files(), []

    def ask(number: int) -> list[str]:
        draw = random.Random(number)
        differences = []
        for statement, expected in draw.sample(statements, 12):
            text = statement.text(in_memory=False)
            try:
                actual = frame_of(statement.shape, text, sessions.indexed).to_arrow_table()
            except Exception as error:
                actual = Failed(str(error))
            difference = compare(actual, expected, ordered=statement.shape.ordered)
            if difference is not None:
                differences.append(f"{text}\n{difference}")
            most.append(open_files())
        return differences

    found = [one for differences in everywhere(ask) for one in differences]
    assert not found, found[0]
    # Statements in flight hold some, too.
    assert max(most) - before < 128 + 16 * THREADS
    gc.collect()
    assert open_files() - before <= 128 + 2 * 32


# -- memory -----------------------------------------------------------------------------------

ROWS = 60_000


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three fragments; every second row has the tag `even`, every hundredth `rare`."""
    path = tmp_path_factory.mktemp("images") / "t.lance"
    tags = [
        ["even"] * (n % 2 == 0) + ["rare"] * (n % 100 == 0) + [f"t{n % 500}"] for n in range(ROWS)
    ]
    rows = pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "text": [f"some text of row {n}" * 3 for n in range(ROWS)],
            "tags": tags,
        }
    )
    dataset = lance.write_dataset(rows, path, max_rows_per_file=ROWS // 3)
    dataset.create_scalar_index("tags", "LABEL_LIST")
    return path


@pytest.mark.parametrize("cache_bytes", [0, 20_000, 300_000])
def test_the_cache_keeps_within_its_limit(images: Path, cache_bytes: int) -> None:
    session = LanceSessionContext(cache_bytes=cache_bytes)
    session.register_lance("t", images)
    cache = session._cache
    seen: list[tuple[int, int]] = []

    def ask(number: int) -> None:
        draw = random.Random(number)
        for _ in range(6):
            tag = draw.randrange(500)
            found = session.sql(f"SELECT id FROM t WHERE array_has(tags, 't{tag}')").to_pydict()
            assert found == {"id": [*range(tag, ROWS, 500)]}
            seen.append((cache.nbytes, cache.open_files))

    everywhere(ask)
    assert max(nbytes for nbytes, _ in seen) <= cache_bytes
    assert max(files for _, files in seen) <= cache.open_file_limit
    if cache_bytes:
        assert max(nbytes for nbytes, _ in seen) > 0


def first_batch(session: LanceSessionContext, query: str) -> tuple[RecordBatchStream, Any]:
    """A stream that has given one batch, and what its index scan has found, as a weak reference."""
    frame: Any = session.sql(query)
    stream = frame.execute_stream()
    assert next(iter(stream)).to_pyarrow().num_rows > 0
    (scan,) = frame._last.searches
    return stream, weakref.ref(scan)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT text FROM t WHERE array_has(tags, 'even')",
        "SELECT id, text FROM t WHERE array_has(tags, 'rare')",
        "SELECT l.id, r.text FROM t l JOIN t r ON l.id = r.id WHERE array_has(l.tags, 'even')",
        "SELECT s, count(*) AS n FROM (SELECT text AS s FROM t WHERE array_has(tags, 'even')) "
        "GROUP BY ROLLUP (s)",
    ],
)
def test_a_stream_that_is_dropped_half_way_frees_what_it_held(images: Path, query: str) -> None:
    # With several, DataFusion 55 keeps the plan of every third grouping whose stream is dropped,
    # over any table.
    config = SessionConfig().with_target_partitions(1).with_batch_size(64)
    session = LanceSessionContext(config, cache_bytes=0)
    session.register_lance("t", images)
    first_batch(session, query)
    gc.collect()
    settled(lambda: pa.total_allocated_bytes())
    before = pa.total_allocated_bytes()
    for _ in range(4):
        stream, scan = first_batch(session, query)
        del stream
        gc.collect()
        assert eventually(lambda scan=scan: scan() is None)
    assert eventually(lambda: pa.total_allocated_bytes() <= before + 1_000_000)
    assert session.sql("SELECT count(*) AS n FROM t WHERE array_has(tags, 'rare')").to_pydict() == {
        "n": [ROWS // 100]
    }


def eventually(holds: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Whether it holds within that time: a query that is dropped ends on its own threads."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
        gc.collect()
    return True


def settled(value: Callable[[], int]) -> None:
    """Waits until the value stays as it is."""
    last = -1
    while (now := value()) != last:
        last = now
        time.sleep(0.05)


def test_dropped_streams_on_32_threads(images: Path) -> None:
    session = LanceSessionContext()
    session.register_lance("t", images)
    session.sql("SET datafusion.execution.batch_size = 64")

    def ask(number: int) -> int:
        query = "SELECT text FROM t WHERE array_has(tags, 'even')"
        if number % 2:
            return session.sql(query).count()
        for _ in range(5):
            stream = iter(session.sql(query).execute_stream())
            next(stream)
            del stream
        return ROWS // 2

    assert set(everywhere(ask)) == {ROWS // 2}
