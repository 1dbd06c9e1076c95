"""EXPLAIN: DataFusion's own text, with the index scans by name."""

from __future__ import annotations

import io
import json
import re
import shutil
from contextlib import redirect_stdout
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from datafusion import DataFrame, SessionConfig, SessionContext
from datafusion.dataframe import ExplainAnalyzeLevel, ExplainFormat, ExplainMetricCategory

from datafusion_lance.engine import LanceSessionContext

ROWS = pa.table(
    {
        "id": pa.array(range(8), pa.int64()),
        "score": pa.array([i / 2 for i in range(8)], pa.float64()),
        "tags": pa.array([["a"], ["b", "a"], [], None, [None], ["b"], ["a"], ["c"]]),
    }
)
WORDS = {"id": [0, 1, 9], "word": ["zero", "one", "nine"]}


def indexed(path: Path, *, uncovered: bool = False) -> Path:
    """The rows with a label list index; the last two in a fragment that it does not cover."""
    covered = ROWS.slice(0, 6) if uncovered else ROWS
    dataset = lance.write_dataset(covered, path, max_rows_per_file=4)
    dataset.create_scalar_index("tags", "LABEL_LIST")
    if uncovered:
        lance.write_dataset(ROWS.slice(6), path, mode="append")
    return path


def a_session(path: Path, *, use_indexes: bool = True) -> LanceSessionContext:
    session = LanceSessionContext(
        SessionConfig().with_target_partitions(1).with_information_schema(True),
        use_indexes=use_indexes,
    )
    session.register_lance("images", path)
    session.from_pydict(WORDS, "words")
    return session


@pytest.fixture(scope="module")
def covered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return indexed(tmp_path_factory.mktemp("explain") / "covered.lance")


@pytest.fixture(scope="module")
def uncovered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return indexed(tmp_path_factory.mktemp("explain") / "uncovered.lance", uncovered=True)


def explained(session: SessionContext, statement: str) -> dict[str, str]:
    """The plans by type."""
    rows = session.sql(statement).to_pydict()
    return dict(zip(rows["plan_type"], rows["plan"], strict=True))


def printed(frame: DataFrame, **options: object) -> str:
    text = io.StringIO()
    with redirect_stdout(text):
        frame.explain(**options)  # pyright: ignore[reportArgumentType]
    return text.getvalue()


def shown(frame: DataFrame) -> str:
    text = io.StringIO()
    with redirect_stdout(text):
        frame.show()
    return text.getvalue()


TAGGED = "SELECT id FROM images WHERE array_has(tags, 'a') AND score > 0.25"
LINE = (
    "IndexScan: table=images, index=tags_idx, kind=LabelList, query=array_has(tags, 'a'), "
    "answer=exact"
)


