"""Which of given rows pass a predicate: as a scan with the same WHERE clause says."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from datafusion import col, lit, udf

from datafusion_lance.engine import InvalidArgumentError, LanceSessionContext, indexed_row_filter
from datafusion_lance.engine.indexed_row_filter import IndexedFilter, filter_of
from datafusion_lance.engine.own_thread import in_own_thread
from datafusion_lance.engine.registry import RegisteredTable, find_table
from datafusion_lance.engine.row_filter import PredicateFilter
from datafusion_lance.indexes.minhash_lsh.search import RowFilter
from datafusion_lance.indexes.row_set import RowSet

ROWS = 6000


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> LanceSessionContext:
    """Four fragments, of which indexes cover three, and some rows are deleted."""
    path = tmp_path_factory.mktemp("filter") / "t.lance"

    def rows(start: int, stop: int) -> pa.Table:
        ids = np.arange(start, stop)
        return pa.table(
            {
                "id": ids,
                "lang": pa.array([None if i % 7 == 0 else ("de", "en")[i % 2] for i in ids]),
                "tags": [None if i % 11 == 0 else [f"t{i % 5}", f"u{i % 3}"] for i in ids],
                "d": [[{"k": int(i % 13), "v": float(i)}] if i % 4 else None for i in ids],
                "order": pa.array([str(i) for i in ids]),
            }
        )

    lance.write_dataset(rows(0, 4500), path, max_rows_per_file=1500)
    context = LanceSessionContext()
    context.register_lance("docs", path, row_id=True)
    context.create_lance_index("docs", "tags", "LABEL_LIST")
    context.create_lance_index("docs", "d", "LIST_ELEMENT", keys=["k"], progress=False)
    lance.write_dataset(rows(4500, ROWS), path, mode="append")
    lance.dataset(path).delete("id % 17 = 0")
    context.refresh("docs")
    return context


PREDICATES = (
    "lang = 'de'",
    "lang <> 'de' OR lang IS NULL",
    "id % 10 = 3",
    "id IN (NULL, 5, 6)",
    "array_has(tags, 't1')",
    "NOT array_has_any(tags, ['t1', 'u2']) AND id > 100",
    "any_element(d, 'k = 3 AND v > 1000.0')",
    "any_element(d, 'k = 3') OR array_has(tags, 't2')",
    "any_element(d, 'k > 3') AND lang = 'en'",
    "docs.\"order\" LIKE '1%' AND array_has(docs.tags, 't1')",
    "_rowid > 1000",
    "true",
    "NULL",
    "false",
    "tags IS NULL",
)


def table_of(context: LanceSessionContext) -> RegisteredTable:
    table = find_table(context.undisclosed, "docs")
    assert table is not None
    return table


def made(context: LanceSessionContext, text: str) -> RowFilter:
    scanned = context.undisclosed.table("docs")
    predicate = context.parse(scanned, text)
    return filter_of(table_of(context), scanned, predicate, context.undisclosed)


def addresses_where(context: LanceSessionContext, text: str) -> list[int]:
    """By a scan without indexes; row ids are addresses in this table."""
    plain = LanceSessionContext.wrap(context.undisclosed, use_indexes=False)
    found = plain.sql(f"SELECT _rowid FROM docs WHERE {text} ORDER BY _rowid")
    return found.to_pydict()["_rowid"]


def every_row(context: LanceSessionContext) -> RowSet:
    table = table_of(context)
    return table.snapshot.live_rows(table.shown_fragments)


@pytest.mark.parametrize("text", PREDICATES)
def test_all_rows_few_rows_and_none(context: LanceSessionContext, text: str) -> None:
    wanted = addresses_where(context, text)
    rows = every_row(context)
    chosen = np.random.default_rng(1).choice(rows.addresses(), 300, replace=False)
    for asked in (rows, RowSet.from_addresses(chosen), RowSet.EMPTY):
        inside = np.intersect1d(np.array(wanted, np.uint64), asked.addresses())
        passing = made(context, text).passing(asked)
        assert passing.addresses().tolist() == inside.tolist()


def test_indexes_answer_for_many_rows(
    context: LanceSessionContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches: list[str] = []
    evaluate = indexed_row_filter.evaluate

    def counting(query: object, *rest: object) -> object:
        searches.append(str(query))
        return evaluate(query, *rest)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(indexed_row_filter, "evaluate", counting)
    both = made(context, "array_has(tags, 't1') AND any_element(d, 'k = 3')")
    assert isinstance(both, IndexedFilter)
    few = RowSet.from_addresses(np.arange(10, dtype=np.uint64) + np.uint64(1))
    both.passing(few)
    assert searches == []
    for _ in range(2):
        both.passing(every_row(context))
    assert searches == ["array_has(tags, 't1') AND any_element(d, k = 3)"]
    assert not isinstance(made(context, "id > 3"), IndexedFilter)


def test_without_indexes(context: LanceSessionContext) -> None:
    scanned = context.undisclosed.table("docs")
    predicate = context.parse(scanned, "array_has(tags, 't1')")
    table = table_of(context)
    filter = filter_of(table, scanned, predicate, context.undisclosed, use_indexes=False)
    assert isinstance(filter, PredicateFilter)


def test_several_predicates_and_no_predicate(context: LanceSessionContext) -> None:
    rows = every_row(context)
    reference = (None, "public", "docs")
    predicates = (col("public.docs.id") > lit(10), col("lang") == lit("de"))
    both = PredicateFilter(table_of(context), reference, predicates, context.undisclosed)
    wanted = addresses_where(context, "id > 10 AND lang = 'de'")
    assert both.passing(rows).addresses().tolist() == wanted
    both.check()
    assert both.passing(rows).addresses().tolist() == wanted
    assert PredicateFilter(table_of(context), reference, (), context.undisclosed).passing(rows) == (
        rows
    )


def test_a_lambda_beside_a_function_that_datafusion_knows_nothing_of(
    context: LanceSessionContext,
) -> None:
    known = udf(
        lambda lang: lang.is_valid(), [pa.string()], pa.bool_(), "immutable", "known_language"
    )
    any_odd = context.parse(context.undisclosed.table("docs"), "any_element(d, 'k % 2 = 1')")
    predicates = (known(col("lang")), any_odd)
    filter = PredicateFilter(
        table_of(context), (None, None, "docs"), predicates, context.undisclosed
    )
    rows = every_row(context)
    wanted = addresses_where(context, "lang IS NOT NULL AND any_element(d, 'k % 2 = 1')")
    assert wanted
    filter.check()
    assert filter.passing(rows).addresses().tolist() == wanted


def test_a_registered_function_and_the_configuration_keep_their_meaning(
    context: LanceSessionContext,
) -> None:
    own = LanceSessionContext.wrap(context.undisclosed)
    own.register_udf(
        udf(lambda ids: pa.array([i.as_py() == 1 for i in ids]), [pa.int64()], pa.bool_(), "stable")
    )
    own.sql("SET datafusion.execution.time_zone = '+05:00'").collect()
    scanned = own.undisclosed.table("docs")
    for text in (
        "arrow_typeof(now()) = 'Timestamp(ns, \"+05:00\")' AND id < 100",
        "arrow_typeof(now()) = 'Timestamp(ns)' AND id < 100",
    ):
        predicate = own.parse(scanned, text)
        passing = filter_of(table_of(own), scanned, predicate, own.undisclosed)
        asked = passing.passing(every_row(own)).addresses().tolist()
        assert asked == addresses_where(own, text)


def test_only_the_given_rows_are_evaluated(context: LanceSessionContext) -> None:
    rows = every_row(context)
    given = RowSet.from_addresses(rows.addresses()[[3, 1000, 4000]])
    seen: list[int] = []

    def noted(ids: pa.Array) -> pa.Array:
        seen.extend(ids.to_pylist())
        return pa.array([True] * len(ids))

    predicate = udf(noted, [pa.int64()], pa.bool_(), "volatile", "noted")(col("id"))
    filter = PredicateFilter(
        table_of(context), (None, None, "docs"), (predicate,), context.undisclosed
    )
    assert filter.passing(given) == given
    assert len(seen) == 3


def test_a_subquery_is_refused(context: LanceSessionContext) -> None:
    for text in ("id = (SELECT max(k) FROM (VALUES (1)) AS v(k))", "EXISTS (SELECT 1)"):
        with pytest.raises(InvalidArgumentError, match="takes no subqueries"):
            made(context, text)
    assert made(context, "lang = '<subquery>'").passing(every_row(context)) == RowSet.EMPTY


def test_errors_of_the_evaluation_are_raised(context: LanceSessionContext) -> None:
    failing = made(context, "CAST(lang AS INT) = 1")
    with pytest.raises(Exception, match="Cast error"):
        failing.passing(every_row(context))


def test_lance_has_no_column_of_the_name_of_the_address(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="_rowaddr"):
        lance.write_dataset(pa.table({"_rowaddr": [1]}), tmp_path / "t.lance")


def test_what_a_thread_of_its_own_raises_is_raised() -> None:
    def panic() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_own_thread(panic)
    assert in_own_thread(threading.current_thread) is not threading.current_thread()


IN_THE_RUNTIME = """
import sys, threading
import pyarrow as pa
from datafusion import SessionContext, col, lit, udf
from datafusion_lance.engine import LanceSessionContext
from datafusion_lance.engine.registry import find_table
from datafusion_lance.engine.row_filter import PredicateFilter

