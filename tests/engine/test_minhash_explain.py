"""EXPLAIN of table functions: the index scan by name, and what it did."""

from __future__ import annotations

import io
import json
import re
import shutil
from contextlib import redirect_stdout
from pathlib import Path

import lance
import pytest
from datafusion import SessionConfig
from datafusion.dataframe import ExplainFormat

from datafusion_lance.engine import LanceSessionContext

from .minhash_corpus import copies, search, write_copies


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_copies(tmp_path_factory.mktemp("explain") / "docs.lance")


@pytest.fixture(scope="module")
def session(path: Path) -> LanceSessionContext:
    return a_session(path)


def a_session(path: Path) -> LanceSessionContext:
    session = LanceSessionContext(SessionConfig().with_target_partitions(1))
    session.register_lance("docs", path)
    session.register_lance("other", path)
    return session


def explained(session: LanceSessionContext, statement: str) -> dict[str, str]:
    rows = session.sql(statement).to_pydict()
    return dict(zip(rows["plan_type"], rows["plan"], strict=True))


SHORT = search(2, text="'bob dob'")
LABEL = (
    "IndexScan: table=docs, index=text_idx, kind=MinHashLsh, "
    "query=minhash_search(text, 'bob dob', 2), answer=approximate"
)


def test_both_plans_name_the_index(session: LanceSessionContext) -> None:
    assert explained(session, f"EXPLAIN FORMAT INDENT SELECT id, _distance FROM {SHORT}") == {
        "logical_plan": f"{LABEL}, projection=[id, _distance]",
        "physical_plan": (
            f"CooperativeExec\n  {LABEL}, number_of_fragments=1, projection=[id, _distance]\n"
        ),
    }


def test_filter_and_mode_are_named_where_given(session: LanceSessionContext) -> None:
    call = search(2, "'lang = ''de'''", "'Exhaustive'", text="'bob dob'")
    plan = explained(session, f"EXPLAIN FORMAT INDENT SELECT id FROM {call}")["physical_plan"]
    assert plan == (
        "CooperativeExec\n  IndexScan: table=docs, index=text_idx, kind=MinHashLsh, "
        "query=minhash_search(text, 'bob dob', 2), filter=lang = 'de', mode=exhaustive, "
        "answer=exact, number_of_fragments=1, projection=[id]\n"
    )


def test_texts_are_shortened_and_stay_in_their_line(session: LanceSessionContext) -> None:
    text = "it''s\n" + "long " * 100
    call = search(2, text=f"'{text}'")
    plan = explained(session, f"EXPLAIN FORMAT INDENT SELECT id FROM {call}")["physical_plan"]
    assert "query=minhash_search(text, 'it''s\\nlong long" in plan
    assert len(plan) < 300
    assert plan.count("\n") == 2
    null = explained(session, "EXPLAIN FORMAT INDENT SELECT id FROM " + search(2, text="NULL"))
    assert "query=minhash_search(text, NULL, 2)" in null["physical_plan"]


def test_uncovered_fragments(path: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(path, tmp_path / "copy"))
    lance.write_dataset(copies().slice(0, 3), copy, mode="append")
    session = a_session(copy)
    plan = explained(session, f"EXPLAIN FORMAT INDENT SELECT id FROM {SHORT}")["physical_plan"]
    assert f"{LABEL}, uncovered_fragments=[3], number_of_fragments=1" in plan
    indexed = search(2, "NULL", "'indexed'", text="'bob dob'")
    plan = explained(session, f"EXPLAIN FORMAT INDENT SELECT id FROM {indexed}")["physical_plan"]
    assert "mode=indexed, answer=approximate, number_of_fragments=1" in plan


TWO = (
    f"SELECT a.id FROM {SHORT} a JOIN {search(5, 'NULL', chr(39) + 'exhaustive' + chr(39))} b "
    "ON a.id = b.id JOIN docs ON docs.id = b.id WHERE a.lang = 'de'"
)


def test_each_of_several_is_told_from_the_others(session: LanceSessionContext) -> None:
    plans = explained(session, f"EXPLAIN FORMAT INDENT {TWO}")
    for plan in plans.values():
        scans = re.findall(r"IndexScan: .*?answer=(\w+)|DatasetExec|TableScan: (\w+)", plan)
        assert len(scans) == 3
        assert plan.index("answer=approximate") < plan.index("answer=exact")
        assert "minhash_search()#" not in plan
    assert "TableScan: docs" in plans["logical_plan"]
    assert plans["physical_plan"].count("DatasetExec") == 1


def test_the_same_search_twice_and_one_in_a_subquery(session: LanceSessionContext) -> None:
    twice = f"WITH s AS (SELECT id FROM {SHORT}) SELECT * FROM s a JOIN s b USING (id)"
    plan = explained(session, f"EXPLAIN FORMAT INDENT {twice}")["physical_plan"]
    assert plan.count(LABEL) == 2
    inside = f"SELECT id FROM docs WHERE id = (SELECT max(id) FROM {SHORT})"
    plan = explained(session, f"EXPLAIN FORMAT INDENT {inside}")["physical_plan"]
    assert plan.count(LABEL) == 1
    assert plan.count("DatasetExec") == 1