class TestIndent:
    def test_a_covered_table(self, covered: Path) -> None:
        plans = explained(a_session(covered), f"EXPLAIN {TAGGED}")

        assert plans == {
            "logical_plan": (
                "SubqueryAlias: images\n"
                f"  {LINE}, projection=[id], full_filters=[images.score > Float64(0.25)]"
            ),
            "physical_plan": (
                "CooperativeExec\n"
                f"  {LINE}, number_of_fragments=1, filter_expr=(score > 0.25), projection=[id]\n"
            ),
        }

    def test_fragments_without_index_are_scanned_beside(self, uncovered: Path) -> None:
        plans = explained(a_session(uncovered), f"EXPLAIN {TAGGED}")

        line = f"{LINE}, uncovered_fragments=[2]"
        filters = "full_filters=[images.score > Float64(0.25)]"
        assert plans == {
            "logical_plan": (
                "SubqueryAlias: images\n"
                "  Union\n"
                "    SubqueryAlias: images\n"
                f"      {line}, projection=[id], {filters}\n"
                "    SubqueryAlias: images\n"
                "      Projection: images.id\n"
                '        Filter: array_has(images.tags, Utf8("a"))\n'
                f"          TableScan: images projection=[id, tags], {filters}"
            ),
            "physical_plan": (
                "UnionExec\n"
                "  CooperativeExec\n"
                f"    {line}, number_of_fragments=1, filter_expr=(score > 0.25), projection=[id]\n"
                "  FilterExec: array_has(tags@1, a), projection=[id@0]\n"
                "    CooperativeExec\n"
                "      DatasetExec: number_of_fragments=1, filter_expr=(score > 0.25), "
                "projection=[id, tags]\n"
            ),
        }

    def test_a_plan_that_cannot_be_rebuilt_reads_bound_tables(self, covered: Path) -> None:
        plans = explained(
            a_session(covered),
            "EXPLAIN SELECT id FROM words WHERE id NOT IN "
            "(SELECT id FROM images WHERE array_has(tags, 'a'))",
        )

        assert plans == {
            "logical_plan": (
                "LeftAnti Join: words.id = __correlated_sq_1.id null_aware\n"
                "  TableScan: words projection=[id]\n"
                "  SubqueryAlias: __correlated_sq_1\n"
                "    Projection: images.id\n"
                '      Filter: array_has(images.tags, Utf8("a"))\n'
                f"        {LINE}, projection=[id, tags]"
            ),
            "physical_plan": (
                "HashJoinExec: mode=CollectLeft, join_type=LeftAnti, on=[(id@0, id@0)], "
                "null_aware\n"
                "  DataSourceExec: partitions=1, partition_sizes=[1]\n"
                "  FilterExec: array_has(tags@1, a), projection=[id@0]\n"
                "    CooperativeExec\n"
                f"      {LINE}, number_of_fragments=1, projection=[id, tags]\n"
            ),
        }

    @pytest.mark.parametrize("name", ["Images", "public.IMAGES", '"My Images"'])
    def test_a_bound_table_is_known_by_any_name(self, name: str, covered: Path) -> None:
        session = a_session(covered)
        session.deregister_table("images")
        session.register_lance(name, covered)

        plans = explained(
            session,
            f"EXPLAIN SELECT id FROM words WHERE id NOT IN "
            f"(SELECT id FROM {name} i WHERE array_has(tags, 'a'))",
        )

        for plan in plans.values():
            assert f"IndexScan: table={name}, index=tags_idx" in plan

    def test_columns_of_the_same_name_are_numbered(self, covered: Path) -> None:
        plans = explained(
            a_session(covered),
            "EXPLAIN SELECT words.id, images.id FROM images JOIN words ON images.id = words.id "
            "WHERE array_has(tags, 'a')",
        )

        assert plans["logical_plan"] == (
            "Projection: words.id, images.id AS id:1\n"
            "  Inner Join: images.id = words.id\n"
            "    SubqueryAlias: images\n"
            f"      {LINE}, projection=[id]\n"
            "    TableScan: words projection=[id]"
        )

    @pytest.mark.parametrize(
        "query",
        [
            f"{TAGGED} ORDER BY id",
            f"{TAGGED} ORDER BY score DESC LIMIT 2 OFFSET 1",
            f"SELECT * FROM ({TAGGED} ORDER BY id) AS inside ORDER BY id DESC",
            "SELECT count(*) FROM images WHERE array_has(tags, 'a') GROUP BY id % 2 ORDER BY 1",
            f"SELECT row_number() OVER (ORDER BY id) FROM ({TAGGED})",
            "SELECT DISTINCT a.id FROM images a JOIN images b ON a.id = b.id + 1 "
            "WHERE array_has(a.tags, 'a') AND array_has(b.tags, 'b') ORDER BY a.id",
        ],
    )
    def test_it_shows_the_nodes_that_run(self, covered: Path, query: str) -> None:
        session = a_session(covered)

        shown = explained(session, f"EXPLAIN {query}")["physical_plan"]
        runs = session.sql(query).execution_plan().display_indent()

        assert "IndexScan" in shown
        node = re.compile(r"^( *\w+)", re.MULTILINE)
        assert node.findall(shown.replace("IndexScan", "DatasetExec")) == node.findall(runs)

    def test_two_scans_of_one_table_keep_their_queries(self, covered: Path) -> None:
        plans = explained(
            a_session(covered),
            "EXPLAIN SELECT l.id, r.score FROM images l RIGHT JOIN images r ON l.id = r.id "
            "AND array_has(l.tags, 'a') WHERE array_has_any(r.tags, ['b', 'c'])",
        )

        found = re.findall(r"query=(.*?), answer.*projection=\[(.*)\]", plans["physical_plan"])
        assert sorted(found) == [
            ("array_has(tags, 'a')", "id"),
            ("array_has_any(tags, ['b', 'c'])", "id, score"),
        ]

    def test_verbose_names_them_after_every_step(self, covered: Path) -> None:
        session = a_session(covered)

        rows = session.sql(f"EXPLAIN VERBOSE {TAGGED}").to_pylist()

        kinds = [row["plan_type"] for row in rows]
        plain = [
            row["plan_type"]
            for row in session.sql("EXPLAIN VERBOSE SELECT id FROM words").to_pylist()
        ]
        assert kinds == plain
        for row in rows:
            assert LINE in row["plan"] or row["plan"] == "SAME TEXT AS ABOVE"
            assert "lance.private" not in row["plan"]

    def test_statistics_and_settings_are_obeyed(self, covered: Path) -> None:
        session = a_session(covered)
        with_costs = explained(session, f"EXPLAIN (COSTS) {TAGGED}")["physical_plan"]
        session.sql("SET datafusion.explain.physical_plan_only = true")

        assert with_costs.count("statistics=[Rows=Absent") == 2
        assert list(explained(session, f"EXPLAIN {TAGGED}")) == ["physical_plan"]