context = LanceSessionContext()
context.register_lance("t", sys.argv[1])
table = find_table(context.undisclosed, "t")
rows = table.snapshot.live_rows(table.shown_fragments)
even = PredicateFilter(table, (None, None, "t"), (col("id") % lit(2) == lit(0),), context)

def evens(ids):
    return pa.array([len(even.passing(rows))] * len(ids), pa.int64())

asking = SessionContext(SessionContext().copied_config().with_target_partitions(8))
asking.register_udf(udf(evens, [pa.int64()], pa.int64(), "volatile", "evens"))
# Eight partitions, so that all threads of the runtime are in the function at once.
batch = pa.record_batch({"id": range(4)})
asking.register_record_batches("r", [[batch]] * 8)
failures = []

def ask():
    for _ in range(5):
        found = asking.sql("SELECT evens(id) AS n FROM r").to_pydict()["n"]
        if found != [500] * 32:
            failures.append(found)

threads = [threading.Thread(target=ask) for _ in range(32)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("failed" if failures else "answered")
"""


def test_it_answers_while_every_thread_of_the_runtime_waits(tmp_path: Path) -> None:
    """32 threads run queries over two threads of the runtime, which all ask the filter."""
    path = tmp_path / "t.lance"
    lance.write_dataset(pa.table({"id": range(1000)}), path)
    ran = subprocess.run(
        [sys.executable, "-c", IN_THE_RUNTIME, path],
        env={**os.environ, "TOKIO_WORKER_THREADS": "2", "LANCE_LOG": "error"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (ran.stdout, ran.stderr, ran.returncode) == ("answered\n", "", 0)
