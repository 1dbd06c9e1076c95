"""Table functions that are called wrongly, or on tables and indexes that do not serve them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from datafusion import SessionConfig

from datafusion_lance.engine import (
    CorruptIndexError,
    InvalidArgumentError,
    LanceIndexError,
    LanceSessionContext,
    UnusableIndexError,
    minhash_binding,
)
from datafusion_lance.indexes.minhash_lsh.parameters import MinHashParameters

from .minhash_corpus import (
    QUERY,
    Corpus,
    create_index,
    ids,
    search,
    select,
    session_of,
    write_copies,
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_copies(tmp_path_factory.mktemp("search") / "docs.lance")


@pytest.fixture(scope="module")
def session(path: Path) -> LanceSessionContext:
    return session_of(path)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("minhash_search()", "minhash_search: got '0 arguments', takes (table, column, text, lim"),
        ("minhash_search('docs', 'text', 'a')", "got '3 arguments'"),
        ("minhash_search('docs', 'text', 'a', 1, NULL, NULL, 1)", "got '7 arguments'"),
        (search(-1), "limit: got -1, takes a whole number, 0 or more"),
        (search("1.5"), "limit: got 1.5,"),
        (search("NULL"), "limit: got None,"),
        (search("'1'"), "limit: got '1',"),
        (search("true"), "limit: got True,"),
        (search(1, text="5"), "text: got 5, takes a text or NULL"),
        (search(1, text="$1"), "text: got '$1', takes a literal in minhash_search; columns and"),
        (search(1, text="id"), "minhash_distance(text, query)"),
        (search(1, text="(SELECT 'a')"), "takes a literal"),
        (search("random()"), "limit: got 'random()', takes a literal"),
        ("minhash_search('nope', 'text', 'a', 1)", "table: got 'nope', takes the name of a table"),
        ("minhash_search('a b', 'text', 'a', 1)", "table: got 'a b', takes the name of a table"),
        ("minhash_search('', 'text', 'a', 1)", "table: got '', takes the name of a table"),
        ("minhash_search('numbers', 'text', 'a', 1)", "table: got 'numbers', takes the name"),
        ("minhash_search(NULL, 'text', 'a', 1)", "table: got None, takes a text"),
        (
            search(1, column="id"),
            "column: got 'id', takes a text column of docs ('lang', 'text', '",
        ),
        (search(1, column="TEXT"), "column: got 'TEXT', takes a text column"),
        (
            search(1, "'nope = 1'"),
            "filter: got 'nope = 1', takes a predicate on the columns of doc",
        ),
        (search(1, "'id'"), "filter: got 'id'"),
        (search(1, "''"), "filter: got ''"),
        (search(1, "'id = 1; SELECT 1'"), "filter: got 'id = 1; SELECT 1'"),
        (search(1, "'count(*) > 1'"), "filter: got 'count(*) > 1'"),
        (search(1, "'id = $1'"), "filter: got 'id = $1'"),
        (search(1, "'id = (SELECT 1)'"), "takes no subqueries"),
        (search(1, "'any_element(d, ''nope = 1'')'"), "nope is none of them"),
        (search(1, "5"), "filter: got 5, takes a text or NULL"),
        (search(1, "NULL", "'fast'"), "mode: got 'fast', takes one of approximate, indexed, exha"),
        (search(1, "NULL", "5"), "mode: got 5, takes a text or NULL"),
        (
            search(1, "NULL", "'indexed'", column="plain"),
            "mode: got 'indexed', takes a column with a MinHash index; create_lance_index('docs', "
            "'plain', 'MINHASHLSH') builds one",
        ),
    ],
)
def test_bad_arguments_are_errors_when_the_statement_is_planned(
    session: LanceSessionContext, call: str, message: str
) -> None:
    other = LanceSessionContext.wrap(session.undisclosed)
    if not other.table_exist("numbers"):
        other.from_pydict({"text": ["a"]}, "numbers")
    for sql in (f"SELECT * FROM {call}", f"CREATE VIEW v AS SELECT * FROM {call}"):
        with pytest.raises(InvalidArgumentError) as caught:
            other.sql(sql)
        assert message in str(caught.value)
    # A session that is not this package's tells the same in DataFusion's own error.
    with pytest.raises(Exception, match="InvalidArgumentError"):
        other.plain.sql(f"SELECT * FROM {call}")


def test_a_placeholder_is_no_literal_even_where_it_has_a_value(
    session: LanceSessionContext,
) -> None:
    with pytest.raises(InvalidArgumentError, match=r"text: got '\$q', takes a literal"):
        session.sql(select(1, text="$q"), param_values={"q": QUERY})
    found = session.sql(select(1, text="$q"), q=f"'{QUERY}'")
    assert found.to_pydict() == {"id": [0]}


def test_an_error_of_another_kind_is_not_taken_for_one_of_a_call(
    session: LanceSessionContext,
) -> None:
    with pytest.raises(Exception, match="No field named nope") as caught:
        session.sql(f"SELECT nope FROM {search(1)}")
    assert not isinstance(caught.value, LanceIndexError)


def test_a_table_with_a_distance_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "docs.lance"
    lance.write_dataset(pa.table({"text": ["a"], "_distance": [1]}), path)
    with pytest.raises(InvalidArgumentError, match="a table without a column _distance"):
        session_of(path).sql(f"SELECT * FROM {search(1)}")


def test_an_index_that_cannot_be_used(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(index: Any) -> MinHashParameters:
        raise UnusableIndexError(index.name, "it is too new")

    monkeypatch.setattr(minhash_binding, "parameters_of", refuse)
    with pytest.raises(UnusableIndexError, match="index 'text_idx' cannot be used: it is too new"):
        session_of(path).sql(f"SELECT * FROM {search(1)}")
    assert ids(session_of(path, use_indexes=False), select(2)) == [0, 1]


def test_a_damaged_index_is_an_error_of_its_own(path: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(path, tmp_path / "copy"))
    (bands,) = (copy / "_indices").glob("*/bands.lance")
    bands.write_bytes(bands.read_bytes()[:100])
    session = session_of(copy)
    frame = session.sql(select(2))
    for run in (
        frame.collect,
        frame.count,
        lambda: list(frame.execute_stream()),
        lambda: session.sql(f"CREATE TABLE x AS SELECT id FROM {search(2)}"),
        lambda: session.sql(f"EXPLAIN ANALYZE SELECT id FROM {search(2)}").collect(),
    ):
        with pytest.raises(CorruptIndexError, match=r"bands\.lance"):
            run()
    assert ids(session_of(copy, use_indexes=False), select(2)) == [0, 1]


def test_a_filter_that_fails_on_a_row(session: LanceSessionContext) -> None:
    failing = session.sql(select(9, "'CAST(text AS INT) = 1'"))
    with pytest.raises(Exception, match="Cast error"):
        failing.collect()
    # Rows that are no candidates are not looked at.
    fine = search(9, "'CAST(lang AS INT) = 1'", text="'other words altogether'")
    assert ids(session, f"SELECT id FROM {fine}") == []


def test_deleted_and_empty_tables(tmp_path: Path) -> None:
    path = tmp_path / "docs.lance"
    lance.write_dataset(Corpus().rows(0, 50), path)
    create_index(path)
    lance.dataset(path).delete("true")
    session = session_of(path)
    for rest in ((), ("'id > 1'",), ("NULL", "'exhaustive'"), ("NULL", "'indexed'")):
        assert ids(session, select(5, *rest)) == []


def test_names_of_tables(path: Path) -> None:
    session = LanceSessionContext(SessionConfig().with_information_schema(True))
    session.sql("CREATE SCHEMA other")
    session.register_lance('other."It\'s"', path)
    call = search(2, "'lang = ''en'''").replace("'docs'", "'other.\"It''s\"'")
    assert ids(session, f"SELECT id FROM {call}") == [1, 3]