class TestOtherFormats:
    def test_a_tree_has_a_box_of_that_title(self, uncovered: Path) -> None:
        plans = explained(a_session(uncovered), f"EXPLAIN FORMAT tree {TAGGED}")

        assert plans == {
            "physical_plan": """\
┌───────────────────────────┐
│         UnionExec         ├──────────────┐
└─────────────┬─────────────┘              │
┌─────────────┴─────────────┐┌─────────────┴─────────────┐
│      CooperativeExec      ││         FilterExec        │
│    --------------------   ││    --------------------   │
│      CooperativeExec      ││         predicate:        │
│                           ││     array_has(tags, a)    │
└─────────────┬─────────────┘└─────────────┬─────────────┘
┌─────────────┴─────────────┐┌─────────────┴─────────────┐
│         IndexScan         ││      CooperativeExec      │
│    --------------------   ││    --------------------   │
│        table=images       ││      CooperativeExec      │
│       index=tags_idx      ││                           │
│       kind=LabelList      ││                           │
│   query=array_has(tags,   ││                           │
│            'a')           ││                           │
│        answer=exact       ││                           │
│  uncovered_fragments=[2]  ││                           │
└───────────────────────────┘└─────────────┬─────────────┘
                             ┌─────────────┴─────────────┐
                             │        DatasetExec        │
                             │    --------------------   │
                             │        DatasetExec:       │
                             │         number_of_f       │
                             │         ragments:         │
                             │ 1, filter_expr=(score > 0 │
                             │   .25), projection=[id,   │
                             │            tags]          │
                             └───────────────────────────┘
"""
        }

    def test_json_has_a_node_of_that_type(self, uncovered: Path) -> None:
        plans = explained(a_session(uncovered), f"EXPLAIN FORMAT pgjson {TAGGED}")

        assert list(plans) == ["logical_plan"]
        [root] = json.loads(plans["logical_plan"])
        union = root["Plan"]["Plans"][0]
        assert union["Node Type"] == "Union"
        assert union["Plans"][0]["Plans"] == [
            {
                "Node Type": "IndexScan",
                "table": "images",
                "index": "tags_idx",
                "kind": "LabelList",
                "query": "array_has(tags, 'a')",
                "answer": "exact",
                "uncovered_fragments": "[2]",
                "Relation Name": "images",
                "Full Filters": "images.score > Float64(0.25)",
                "Plans": [],
                "Output": ["id"],
            }
        ]
        assert "index_scan" not in plans["logical_plan"]

    def test_graphviz_has_a_label_of_that_name(self, covered: Path) -> None:
        plans = explained(a_session(covered), f"EXPLAIN FORMAT graphviz {TAGGED}")

        line = f"{LINE}, projection=[id], full_filters=[images.score > Float64(0.25)]"
        assert plans == {
            "logical_plan": f"""
// Begin DataFusion GraphViz Plan,
// display it online here: https://dreampuf.github.io/GraphvizOnline

digraph {{
  subgraph cluster_1
  {{
    graph[label="LogicalPlan"]
    3[shape=box label="SubqueryAlias: images"]
    4[shape=box label="{line}"]
    3 -> 4 [arrowhead=none, arrowtail=normal, dir=back]
  }}
  subgraph cluster_5
  {{
    graph[label="Detailed LogicalPlan"]
    7[shape=box label="SubqueryAlias: images\\nSchema: [id:Int64;N]"]
    8[shape=box label="{line}\\nSchema: [id:Int64;N]"]
    7 -> 8 [arrowhead=none, arrowtail=normal, dir=back]
  }}
}}
// End DataFusion GraphViz Plan
"""
        }

    def test_a_format_can_be_the_sessions(self, covered: Path) -> None:
        session = a_session(covered)
        session.sql("SET datafusion.explain.format = 'tree'")

        assert "│         IndexScan         │" in shown(session.sql(f"EXPLAIN {TAGGED}"))