def test_json(session: LanceSessionContext) -> None:
    plans = explained(session, f"EXPLAIN FORMAT PGJSON SELECT id FROM {SHORT}")
    for plan in plans.values():
        (top,) = json.loads(plan)
        node = top["Plan"]
        assert node["Node Type"] == "IndexScan"
        assert node["table"] == "docs"
        assert node["query"] == "minhash_search(text, 'bob dob', 2)"
        assert node["answer"] == "approximate"


def test_tree_and_graphviz(session: LanceSessionContext) -> None:
    tree = explained(session, f"EXPLAIN FORMAT TREE {TWO}")["physical_plan"]
    assert tree.count("IndexScan") == 2
    assert len(re.findall(r"│ +DatasetExec +│", tree)) == 1
    assert "mode=exhaustive" in tree
    graph = explained(session, f"EXPLAIN FORMAT GRAPHVIZ {TWO}")["logical_plan"]
    assert graph.count("IndexScan: table=docs") == 4
    assert graph.count("answer=exact") == 2
    assert 'label="TableScan: docs' in graph


def test_verbose(session: LanceSessionContext) -> None:
    plans = explained(session, f"EXPLAIN VERBOSE SELECT id FROM {SHORT} WHERE id > 1")
    assert LABEL in plans["initial_logical_plan"]
    assert LABEL in plans["physical_plan"]
    assert not any("TableScan: minhash" in plan for plan in plans.values())


def test_analyze_tells_what_the_search_did(session: LanceSessionContext) -> None:
    statement = f"EXPLAIN ANALYZE SELECT id FROM {search(3)} WHERE id > 0"
    for _ in range(2):
        plan = explained(session, statement)["Plan with Metrics"]
        measures = dict(re.findall(r"(\w+)=([\w.]+)", plan[plan.index("metrics=") :]))
        assert measures["rows_found"] == "3"
        assert measures["rows_returned"] == "2"
        assert int(measures["signatures_compared"]) > 3
        assert "search_time" in measures
    frame = session.sql(f"SELECT id FROM {search(3)}")
    frame.collect()
    for _ in range(2):
        text = io.StringIO()
        with redirect_stdout(text):
            frame.explain(analyze=True, format=ExplainFormat.INDENT)
        assert "rows_returned=3" in text.getvalue()


def test_with_other_indexes_in_the_statement(path: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(path, tmp_path / "copy"))
    lance.dataset(copy).create_scalar_index("tags", "LABEL_LIST")
    session = a_session(copy)
    statement = (
        f"SELECT a.id FROM {SHORT} a JOIN docs ON a.id = docs.id "
        "JOIN other ON other.id = docs.id WHERE array_has(docs.tags, 't1')"
    )
    filtered = search(2, "'array_has(tags, ''t1'') AND id > 1'", text="'bob dob'")
    plan = explained(session, f"EXPLAIN FORMAT INDENT SELECT id FROM {filtered}")["physical_plan"]
    assert ", filter=array_has(tags, 't1') AND id > 1, filter_index=tags_idx, answer=" in plan
    plans = explained(session, f"EXPLAIN ANALYZE {statement}")
    plan = plans["Plan with Metrics"]
    assert plan.count("kind=MinHashLsh") == plan.count("kind=LabelList") == 1
    assert plan.count("DatasetExec") == 1
    plans = explained(session, f"EXPLAIN FORMAT INDENT {statement}")
    for plan in plans.values():
        assert plan.count("kind=MinHashLsh") == plan.count("kind=LabelList") == 1


def test_a_column_without_index_is_noted(session: LanceSessionContext) -> None:
    plans = explained(session, f"EXPLAIN SELECT id FROM {search(2, column='plain')}")
    assert plans["index_notes"] == (
        "table docs: plain has no MinHash index, so minhash_search signs and ranks every row; "
        "create_lance_index('docs', 'plain', 'MINHASHLSH') builds one"
    )
    assert "IndexScan" not in plans["physical_plan"]
    both = f"SELECT a.id FROM {search(2, column='plain')} a JOIN {SHORT} b ON a.id = b.id"
    plan = explained(session, f"EXPLAIN FORMAT INDENT {both}")["physical_plan"]
    assert plan.count("DatasetExec") == plan.count("IndexScan") == 1


def test_duplicates(session: LanceSessionContext) -> None:
    for name, label in (("minhash_pairs", "left_rowid"), ("minhash_clusters", "row_id")):
        call = f"{name}('docs', 'text', 0.2)"
        plan = explained(session, f"EXPLAIN FORMAT INDENT SELECT {label} FROM {call}")
        assert plan["physical_plan"] == (
            "CooperativeExec\n  IndexScan: table=docs, index=text_idx, kind=MinHashLsh, "
            f"query={name}(text, 0.2), answer=exact, number_of_fragments=1, projection=[{label}]\n"
        )
        assert "IndexScan: table=docs" in plan["logical_plan"]
        run = explained(session, f"EXPLAIN ANALYZE SELECT count(*) FROM {call}")
        assert re.search(r"documents=\d\d, .*pairs_skipped=0, ", run["Plan with Metrics"])
        plan = explained(session, f"EXPLAIN FORMAT INDENT SELECT * FROM {name}('docs', 'text', 1)")
        assert "answer=approximate" in plan["physical_plan"]
        notes = explained(session, f"EXPLAIN SELECT * FROM {name}('docs', 'plain', 0.2)")
        assert f"so {name} signs every row" in notes["index_notes"]
