"""Tables in an object store: all that is done with local ones, and what it costs in requests."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from datafusion_lance.engine import (
    InvalidArgumentError,
    LanceSessionContext,
    MissingIndexFileError,
    build_segment,
    commit_segments,
)
from datafusion_lance.indexes.dataset_files import DatasetFiles
from datafusion_lance.indexes.leftovers import KEPT_SECONDS, MARK, remove_leftovers
from datafusion_lance.indexes.list_element import btree

from .cli.command import Command, command
from .object_store import Asked, ObjectStore, store

__all__ = ["command", "store"]

MANY, FEW = 20_000, 600
MINHASH: dict[str, Any] = {"num_hashes": 64, "num_bands": 16, "shingle_size": 2}


def rows(start: int, count: int) -> pa.Table:
    every = range(start, start + count)
    structs = pa.list_(pa.struct({"label": pa.string(), "n": pa.int64()}))
    return pa.table(
        {
            "id": pa.array(every, pa.int64()),
            "tags": [None if i % 11 == 0 else [f"a{i % 7}", f"b{i % 500}"] for i in every],
            "d": pa.array(
                [
                    [{"label": f"l{i * 7919 % 3000}", "n": i % 100}, {"label": "all", "n": i}]
                    for i in every
                ],
                structs,
            ),
            "text": [f"w{i % 40} of {i % 41} and {i * 31 % 977} in {i * 17 % 991}" for i in every],
        }
    )


TEXT = rows(123, 1)["text"][0].as_py()
QUERIES = {
    "array_has": "array_has(tags, 'b3')",
    "not array_has": "array_has_any(tags, ['b3', 'b77']) AND NOT array_has(tags, 'a1')",
    "any_element": "any_element(d, 'label = ''l77''')",
    "many keys": "any_element(d, 'label IN (''l7'', ''l1000'', ''l2500'') AND n < 60')",
    "close": f"minhash_distance(text, '{TEXT}', 64, 16, 2) <= 0.1",
    "not so close": f"minhash_distance(text, '{TEXT}', 64, 16, 2) <= 0.6",
}
SEARCH = f"SELECT id, _distance FROM minhash_search('t', 'text', '{TEXT}', 5)"


@dataclass(frozen=True, slots=True)
class Table:
    """A table in the store."""

    store: ObjectStore
    uri: str

    @classmethod
    def written(cls, store: ObjectStore, name: str, count: int) -> Table:
        """A new one of three fragments."""
        table = cls(store, store.uri(name))
        table.write(rows(0, count), max_rows_per_file=-(-count // 3))
        return table

    def write(self, data: pa.Table, **options: Any) -> None:
        lance.write_dataset(data, self.uri, storage_options=dict(self.store.options), **options)

    def session(self, *, use_indexes: bool = True) -> LanceSessionContext:
        session = LanceSessionContext(use_indexes=use_indexes)
        session.register_lance("t", self.uri, storage_options=self.store.options)
        return session

    @property
    def dataset(self) -> lance.LanceDataset:
        return lance.dataset(self.uri, storage_options=dict(self.store.options))

    @property
    def files(self) -> DatasetFiles:
        return DatasetFiles.at(self.dataset, self.uri)

    def of_indexes(self) -> list[str]:
        return self.files.list("_indices")


def index_all(session: LanceSessionContext) -> None:
    session.create_lance_index("t", "tags", "LABEL_LIST")
    session.create_lance_index("t", "d", "LIST_ELEMENT", keys=["label", "n"])
    session.create_lance_index("t", "text", "MINHASHLSH", **MINHASH)


@pytest.fixture(scope="module")
def large(store: ObjectStore) -> Table:
    """Its index files are larger than what the opening of a file reads. Nobody changes it."""
    table = Table.written(store, "large.lance", MANY)
    index_all(table.session())
    return table


def ids(session: LanceSessionContext, where: str) -> list[int]:
    return sorted(session.sql(f"SELECT id FROM t WHERE {where}").to_pydict()["id"])


def plan(session: LanceSessionContext, statement: str) -> str:
    return "\n".join(session.sql(statement).to_pydict()["plan"])


# -- answers -----------------------------------------------------------------------------


@pytest.mark.parametrize("where", QUERIES.values(), ids=QUERIES.keys())
def test_an_index_answers_as_a_scan_does(large: Table, where: str) -> None:
    session = large.session()
    assert "IndexScan:" in plan(session, f"EXPLAIN SELECT id FROM t WHERE {where}")
    expected = ids(large.session(use_indexes=False), where)
    assert expected
    assert ids(session, where) == expected
    assert ids(session, where) == expected


def test_a_search_for_near_duplicates(large: Table) -> None:
    found = large.session().sql(SEARCH).to_pydict()
    assert (found["id"][0], found["_distance"][0]) == (123, 0.0)
    nearest = f"SELECT id FROM t ORDER BY minhash_distance(text, '{TEXT}', 64, 16, 2), id LIMIT 40"
    expected = large.session(use_indexes=False).sql(nearest).to_pydict()
    assert large.session().sql(nearest).to_pydict() == expected


def test_pages_far_from_each_other_are_read_by_several_readers(
    large: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(btree, "_GAP_OF_STORE", 0)
    where = "any_element(d, 'label IN (''l1'', ''l1500'', ''l2000'', ''l2500'', ''l2999'')')"
    expected = ids(large.session(use_indexes=False), where)
    session = LanceSessionContext(cache_bytes=0)
    session.register_lance("t", large.uri, storage_options=large.store.options)
    assert ids(session, where) == expected
    assert ids(session, where) == expected


# -- making and keeping indexes ----------------------------------------------------------

CREATE = {
    "tags": "CREATE INDEX ON t USING label_list (tags)",
    "d": "CREATE INDEX ON t USING list_element (d.label, d.n)",
    "text": "CREATE INDEX ON t USING minhash_lsh (text) "
    "WITH (num_hashes = 64, num_bands = 16, shingle_size = 2)",
}


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable row ids"])
def test_indexes_are_made_listed_kept_up_checked_and_dropped(
    store: ObjectStore, stable: bool
) -> None:
    table = Table(store, store.uri(f"kept {stable}.lance"))
    table.write(rows(0, FEW), max_rows_per_file=200, enable_stable_row_ids=stable)
    session = table.session()
    for statement in CREATE.values():
        session.sql(statement)
    table.write(rows(FEW, 100), mode="append")
    session.refresh("t")
    table.dataset.delete("id % 10 = 3")
    session.refresh("t")
    listed = session.sql("SHOW INDEXES FROM t").to_pylist()
    assert sorted(row["name"] for row in listed) == ["d_idx", "tags_idx", "text_idx"]
    plain = table.session(use_indexes=False)
    assert [ids(session, q) for q in QUERIES.values()] == [ids(plain, q) for q in QUERIES.values()]

    session.optimize_lance_index("t")

    for column, where in zip(
        ("tags", "d", "text"), ("array_has", "any_element", "not so close"), strict=True
    ):
        explained = plan(session, f"EXPLAIN SELECT id FROM t WHERE {QUERIES[where]}")
        assert "IndexScan:" in explained
        assert "uncovered_fragments" not in explained
        assert session.check_lance_index("t", f"{column}_idx", progress=False).sound
    assert [ids(session, q) for q in QUERIES.values()] == [ids(plain, q) for q in QUERIES.values()]
    for column in CREATE:
        session.sql(f"DROP INDEX {column}_idx ON t")
    assert session.lance_indexes("t").to_pylist() == []
    assert [ids(session, q) for q in QUERIES.values()] == [ids(plain, q) for q in QUERIES.values()]


def test_new_rows_of_a_label_list_index_become_a_segment_until_they_are_too_many(
    store: ObjectStore,
) -> None:
    table = Table.written(store, "upkeep.lance", 6 * FEW)
    session = table.session()
    session.sql(CREATE["tags"])
    plain = table.session(use_indexes=False)
    segments: list[int] = []
    for number in range(9):
        table.write(rows((6 + number) * FEW, 50), mode="append")
        store.asked()
        session.optimize_lance_index("t", "tags_idx")
        if number < 7:
            assert len([one for one in store.asked() if one.path.endswith(".lance")]) <= 20
        segments += session.lance_indexes("t").to_pydict()["segments"]
    assert segments == [2, 3, 4, 5, 6, 7, 8, 1, 2]
    assert session.check_lance_index("t", "tags_idx", progress=False).sound
    plain.refresh("t")
    for where in (QUERIES["array_has"], QUERIES["not array_has"]):
        assert "uncovered_fragments" not in plan(session, f"EXPLAIN SELECT id FROM t WHERE {where}")
        assert ids(session, where) == ids(plain, where)
    version = table.dataset.version
    session.optimize_lance_index("t", "tags_idx")
    assert table.dataset.version == version


@pytest.mark.parametrize(
    ("column", "kind", "parameters"),
    [
        ("tags", "LABEL_LIST", {}),
        ("d", "LIST_ELEMENT", {"keys": ["label", "n"], "progress": False}),
        ("text", "MINHASHLSH", MINHASH),
    ],
)
def test_segments_are_built_apart_and_committed_together(
    store: ObjectStore, column: str, kind: str, parameters: dict[str, Any]
) -> None:
    table = Table.written(store, f"parts {column}.lance", FEW)
    options = table.store.options
    built = [
        build_segment(table.uri, column, kind, part, storage_options=options, **parameters)
        for part in ([0], [1, 2])
    ]
    assert sum(path.endswith(MARK) for path in table.of_indexes()) == 2
    commit_segments(table.uri, built, storage_options=options)
    assert not [path for path in table.of_indexes() if path.endswith(MARK)]
    session = table.session()
    assert session.check_lance_index("t", f"{column}_idx", progress=False).sound
    where = {"tags": "array_has", "d": "any_element", "text": "not so close"}[column]
    assert "IndexScan:" in plan(session, f"EXPLAIN SELECT id FROM t WHERE {QUERIES[where]}")
    assert ids(session, QUERIES[where]) == ids(table.session(use_indexes=False), QUERIES[where])


def test_segments_are_asked_at_once_and_counted_together(store: ObjectStore) -> None:
    table = Table.written(store, "segments.lance", 3 * FEW)
    for column, kind, parameters in (
        ("tags", "LABEL_LIST", {}),
        ("d", "LIST_ELEMENT", {"keys": ["label", "n"], "progress": False}),
        ("text", "MINHASHLSH", MINHASH),
    ):
        options = store.options
        built = [
            build_segment(table.uri, column, kind, [part], storage_options=options, **parameters)
            for part in range(3)
        ]
        commit_segments(table.uri, built, storage_options=options)
    plain = table.session(use_indexes=False)
    for name, where in QUERIES.items():
        cost = Cost.of(table.session(), QUERIES_AND_SEARCH[name], store)
        requests, _ = cost.seen("_indices")
        assert requests <= cost.said["requests"] <= requests + 3
        assert ids(table.session(), where) == ids(plain, where)


KILLED = """
import json, os, sys, lance
from datafusion_lance.indexes.list_element import builder
inner = builder.write_btree
def killed(*arguments):
    inner(*arguments)
    os._exit(9)