class TestAnalyze:
    def test_says_what_the_index_did(self, covered: Path) -> None:
        session = a_session(covered)

        plans = explained(session, f"EXPLAIN ANALYZE {TAGGED}")

        assert list(plans) == ["Plan with Metrics"]
        line = next(row for row in plans["Plan with Metrics"].splitlines() if "IndexScan" in row)
        start, _, metrics = line.partition("metrics=[")
        assert start == (
            f"  {LINE}, number_of_fragments=1, filter_expr=(score > 0.25), projection=[id], "
        )
        said = dict(entry.split("=") for entry in metrics.removesuffix("]").split(", "))
        assert said["rows_found"] == "3"
        assert said["bitmaps_read"] == "1"
        assert int(said["bytes_read"]) > 0
        assert said["rows_fetched"] == "3"
        assert said["fetch"] in ("take", "scan")
        assert re.fullmatch(r"\d+\.\d{3}ms", said["search_time"])
        assert re.fullmatch(r"\d+\.\d{3}ms", said["fetch_time"])

    def test_a_superset_says_what_its_recheck_removed(self, covered: Path) -> None:
        session = a_session(covered)
        query = (
            "SELECT id FROM images WHERE (array_has(tags, 'a') AND id % 2 = 0) "
            "OR array_has(tags, 'c')"
        )
        found = session.sql("SELECT id FROM images WHERE array_has_any(tags, ['a', 'c'])").count()
        removed = found - session.sql(query).count()
        assert removed > 0

        text = explained(session, f"EXPLAIN ANALYZE {query}")["Plan with Metrics"]
        assert f"rows_returned={found}, rows_removed_by_recheck={removed}]" in text
        written = explained(session, f"EXPLAIN ANALYZE FORMAT pgjson {query}")["Plan with Metrics"]
        assert f'"rows_removed_by_recheck": "{removed}"' in written
        exact = explained(session, f"EXPLAIN ANALYZE {TAGGED}")["Plan with Metrics"]
        assert "removed" not in exact

    @pytest.mark.parametrize(
        "word",
        [
            "a line\nbreak",
            "x\n  FilterExec: y",
            "x, metrics=[output_rows=7]",
            "output_rows=9,",
            "x\nDatasetExec: y",
            'say "x" \\',
            "x), fetch=1",
        ],
    )
    def test_no_literal_is_taken_for_a_count(self, covered: Path, word: str) -> None:
        session = a_session(covered)
        query = (
            "SELECT id FROM images WHERE (array_has(tags, 'a') AND id % 2 = 0) "
            f"OR array_has(tags, '{word}')"
        )
        found = session.sql("SELECT id FROM images WHERE array_has(tags, 'a')").count()
        removed = found - session.sql(query).count()
        text = explained(session, f"EXPLAIN ANALYZE {query}")["Plan with Metrics"]
        said = re.findall(r"rows_returned=(\d+), rows_removed_by_recheck=(\d+)", text)
        # A line of a literal that looks like a node leaves it unknown.
        assert said == ([] if "Exec:" in word else [(str(found), str(removed))])
        tree = explained(session, f"EXPLAIN ANALYZE FORMAT pgjson {query}")["Plan with Metrics"]
        assert f'"rows_removed_by_recheck": "{removed}"' in tree

    @pytest.mark.parametrize("form", ["indent", "pgjson"])
    def test_a_limit_leaves_unknown_what_a_recheck_would_remove(
        self, covered: Path, form: str
    ) -> None:
        query = (
            "SELECT id FROM images WHERE (array_has(tags, 'a') AND id % 2 = 0) "
            "OR array_has(tags, 'c') LIMIT 1"
        )
        text = explained(a_session(covered), f"EXPLAIN ANALYZE FORMAT {form} {query}")
        assert "superset" in text["Plan with Metrics"]
        assert "removed" not in text["Plan with Metrics"]

    def test_scans_that_share_an_index_scan_claim_no_recheck_of_their_own(
        self, covered: Path
    ) -> None:
        where = "(array_has(tags, 'a') AND id % 2 = {}) OR array_has(tags, 'c')"
        text = explained(
            a_session(covered),
            f"EXPLAIN ANALYZE SELECT id FROM images WHERE ({where.format(0)}) AND id NOT IN "
            f"(SELECT id FROM images WHERE {where.format(1)})",
        )["Plan with Metrics"]
        assert text.count("IndexScan: table=images") == 2
        assert "removed" not in text

    def test_a_bound_table_says_it_too(self, covered: Path) -> None:
        plans = explained(
            a_session(covered),
            "EXPLAIN ANALYZE SELECT id FROM words WHERE id NOT IN "
            "(SELECT id FROM images WHERE array_has(tags, 'a'))",
        )

        assert "rows_found=3" in plans["Plan with Metrics"]

    def test_verbose_and_options(self, covered: Path) -> None:
        session = a_session(covered)

        verbose = explained(session, f"EXPLAIN ANALYZE VERBOSE {TAGGED}")
        none = explained(session, f"EXPLAIN (ANALYZE, METRICS 'none') {TAGGED}")
        node = explained(session, f"EXPLAIN ANALYZE FORMAT pgjson {TAGGED}")

        assert list(verbose) == [
            "Plan with Metrics",
            "Plan with Full Metrics",
            "Output Rows",
            "Duration",
        ]
        assert verbose["Output Rows"] == "2"
        assert "rows_found=3" in verbose["Plan with Full Metrics"]
        assert none["Plan with Metrics"].endswith("projection=[id], metrics=[]\n")
        [root] = json.loads(node["Plan with Metrics"])
        assert root["Plan"]["Plans"][0]["Node Type"] == "IndexScan"
        assert root["Plan"]["Plans"][0]["rows_found"] == "3"


