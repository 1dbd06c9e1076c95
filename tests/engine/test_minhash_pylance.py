"""`minhash_search` against pylance's own MinHashQuery: the same rows at the same distances."""

from __future__ import annotations

import random
import threading
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from datafusion_lance.engine import LanceSessionContext

from .minhash_corpus import Corpus, create_index, found_by_pylance

QUERIES = 250
"""On each of two tables."""

FILTERS = (
    None,
    None,
    "lang = 'de'",
    "lang IS NULL OR id % 3 = 0",
    "array_has(tags, 't3')",
    "id BETWEEN 2000 AND 9000 AND lang <> 'fr'",
    "id < 0",
)


@pytest.fixture(scope="module", params=[False, True], ids=["addresses", "stable row ids"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """10,000 texts in three segments and without index, some deleted, some updated."""
    path = tmp_path_factory.mktemp("pylance") / "docs.lance"
    corpus = Corpus()
    stable = request.param
    lance.write_dataset(
        corpus.rows(0, 4000), path, max_rows_per_file=1500, enable_stable_row_ids=stable
    )
    create_index(path)
    for start, stop in ((4000, 7000), (7000, 9700)):
        lance.write_dataset(corpus.rows(start, stop), path, mode="append")
        lance.dataset(path).optimize.optimize_indices(num_indices_to_merge=0)
    lance.dataset(path).create_scalar_index("tags", "LABEL_LIST")
    lance.write_dataset(corpus.rows(9700, 10_000), path, mode="append", max_rows_per_file=200)
    lance.dataset(path).delete("id % 13 = 4")
    lance.dataset(path).update({"text": "'moved ' || text"}, where="id % 97 = 1")
    segments = {index.name: len(index.segments) for index in lance.dataset(path).describe_indices()}
    assert segments == {"tags_idx": 1, "text_idx": 3}
    return path


@pytest.fixture
def session(table: Path) -> LanceSessionContext:
    session = LanceSessionContext()
    session.register_lance("docs", table, row_id=True)
    return session


def query(session: LanceSessionContext, text: str, limit: int, *rest: str | None) -> pa.Table:
    arguments = [text, str(limit), *rest]
    literals = ", ".join(
        "NULL" if one is None else one if at == 1 else "'" + one.replace("'", "''") + "'"
        for at, one in enumerate(arguments)
    )
    call = f"minhash_search('docs', 'text', {literals})"
    return session.sql(f"SELECT id, _distance, _rowid FROM {call}").to_arrow_table()


def test_random_queries(table: Path, session: LanceSessionContext) -> None:
    dataset, corpus, chosen = lance.dataset(table), Corpus(), random.Random(7)
    found_rows = 0
    for _ in range(QUERIES):
        at = chosen.choice((chosen.randrange(10_000), 3 * chosen.randrange(300)))
        text = corpus.text(at) or "nothing"
        if chosen.random() < 0.3:
            text = f"moved {text}"
        limit = chosen.choice((1, 3, 10, 100, 20_000))
        filter = chosen.choice(FILTERS)
        indexed = chosen.random() < 0.2
        found = query(session, text, limit, filter, "indexed" if indexed else None)
        theirs = found_by_pylance(dataset, text, limit, filter, indexed=indexed)
        distances = found["_distance"].to_pylist()
        assert distances == [distance for _, distance in theirs]
        # Of rows that are equally far, pylance leaves out any at the limit.
        last = distances[-1] if len(distances) == limit else 2.0
        ours = zip(found["id"].to_pylist(), distances, strict=True)
        assert {row for row in ours if row[1] < last} == {row for row in theirs if row[1] < last}
        order = list(zip(distances, found["_rowid"].to_pylist(), strict=True))
        assert order == sorted(order)
        found_rows += len(order)
    assert found_rows > 2 * QUERIES


def test_exhaustive_equals_a_search_of_all_signatures(
    table: Path, session: LanceSessionContext
) -> None:
    """The rows and distances that no index takes part in."""
    plain = LanceSessionContext(use_indexes=False)
    plain.register_lance("docs", table, row_id=True)
    corpus = Corpus()
    for at, filter in ((31, None), (1234, "array_has(tags, 't3')"), (9810, "lang = 'de'")):
        text = corpus.text(at) or ""
        for limit in (1, 7, 3000):
            found = query(session, text, limit, filter, "exhaustive")
            assert found == query(plain, text, limit, filter, "exhaustive")
            assert found == query(plain, text, limit, filter)
            assert found.num_rows == limit or filter is not None


def test_a_search_while_others_search_and_register(session: LanceSessionContext) -> None:
    """Calls look their table up on a thread of their own, and nobody waits for ever."""

    wanted = query(session, "ba be bi", 5, "lang = 'de'")
    stop = threading.Event()
    failures: list[object] = []

    def register() -> None:
        at = 0
        while not stop.is_set():
            session.from_pydict({"x": [1]}, f"other_{at}")
            session.deregister_table(f"other_{at}")
            at += 1

    def search() -> None:
        for _ in range(20):
            if query(session, "ba be bi", 5, "lang = 'de'") != wanted:
                failures.append("other rows")

    registering = threading.Thread(target=register)
    searching = [threading.Thread(target=search) for _ in range(6)]
    for thread in (registering, *searching):
        thread.start()
    for thread in searching:
        thread.join(timedelta(minutes=1).total_seconds())
        assert not thread.is_alive()
    stop.set()
    registering.join()
    assert failures == []