builder.write_btree = killed
dataset = lance.dataset(sys.argv[1], storage_options=json.loads(sys.argv[2]))
builder.create_list_element(dataset, "d", ["label"])
"""


def test_what_a_killed_build_left_is_removed_once_it_is_old(store: ObjectStore) -> None:
    table = Table.written(store, "killed.lance", FEW)
    arguments = [KILLED, table.uri, json.dumps(dict(store.options))]
    assert subprocess.run([sys.executable, "-c", *arguments], check=False).returncode == 9
    left = table.of_indexes()
    assert {path.rsplit("/")[-1] for path in left} == {MARK, "page_data.lance", "page_lookup.lance"}

    # What it has sent may be under way after its end.
    assert remove_leftovers(table.dataset) == ()
    (mark,) = (path for path in left if path.endswith(MARK))
    made, _, owner = table.files.read(mark).decode().partition(" ")
    table.files.write(mark, f"{int(made) - KEPT_SECONDS - 60} {owner}".encode())

    assert remove_leftovers(table.dataset) == (mark.split("/")[-2],)
    assert table.of_indexes() == []


def test_a_build_that_fails_leaves_nothing(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table.written(store, "fails.lance", FEW)

    def failing(*_: object, **__: object) -> None:
        raise OSError("no commit")

    monkeypatch.setattr(lance.LanceDataset, "commit", failing)
    with pytest.raises(OSError, match="no commit"):
        table.session().create_lance_index("t", "d", "LIST_ELEMENT", keys=["label"])
    assert table.of_indexes() == []


def test_create_external_table_takes_the_options(large: Table) -> None:
    session = LanceSessionContext()
    options = ", ".join(f"{name} '{value}'" for name, value in large.store.options.items())
    session.sql(
        f"CREATE EXTERNAL TABLE t STORED AS LANCE LOCATION '{large.uri}' OPTIONS ({options})"
    )
    where = QUERIES["array_has"]
    assert "IndexScan:" in plan(session, f"EXPLAIN SELECT id FROM t WHERE {where}")
    assert ids(session, where) == ids(large.session(), where)


def test_the_command_line_takes_the_options(store: ObjectStore, command: Command) -> None:
    table = Table.written(store, "commanded.lance", FEW)
    options = [
        part
        for name, value in store.options.items()
        for part in ("--storage-option", f"{name}={value}")
    ]
    command.succeed("create-index", *options, table.uri, "tags")
    command.succeed("create-index", *options, table.uri, "d", "-k", "label", "-k", "n")
    command.succeed("create-index", *options, table.uri, "text", "--kind", "minhash-lsh")
    assert "tags_idx" in command.succeed("indexes", *options, table.uri).out
    table.write(rows(FEW, 50), mode="append")
    command.succeed("optimize", *options, table.uri)
    assert "NOT SOUND" not in command.succeed("check", *options, table.uri).out
    query = f"SELECT count(*) AS n FROM commanded WHERE {QUERIES['any_element']}"
    found = command.succeed("sql", *options, "--format", "csv", "-t", table.uri, query)
    assert found.lines[0] == '"n"'
    explained = command.succeed("explain", *options, "--analyze", "-t", table.uri, query).out
    assert "IndexScan:" in explained
    assert "requests=" in explained
    for name in ("bitmap_page_lookup", "page_data", "page_lookup", "signatures", "bands"):
        (path, *_) = (path for path in table.of_indexes() if path.endswith(f"{name}.lance"))
        assert command.succeed("inspect", *options, f"{table.uri}/{path}").out
    command.succeed("drop-index", *options, table.uri, "d_idx")


# -- errors ------------------------------------------------------------------------------


def test_an_index_file_that_is_gone_is_named(store: ObjectStore) -> None:
    table = Table.written(store, "gone.lance", FEW)
    session = table.session()
    index_all(session)
    for path in table.of_indexes():
        table.files.delete(path)
    for where, name in (
        ("array_has", "bitmap_page_lookup"),
        ("any_element", "page_lookup"),
        ("close", "signatures"),
    ):
        with pytest.raises(MissingIndexFileError, match=rf"s3://.*{name}\.lance"):
            ids(session, QUERIES[where])


def test_a_table_that_is_not_there_is_named(store: ObjectStore) -> None:
    session = LanceSessionContext()
    with pytest.raises(InvalidArgumentError, match="nowhere"):
        session.register_lance("t", store.uri("nowhere.lance"), storage_options=store.options)


# -- what a query costs ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cost:
    """What EXPLAIN ANALYZE says of requests, and what the server has seen of them."""

    said: dict[str, int]
    asked: list[Asked]

    @classmethod
    def of(cls, session: LanceSessionContext, query: str, store: ObjectStore) -> Cost:
        store.asked()
        text = plan(session, f"EXPLAIN ANALYZE {query}")
        said = {name: int(n) for name, n in re.findall(r"(\w*request(?:s|ed))=(\d+)", text)}
        return cls(said, store.asked())

    def seen(self, folder: str) -> tuple[int, int]:
        """How many requests there were for files in a folder of the table, and their bytes."""
        found = [one for one in self.asked if f"/{folder}/" in one.path]
        return len(found), sum(one.sent for one in found)


MOST_REQUESTS = {
    "array_has": 9,
    "not array_has": 14,
    "any_element": 8,
    "many keys": 8,
    "close": 40,
    "not so close": 20,
    "search": 40,
}
"""A cold search: opening a file takes three, or two, and each read of a column of it two."""

QUERIES_AND_SEARCH = {
    **{name: f"SELECT id FROM t WHERE {where}" for name, where in QUERIES.items()},
    "search": SEARCH,
}


@pytest.mark.parametrize("name", QUERIES_AND_SEARCH)
def test_explain_analyze_says_what_the_server_was_asked_for(large: Table, name: str) -> None:
    query, session = QUERIES_AND_SEARCH[name], large.session()
    cold = Cost.of(session, query, large.store)
    requests, sent = cold.seen("_indices")
    # Two parts of a file that lie near each other are asked for at once.
    assert requests <= cold.said["requests"] <= min(requests + 1, MOST_REQUESTS[name])
    # Of values of different lengths whole chunks are read, and counted are the values.
    assert 0.7 * sent <= cold.said["bytes_requested"] <= 1.2 * sent
    of_data = [one for one in cold.asked if "/data/" in one.path and one.method == "GET"]
    assert len(of_data) == cold.said["fetch_requests"] <= 9
    assert sum(one.sent for one in of_data) == cold.said["fetch_bytes_requested"]
    of_table = [one for one in cold.asked if "/_versions/" in one.path]
    assert len(of_table) <= 4
    assert len(cold.asked) == requests + len(of_data) + len(of_table)

    warm = Cost.of(session, query, large.store)
    assert warm.said["requests"] == warm.said["bytes_requested"] == 0
    assert warm.seen("_indices") == (0, 0)
    # A column that has been read often enough is now read whole.
    assert len(warm.asked) == warm.said["fetch_requests"] <= 9


def test_a_column_that_is_read_again_and_again_costs_nothing_at_last(large: Table) -> None:
    session, query = large.session(), QUERIES_AND_SEARCH["array_has"]
    for _ in range(50):
        if not Cost.of(session, query, large.store).asked:
            break
    else:
        pytest.fail("it is still asked for")


@pytest.mark.parametrize(("column", "most"), [("tags", 30), ("d", 45), ("text", 45)])
def test_a_check_reads_many_pages_at_once(large: Table, column: str, most: int) -> None:
    session = large.session()
    large.store.asked()
    assert session.check_lance_index("t", f"{column}_idx", progress=False).sound
    assert len([one for one in large.store.asked() if "/_indices/" in one.path]) <= most


def test_the_index_of_a_filter_is_counted_too(large: Table) -> None:
    # So many rows are asked about that the index of the filter is searched.
    with_filter = SEARCH.removesuffix("5)") + "400, 'array_has(tags, ''a3'')', 'exhaustive')"
    cost = Cost.of(large.session(), with_filter, large.store)
    assert any("bitmap_page_lookup" in one.path for one in cost.asked)
    assert cost.seen("_indices")[0] == cost.said["requests"]


def test_a_small_index_is_read_by_opening_its_file(store: ObjectStore) -> None:
    table = Table.written(store, "small.lance", FEW)
    index_all(table.session())
    for name, most in (("array_has", 5), ("any_element", 4), ("not so close", 12)):
        cost = Cost.of(table.session(), QUERIES_AND_SEARCH[name], store)
        assert cost.seen("_indices")[0] == cost.said["requests"] <= most


def test_a_local_table_costs_no_requests(tmp_path: Path) -> None:
    lance.write_dataset(rows(0, FEW), tmp_path / "t.lance")
    session = LanceSessionContext()
    session.register_lance("t", tmp_path / "t.lance")
    index_all(session)
    for query in QUERIES_AND_SEARCH.values():
        said = plan(session, f"EXPLAIN ANALYZE {query}")
        assert re.findall(r"\w*request(?:s|ed)=(\d+)", said) == ["0"] * 4