def test_explain_reads_no_index_file(covered: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(covered, tmp_path / "images.lance"))
    session = a_session(path)
    for file in (path / "_indices").rglob("*.lance"):
        file.unlink()

    assert LINE in explained(session, f"EXPLAIN {TAGGED}")["physical_plan"]
    with pytest.raises(Exception, match=r"bitmap_page_lookup\.lance"):
        session.sql(f"EXPLAIN ANALYZE {TAGGED}").collect()


class TestDataFrames:
    @pytest.mark.parametrize("name", [None, *ExplainFormat])
    def test_explain_prints_what_the_statement_shows(
        self, name: ExplainFormat | None, uncovered: Path
    ) -> None:
        session = a_session(uncovered)
        statement = "EXPLAIN" if name is None else f"EXPLAIN FORMAT {name.value}"

        text = printed(session.sql(TAGGED), format=name)

        assert text == shown(session.sql(f"{statement} {TAGGED}"))
        assert "IndexScan" in text

    def test_explain_takes_datafusions_options(self, covered: Path) -> None:
        frame = a_session(covered).sql(TAGGED)

        assert "physical_plan after join_selection" in printed(frame, verbose=True)
        assert "statistics=[Rows=Absent" in printed(frame, show_statistics=True)
        analyzed = printed(
            frame,
            analyze=True,
            analyze_level=ExplainAnalyzeLevel.SUMMARY,
            analyze_categories=iter([ExplainMetricCategory.ROWS]),
        )
        assert "Plan with Metrics" in analyzed
        assert "rows_found=3" in analyzed
        assert "| Output Rows" in printed(frame, verbose=True, analyze=True)

    def test_wrong_options_are_refused_alike(self, covered: Path) -> None:
        for wrong in (
            {"analyze": True, "show_statistics": True},
            {"analyze_level": ExplainAnalyzeLevel.DEV},
            {"analyze_categories": [ExplainMetricCategory.ROWS]},
        ):
            errors = []
            for use_indexes in (True, False):
                frame = a_session(covered, use_indexes=use_indexes).sql(TAGGED)
                with pytest.raises(ValueError, match="analyze") as raised:
                    printed(frame, **wrong)
                errors.append(str(raised.value))
            assert errors[0] == errors[1]


class TestNotes:
    def test_a_predicate_that_is_not_served_has_a_note(self, covered: Path) -> None:
        session = a_session(covered)
        query = "SELECT id FROM images WHERE array_has(tags, CAST(id AS VARCHAR))"

        plans = explained(session, f"EXPLAIN {query}")

        plain = explained(a_session(covered, use_indexes=False), f"EXPLAIN {query}")
        notes = plans.pop("index_notes")
        assert plans == plain
        assert "table images, index tags_idx" in notes
        assert "not a literal" in notes
        assert notes in printed(session.sql(query)).replace("  ", "")

    def test_no_note_without_an_index_or_such_a_predicate(self, covered: Path) -> None:
        session = a_session(covered)

        for query in (
            "SELECT id FROM images WHERE score > 1",
            "SELECT count(*) FROM images",
            "SELECT * FROM words",
        ):
            assert "index_notes" not in explained(session, f"EXPLAIN {query}")


# Statements that read no index, with every format and option of EXPLAIN.
UNTOUCHED = [
    "SELECT 1",
    "SELECT * FROM words WHERE id > 1 ORDER BY word LIMIT 1",
    "SELECT a.id, b.id FROM words a JOIN words b USING (id)",
    "SELECT id FROM images WHERE score > 1",
    "CREATE VIEW seen AS SELECT id FROM images WHERE array_has(tags, 'a')",
    "PREPARE p AS SELECT id FROM images WHERE array_has(tags, 'a')",
    "SET datafusion.execution.batch_size = 3",
    "DROP TABLE words",
    "EXECUTE p",
]


@pytest.mark.parametrize("statement", UNTOUCHED)
@pytest.mark.parametrize(
    "options",
    ["", "VERBOSE", "FORMAT tree", "FORMAT pgjson", "FORMAT graphviz", "(COSTS)"],
)
def test_explain_of_other_statements_is_datafusions(
    options: str, statement: str, covered: Path
) -> None:
    sessions = a_session(covered), a_session(covered, use_indexes=False)

    ours, plain = (session.sql(f"EXPLAIN {options} {statement}") for session in sessions)

    assert ours.schema() == plain.schema()
    assert _without_addresses(ours) == _without_addresses(plain)


WRITING = [
    "INSERT INTO words SELECT id, 'x' FROM images WHERE array_has(tags, 'a')",
    "COPY (SELECT id FROM images WHERE array_has(tags, 'a')) TO 'x.csv'",
    "CREATE TABLE copied AS SELECT id FROM images WHERE array_has(tags, 'a')",
]


@pytest.mark.parametrize("statement", WRITING)
@pytest.mark.parametrize("options", ["", "VERBOSE", "FORMAT tree", "FORMAT pgjson"])
def test_explain_of_a_statement_that_writes_names_its_index_scans(
    options: str, statement: str, covered: Path
) -> None:
    sessions = a_session(covered), a_session(covered, use_indexes=False)

    ours, plain = (session.sql(f"EXPLAIN {options} {statement}") for session in sessions)

    assert ours.schema() == plain.schema()
    listed, plainly = _without_addresses(ours), _without_addresses(plain)
    if "error" in plainly[0]:
        assert listed == plainly
        return
    rows, plain_rows = (
        {row["plan_type"]: row["plan"] for row in listing} for listing in (listed, plainly)
    )
    assert list(rows) == list(plain_rows)
    for kind in {"logical_plan", "physical_plan"} & rows.keys():
        scans = re.search("TableScan|DatasetExec", plain_rows[kind])
        assert bool(scans) == ("IndexScan" in rows[kind]), rows[kind]
    assert sessions[0].table("words").count() == len(WORDS["id"])


def test_scans_of_one_table_are_told_apart_in_every_format(covered: Path) -> None:
    session = a_session(covered)
    query = (
        "SELECT id FROM images WHERE array_has(tags, 'a') AND id NOT IN "
        "(SELECT id FROM images WHERE score > 1)"
    )

    for options in ("", "FORMAT tree", "FORMAT pgjson", "FORMAT graphviz"):
        rows = session.sql(f"EXPLAIN {options} {query}").to_pylist()
        for row in rows:
            # Both of the two graphs show the scan.
            shown = 2 if "digraph" in row["plan"] else 1
            assert row["plan"].count("IndexScan") == shown, row["plan"]


def test_an_insert_is_explained_with_what_ran(covered: Path) -> None:
    session = a_session(covered)

    text = explained(session, f"EXPLAIN ANALYZE {WRITING[0]}")

    assert re.search(r"IndexScan: .*rows_found=\d", text["Plan with Metrics"])
    assert session.table("words").count() > len(WORDS["id"])


def _without_addresses(frame: DataFrame) -> list[dict[str, str]]:
    try:
        return frame.to_pylist()
    except Exception as error:
        return [{"error": str(error)}]


def test_the_rows_have_datafusions_schema(covered: Path) -> None:
    session = a_session(covered)

    ours = session.sql(f"EXPLAIN {TAGGED}")
    plain = session.sql("EXPLAIN SELECT 1")

    assert ours.schema() == plain.schema()
    assert ours.to_arrow_table().schema == plain.to_arrow_table().schema
    assert ours.count() == 2


def test_nothing_of_explain_can_be_seen(covered: Path) -> None:
    session = a_session(covered)

    def seen() -> tuple[object, ...]:
        return (
            sorted(row["table_name"] for row in session.sql("SHOW TABLES").to_pylist()),
            session.catalog_names(),
            sorted(session.catalog().schema_names()),
            session.sql("SHOW ALL").to_pylist(),
            sorted(session.udfs()),
        )

    before = seen()
    for options in ("", "ANALYZE", "VERBOSE", "FORMAT tree", "(COSTS)"):
        session.sql(f"EXPLAIN {options} {TAGGED}").collect()

    assert seen() == before


def test_the_sessions_rules_and_functions_apply(covered: Path) -> None:
    session = a_session(covered)
    session.remove_optimizer_rule("push_down_filter")

    plan = explained(session, f"EXPLAIN {TAGGED}")["logical_plan"]

    assert "Filter: images.score > Float64(0.25)" in plan


@pytest.mark.parametrize("dialect", ["postgresql", "mysql", "duckdb", "bigquery", "mssql"])
def test_the_sessions_dialect_does_not_matter(dialect: str, covered: Path) -> None:
    session = a_session(covered)
    session.sql(f"SET datafusion.sql_parser.dialect = '{dialect}'")

    assert LINE in printed(session.sql(TAGGED), format=ExplainFormat.INDENT)


def test_the_plan_of_an_explain_does_not_run_it(covered: Path) -> None:
    session = a_session(covered)

    plan = session.sql(f"EXPLAIN ANALYZE {TAGGED}").execution_plan()

    assert plan.display_indent().startswith("AnalyzeExec")


def test_a_verbose_explain_is_shown_whole(covered: Path) -> None:
    session = a_session(covered)

    text = shown(session.sql(f"EXPLAIN VERBOSE {TAGGED}"))

    assert "physical_plan_with_schema" in text


def test_a_prepared_statement_is_explained_with_its_values(covered: Path) -> None:
    session = a_session(covered)
    session.sql("PREPARE tagged(VARCHAR) AS SELECT id FROM images WHERE array_has(tags, $1)")

    assert LINE in printed(session.sql("EXECUTE tagged('a')"))


def test_a_version_whose_indexes_are_not_known_is_noted() -> None:
    dataset = lance.write_dataset(pa.table({"id": [1, 2], "tags": [["a"], ["b"]]}), "memory://t")
    session = LanceSessionContext()
    session.register_lance("t", dataset)
    query = "SELECT id FROM t WHERE array_has(tags, 'a')"

    note = session.sql(f"EXPLAIN {query}").to_pylist()[-1]

    assert note["plan_type"] == "index_notes"
    assert note["plan"] == (
        "table t: its indexes are not known: the manifest of version 1 of memory://t cannot be "
        "found again"
    )
    assert session.sql(query).to_pydict() == {"id": [1]}
