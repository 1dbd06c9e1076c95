"""`any_element` in a session's statements: everywhere where an expression may stand."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from datafusion import SessionConfig, SessionContext, SQLOptions, udf

from datafusion_lance.engine import InvalidArgumentError, LanceSessionContext

DETECTION = pa.struct([("label", pa.string()), ("confidence", pa.float32())])
PART = pa.struct([("size", pa.int32()), ("label", pa.int32())])


def detection(label: str | None, confidence: float | None) -> dict[str, Any]:
    return {"label": label, "confidence": confidence}


LISTS = (
    [detection("car", 0.95), detection("dog", 0.3)],
    [detection("car", 0.3)],
    [],
    None,
    [None],
    [detection("dog", 0.99), None],
)
PARTS = ([{"size": 1, "label": 7}], [], None, [{"size": 5, "label": None}], [None], [])
ROWS = pa.table(
    {
        "id": pa.array(range(6), pa.int64()),
        "place": pa.array(["a", "b", "a", "b", "a", "b"]),
        "d": pa.array(LISTS, pa.list_(DETECTION)),
        "large": pa.array(LISTS, pa.large_list(DETECTION)),
        "parts": pa.array(PARTS, pa.list_(PART)),
    }
)
CAR = "any_element(d, 'label = ''car''')"


@pytest.fixture(params=["Lance", "memory"])
def session(request: pytest.FixtureRequest, tmp_path: Path) -> LanceSessionContext:
    """A session with the rows as table `t`, from Lance or from memory."""
    session = LanceSessionContext()
    if request.param == "memory":
        session.register_record_batches("t", [ROWS.to_batches()])
    else:
        lance.write_dataset(ROWS, tmp_path / "t.lance", max_rows_per_file=4)
        session.register_lance("t", tmp_path / "t.lance")
    return session


def rows(session: SessionContext, query: str, **named: Any) -> list[tuple[Any, ...]]:
    table = session.sql(query, **named).to_arrow_table()
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (f"SELECT id FROM t WHERE {CAR}", [0, 1]),
        (f"SELECT id FROM t WHERE NOT {CAR}", [2]),
        (f"SELECT id FROM t WHERE {CAR} IS NULL", [3, 4, 5]),
        ("SELECT id FROM t WHERE any_element(large, 'label = ''car''')", [0, 1]),
        (f"SELECT id FROM t WHERE {CAR} AND any_element(parts, 'size = 1 AND label = 7')", [0]),
        (f"SELECT id FROM t WHERE {CAR} OR any_element(parts, 'size = 5')", [0, 1, 3]),
        (f"SELECT max(id) FROM t HAVING bool_or({CAR})", [5]),
        (f"SELECT id FROM t ORDER BY {CAR} DESC NULLS LAST, id", [0, 1, 2, 3, 4, 5]),
        (f"SELECT CASE WHEN {CAR} THEN id ELSE -1 END FROM t ORDER BY id", [0, 1, -1, -1, -1, -1]),
        (f"SELECT count(*) FILTER (WHERE {CAR}) FROM t", [2]),
        (f"SELECT sum(1) OVER (PARTITION BY {CAR}) FROM t ORDER BY id", [2, 2, 1, 3, 3, 3]),
        (f"SELECT u.id FROM t u JOIN t v ON u.id = v.id AND {CAR.replace('d,', 'v.d,')}", [0, 1]),
        (f"SELECT id FROM t WHERE id IN (SELECT id FROM t WHERE {CAR})", [0, 1]),
        (f"SELECT id FROM t WHERE id NOT IN (SELECT id FROM t WHERE {CAR})", [2, 3, 4, 5]),
        (
            "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM t u WHERE u.id = t.id + 1 "
            "AND any_element(t.d, 'label = ''car''') AND any_element(u.d, 'confidence < 0.5'))",
            [0],
        ),
        (f"SELECT (SELECT count(*) FROM t WHERE {CAR})", [2]),
        (f"WITH cars AS (SELECT id FROM t WHERE {CAR}) SELECT id FROM cars", [0, 1]),
        (f"SELECT id FROM t WHERE {CAR} UNION ALL SELECT id FROM t WHERE NOT {CAR}", [0, 1, 2]),
        ("SELECT id FROM t WHERE ANY_ELEMENT(d, 'LABEL = ''car''')", [0, 1]),
        ("SELECT id FROM t WHERE \"any_element\" ( d , 'label = ''car''' )", [0, 1]),
        ("SELECT id FROM t WHERE any_element(d, $$label = 'car'$$)", [0, 1]),
        ("SELECT id FROM t WHERE any_element(d /* , 'x' */, -- ')'\n 'label = ''car''')", [0, 1]),
        (f"SELECT id FROM t WHERE any_element(CASE WHEN {CAR} THEN d END, 'label = ''dog''')", [0]),
        ("SELECT 1 WHERE any_element((SELECT d FROM t WHERE id = 1), 'confidence < 0.5')", [1]),
        (
            "SELECT place FROM t GROUP BY place "
            "HAVING any_element(array_agg(struct(id)), 'c0 = 1')",
            ["b"],
        ),
        ("SELECT any_element([{'k': 1}, {'k': 2}], 'k = 2')", [True]),
        ("SELECT 'any_element(d, 1)'", ["any_element(d, 1)"]),
        ("SELECT 1 AS any_element", [1]),
        ("SELECT id -- any_element(d)\n FROM t WHERE id = 0", [0]),
    ],
)  # fmt: skip
def test_anywhere_in_a_query(
    session: LanceSessionContext, query: str, expected: Sequence[Any]
) -> None:
    for _ in range(2):  # planned, and planned again
        answers = [row[0] for row in rows(session, query)]
        assert sorted(answers) == sorted(expected)
        if "ORDER BY" in query:
            assert answers == expected


def test_fixed_size_lists() -> None:
    """In memory: pylance 14 writes such lists of structs, but does not read them."""
    lists = [(elements and (elements * 2)[:2]) or None for elements in LISTS]
    session = LanceSessionContext()
    table = pa.table({"id": range(6), "fixed": pa.array(lists, pa.list_(DETECTION, 2))})
    session.register_record_batches("t", [table.to_batches()])
    for predicate, found in (("label = ''car''", [0, 1]), ("confidence > 0.98", [5])):
        query = f"SELECT id FROM t WHERE any_element(fixed, '{predicate}')"
        assert rows(session, query) == [(row,) for row in found]


def test_grouping_by_a_call(session: LanceSessionContext) -> None:
    query = f"SELECT {CAR} AS car, count(*) FROM t GROUP BY {CAR} ORDER BY {CAR} NULLS FIRST"
    assert rows(session, query) == [(None, 3), (False, 1), (True, 2)]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT {0} AS a, count(*) AS n FROM ints GROUP BY {0} UNION ALL SELECT {0}, 1 FROM floats",
        "SELECT {0} AS a, 1 AS n FROM floats UNION ALL SELECT {0}, count(*) FROM ints GROUP BY {0}",
        "SELECT {0} AS a, CAST((SELECT bool_or({0}) FROM floats) AS INT) AS n "
        "FROM ints GROUP BY {0}",
        "SELECT {0} AS a, 1 AS n FROM floats WHERE (SELECT bool_or({0}) FROM ints GROUP BY {0})",
        "WITH a AS (SELECT {0} AS a FROM floats GROUP BY {0}) SELECT a, 1 AS n FROM a",
    ],
)
@pytest.mark.parametrize("dialect", ["generic", "postgresql"])
def test_calls_of_one_text_on_lists_of_different_types(query: str, dialect: str) -> None:
    """Beside a GROUP BY, too, where calls are told apart by their text."""
    session = LanceSessionContext()
    session.sql(f"SET datafusion.sql_parser.dialect = '{dialect}'")
    for name, type_, value in (("ints", pa.int64(), 0), ("floats", pa.float64(), -0.0)):
        lists = pa.array([[{"k": value}]], pa.list_(pa.struct([("k", type_)])))
        session.register_record_batches(name, [[pa.RecordBatch.from_arrays([lists], ["d"])]])
    query = query.format("any_element(d, 'k IN (0, 1)')")
    assert set(rows(session, query)) == {(True, 1)}


def test_a_select_that_names_another_list_as_one_of_its_columns() -> None:
    session = LanceSessionContext()
    lists = {
        "d": pa.array([[{"k": 0}]], pa.list_(pa.struct([("k", pa.int64())]))),
        "e": pa.array([[{"k": -0.0}]], pa.list_(pa.struct([("k", pa.float64())]))),
    }
    session.register_record_batches("t", [pa.table(lists).to_batches()])
    call = "any_element(d, 'k IN (0, 1)')"
    ordered = f"SELECT e AS d, {call} AS c FROM t ORDER BY {call}"
    assert rows(session, ordered) == [([{"k": -0.0}], True)]
    # Where calls are told apart by their text these would be taken for the same.
    grouping = "any_element(d, 'k > 0')"
    query = (
        f"SELECT {grouping} AS g, e AS d, max({call}) AS c FROM t "
        f"GROUP BY {grouping}, e ORDER BY {call}"
    )
    with pytest.raises(InvalidArgumentError, match="one type in calls of the same text"):
        session.sql(query)


def test_columns_are_named_as_those_of_a_function(session: LanceSessionContext) -> None:
    frame = session.sql(f"SELECT id, {CAR}, NOT {CAR} FROM t")
    call = "any_element(t.d,Utf8(\"label = 'car'\"))"
    assert frame.schema().names == ["id", call, f"NOT {call}"]
    assert session.sql(f"SELECT {CAR} AS car FROM t").schema().names == ["car"]


@pytest.mark.parametrize("kind", ["VIEW", "TABLE"])
def test_views_and_tables(session: LanceSessionContext, kind: str) -> None:
    session.sql(f"CREATE {kind} cars AS SELECT id, {CAR} AS car FROM t WHERE id < 3")
    assert rows(session, "SELECT id FROM cars WHERE car") == [(0,), (1,)]
    plain = SessionContext.__new__(SessionContext)
    plain.ctx = session.ctx
    assert rows(plain, "SELECT id FROM cars WHERE NOT car") == [(2,)]
    session.sql(f"DROP {kind} cars")
    assert not session.table_exist("cars")


def test_select_into(session: LanceSessionContext) -> None:
    session.sql(f"SELECT id INTO found FROM t WHERE {CAR}")
    assert rows(session, "SELECT id FROM found") == [(0,), (1,)]


def test_insert_copy_and_explain(session: LanceSessionContext, tmp_path: Path) -> None:
    session.sql(f"CREATE TABLE found AS SELECT id FROM t WHERE {CAR}")
    session.sql(f"INSERT INTO found SELECT id FROM t WHERE NOT {CAR}").collect()
    assert sorted(rows(session, "SELECT id FROM found")) == [(0,), (1,), (2,)]
    path = tmp_path / "found.parquet"
    session.sql(f"COPY (SELECT id FROM t WHERE {CAR}) TO '{path}'").collect()
    assert session.read_parquet(str(path)).count() == 2
    text = str(rows(session, f"EXPLAIN SELECT id FROM t WHERE {CAR}"))
    assert "array_any_match(" in text


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT a.id, x.n FROM t a CROSS JOIN LATERAL (SELECT count(*) AS n FROM t WHERE "
        f"t.id = a.id AND {CAR}) x",
        f"SELECT id FROM t WHERE id > 5 OR EXISTS (SELECT 1 FROM t u WHERE u.id = t.id AND "
        f"{CAR.replace('d,', 'u.d,')})",
    ],
)
@pytest.mark.parametrize("explain", ["EXPLAIN", "EXPLAIN VERBOSE", "EXPLAIN ANALYZE"])
def test_explain_of_a_call_that_a_plan_hides(
    explain: str, query: str, session: LanceSessionContext
) -> None:
    assert "array_any_match(" in str(rows(session, f"{explain} {query}"))


def test_prepared_statements(session: LanceSessionContext) -> None:
    session.sql(f"PREPARE cars(BIGINT) AS SELECT id FROM t WHERE {CAR} AND id >= $1")
    assert rows(session, "EXECUTE cars(1)") == [(1,)]
    assert rows(session, "execute CARS(0)") == [(0,), (1,)]
    with pytest.raises(Exception, match="already exists"):
        session.sql(f"PREPARE cars AS SELECT id FROM t WHERE {CAR}")
    with pytest.raises(Exception, match="only the session that prepared it"):
        session.plain.sql("EXECUTE cars").collect()
    session.sql("DEALLOCATE cars")
    with pytest.raises(Exception, match="does not exist"):
        session.sql("EXECUTE cars(1)")


def test_parameters(session: LanceSessionContext) -> None:
    query = "SELECT id FROM t WHERE any_element(d, $p) AND id >= $least"
    values = {"p": "label = 'car'", "least": 1}
    assert rows(session, query, param_values=values) == [(1,)]
    named = "SELECT id FROM t WHERE any_element($lists, $p)"
    assert rows(session, named, lists="d", p="'label = ''car'''") == [(0,), (1,)]
    source = f"SELECT id FROM $source WHERE {CAR}"
    assert rows(session, source, source=session.table("t")) == [(0,), (1,)]


@pytest.mark.parametrize(
    ("query", "values", "says"),
    [
        ("{}", {"p": 5}, "got 5, takes a text for $p"),
        ("{}", {"p": pa.scalar(5)}, "got 5, takes a text for $p"),
        ("{}", {"p": None}, "got None, takes a text for $p"),
        ("{}", {"q": "ok"}, "there is no value for $p"),
        ("EXPLAIN {}", None, "there is no value for $p"),
        ("PREPARE cars AS {}", None, "PREPARE cannot leave the predicate open"),
    ],
)
def test_parameters_that_are_no_predicate(
    session: LanceSessionContext, query: str, values: dict[str, Any] | None, says: str
) -> None:
    call = "SELECT id FROM t WHERE any_element(d, $p)"
    with pytest.raises(InvalidArgumentError) as refusal:
        session.sql(query.format(call), param_values=values)
    assert refusal.value.argument == "predicate"
    assert says in str(refusal.value)


def test_options(session: LanceSessionContext) -> None:
    forbidding = SQLOptions().with_allow_ddl(False)
    assert session.sql(f"SELECT id FROM t WHERE {CAR}", forbidding).count() == 2
    with pytest.raises(Exception, match="DDL not supported"):
        session.sql(f"CREATE VIEW v AS SELECT id FROM t WHERE {CAR}", forbidding)
    assert not session.table_exist("v")


@pytest.mark.parametrize(
    ("call", "argument", "takes"),
    [
        ("any_element(id, 'label = 1')", "list_expr", "a list of structs"),
        ("any_element(place, 'label = 1')", "list_expr", "a list of structs"),
        ("any_element([1, 2], 'label = 1')", "list_expr", "a list of structs"),
        ("any_element(NULL, 'label = 1')", "list_expr", "a list of structs"),
        ("any_element(d, place)", "predicate", "a string literal"),
        ("any_element(d, 1)", "predicate", "a string literal"),
        ("any_element(d, concat('label', ' = 1'))", "predicate", "a string literal"),
        ("any_element(d, NULL)", "predicate", "a string literal"),
        ("any_element(d, $1)", "predicate", r"a string literal, .*"),
        ("any_element(d, E'label=1')", "predicate", r"E'label=1'.* a plain string literal, 'text'"),
        ("any_element(d, X'00')", "predicate", r"X'00'.* a plain string literal, 'text' or \$\$"),
        ("any_element(d)", "any_element", "a list expression and a predicate"),
        ("any_element()", "any_element", "a list expression and a predicate"),
        ("any_element(d, 'TRUE', 1)", "any_element", "a list expression and a predicate"),
        ("any_element(d, 'nope = 1')", "predicate", "label, confidence; nope is none of them"),
        ("any_element(d, 'id = 1')", "predicate", "label, confidence; id is none of them"),
        ("any_element(parts, 'confidence = 1')", "predicate", "size, label; confidence is none"),
        ("any_element(d, 'label = ')", "predicate", "one boolean expression"),
    ],
)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM t WHERE {}",
        "SELECT {} FROM t",
        "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM t u WHERE NOT {})",
        "CREATE VIEW v AS SELECT id FROM t WHERE {}",
    ],
)
def test_refusals_come_at_planning(
    session: LanceSessionContext, query: str, call: str, argument: str, takes: str
) -> None:
    if "EXISTS" in query:
        call = call.replace("(d", "(u.d").replace("(id", "(u.id").replace("(place", "(u.place")
        call = call.replace("(parts", "(u.parts").replace(", place", ", u.place")
    with pytest.raises(InvalidArgumentError, match=takes) as refusal:
        session.sql(query.format(call))
    assert refusal.value.argument == argument
    assert not session.table_exist("v")


@pytest.mark.parametrize(
    ("query", "error"),
    [
        (f"SELECT id FRM t WHERE {CAR}", "ParserError"),
        (f"SELECT id FROM nowhere WHERE {CAR}", "table 'datafusion.public.nowhere' not found"),
        (f"SELECT nope FROM t WHERE {CAR}", "No field named nope"),
        ("SELECT id FROM t WHERE any_element(nope, 'label = 1')", "No field named nope"),
        ("SELECT id FROM t WHERE any_element(d, 'label = 1", "Unterminated string literal"),
        (f"SELECT place FROM t WHERE {CAR} GROUP BY id", "place"),
        (f"SELECT 1; SELECT id FROM t WHERE {CAR}", "single"),
        (f"SELECT * FROM 'any.csv' WHERE {CAR}", "not found"),
    ],
)
def test_other_errors_are_datafusion_s(
    session: LanceSessionContext, query: str, error: str
) -> None:
    with pytest.raises(Exception, match=error) as raised:
        session.sql(query).collect()
    assert not isinstance(raised.value, InvalidArgumentError)


@pytest.mark.parametrize("name", ["array_has", "list_has"])
@pytest.mark.parametrize("where", ["statement", "predicate", "parameter", "text"])
def test_a_function_in_the_place_of_one_that_has_several_names(
    session: LanceSessionContext, name: str, where: str
) -> None:
    """The copies that a call is planned in have the functions of the session, and not now and
    then DataFusion's own."""
    kinds = [pa.list_(pa.string()), pa.string()]
    always = udf(lambda lists, _: pa.array([True] * len(lists)), kinds, pa.bool_(), "stable", name)
    session.register_udf(always)
    call = f"{name}([''x''], ''y'')" if where == "predicate" else f"{name}(['x'], 'y')"
    for number in range(20):
        if where == "statement":
            found = rows(session, f"SELECT id FROM t WHERE {CAR} AND {call} AND id > {-number}")
        elif where == "predicate":
            predicate = f"'label = ''car'' AND {call} AND confidence > {-number}'"
            found = rows(session, f"SELECT id FROM t WHERE any_element(d, {predicate})")
        elif where == "parameter":
            predicate = f"label = 'car' AND {call} AND confidence > {-number}"
            query = "SELECT id FROM t WHERE any_element(d, $p)"
            frame = session.sql(query, param_values={"p": predicate})
            found = [(one,) for one in frame.to_pydict()["id"]]
        else:
            frame = session.table("t").filter(f"{CAR} AND {call} AND id > {-number}")
            found = [(one,) for one in frame.to_pydict()["id"]]
        assert sorted(found) == [(0,), (1,)][number == 0 and where in ("statement", "text") :]


def test_a_function_of_the_same_name_keeps_working(session: LanceSessionContext) -> None:
    own = udf(lambda a, b: a, [pa.int64(), pa.string()], pa.int64(), "immutable", "any_element")
    session.register_udf(own)
    assert rows(session, "SELECT any_element(id, 'x') FROM t WHERE id = 3") == [(3,)]
    session.deregister_udf("any_element")
    assert rows(session, f"SELECT id FROM t WHERE {CAR}") == [(0,), (1,)]


@pytest.mark.parametrize(
    "statements",
    [
        (
            "CREATE TABLE any_element (x INT, y INT)",
            "INSERT INTO any_element (x, y) VALUES (1, 2)",
            "SELECT x FROM any_element",
            "DROP TABLE any_element",
        ),
        ("WITH any_element(x, y) AS (SELECT 1, 2) SELECT x FROM any_element",),
        ("SELECT x FROM (SELECT 1, 2) AS any_element(x, y)",),
        ("CREATE VIEW any_element (x, y) AS SELECT 1, 2", "SELECT x FROM any_element"),
        (f"SELECT any_element.id AS x FROM t any_element WHERE id = 1 AND {CAR}",),
    ],
)
def test_other_things_of_that_name(session: LanceSessionContext, statements: Sequence[str]) -> None:
    for statement in statements:
        result = session.sql(statement)
        if " x" in statement and "FROM any_element" in statement:
            assert rows(session, statement) == [(1,)]
        else:
            result.collect()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CAR, [0, 1]),
        (f"NOT {CAR}", [2]),
        (f"{CAR} AND id > 0 OR any_element(parts, 'size = 5')", [1, 3]),
        ("any_element(large, 'confidence > 0.98')", [5]),
        (f"any_element(CASE WHEN {CAR} THEN d END, 'label = ''dog''')", [0]),
        ("place = 'any_element(' AND id = 1", []),
    ],
)
def test_texts_for_dataframes(
    session: LanceSessionContext, text: str, expected: Sequence[int]
) -> None:
    table = session.table("t")
    assert table.filter(text).sort("id").to_pydict()["id"] == expected
    answers = table.with_column("a", text).filter("a").sort("id").to_pydict()["id"]
    assert answers == expected
    answers = table.with_columns(f"{text} AS a").filter("a").sort("id").to_pydict()["id"]
    assert answers == expected
    assert table.filter(table.parse_sql_expr(text)).count() == len(expected)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("any_element(id, 'k = 1')", "list_expr: got 'int64', takes a list of structs"),
        ("any_element(d, 'nope = 1')", "nope is none of them"),
        ("any_element(d, place)", "predicate: .*a string literal"),
        ("any_element(nope, 'k = 1')", "No field named nope"),
        (f"{CAR} AND nope", "No field named nope"),
    ],
)
def test_texts_that_dataframes_refuse(session: LanceSessionContext, text: str, error: str) -> None:
    with pytest.raises(Exception, match=error):
        session.table("t").filter(text)


def test_texts_for_dataframes_in_another_dialect() -> None:
    session = LanceSessionContext()
    session.register_record_batches("t", [ROWS.to_batches()])
    session.sql("SET datafusion.sql_parser.dialect = 'mysql'")
    table = session.table("t")
    assert table.filter("any_element(`d`, 'label = ''car''') AND `id` > 0").count() == 1
    for text in (f"{CAR} AND \"place\" = 'place'", "any_element(\"d\", 'label = 1')"):
        with pytest.raises(InvalidArgumentError, match="dialect"):
            table.filter(text)
    own = udf(lambda a, b: a, [pa.int64(), pa.string()], pa.int64(), "immutable", "any_element")
    session.register_udf(own)
    assert session.table("t").filter("any_element(id, 'x') = 3").count() == 1


def test_other_sessions_are_not_affected(session: LanceSessionContext) -> None:
    session.sql(f"SELECT id FROM t WHERE {CAR}").collect()
    for plain in (SessionContext(), session.plain):
        with pytest.raises(Exception, match="any_element"):
            plain.sql("SELECT any_element([{'k': 1}], 'k = 1')")
    dialect = session.sql("SHOW datafusion.sql_parser.dialect").to_pydict()["value"]
    assert dialect == ["generic"]
    assert "any_element" not in session.udfs()


def test_without_indexes_and_wrapped() -> None:
    context = SessionContext()
    context.register_record_batches("t", [ROWS.to_batches()])
    for session in (
        LanceSessionContext.wrap(context),
        LanceSessionContext.wrap(context, use_indexes=False),
    ):
        assert rows(session, f"SELECT id FROM t WHERE {CAR}") == [(0,), (1,)]


@pytest.mark.parametrize(
    "dialect",
    ["generic", "mysql", "postgresql", "hive", "sqlite", "snowflake", "redshift", "mssql",
     "clickhouse", "bigquery", "ansi", "duckdb", "databricks", "spark"],
)  # fmt: skip
def test_every_dialect(dialect: str) -> None:
    session = LanceSessionContext()
    session.register_record_batches("t", [ROWS.to_batches()])
    session.sql(f"SET datafusion.sql_parser.dialect = '{dialect}'")
    for _ in range(2):
        assert rows(session, f"SELECT id FROM t WHERE {CAR} AND id > 0") == [(1,)]
    nested = f"SELECT id FROM t WHERE id IN (SELECT id FROM t WHERE {CAR})"
    assert sorted(rows(session, nested)) == [(0,), (1,)]


@pytest.mark.parametrize("start", ["", "EXPLAIN "])
def test_beside_a_lambda(start: str) -> None:
    session = LanceSessionContext(SessionConfig().set("datafusion.sql_parser.dialect", "duckdb"))
    session.register_record_batches("t", [ROWS.to_batches()])
    dog = "array_any_match(d, e -> e['label'] = 'dog')"
    query = f"{start}SELECT id FROM t WHERE {CAR} AND {dog}"
    found = session.sql(query).to_pydict()
    assert start or found == {"id": [0]}


def test_prepared_where_another_literal_is_the_predicate_s_text() -> None:
    session = LanceSessionContext(SessionConfig().set("datafusion.sql_parser.dialect", "duckdb"))
    lists = pa.array(
        [[{"flag": True}], [{"flag": False}]], pa.list_(pa.struct([("flag", pa.bool_())]))
    )
    table = pa.table({"id": [0, 1], "s": ["flag", "flag"], "d": lists})
    session.register_record_batches("t", [table.to_batches()])
    session.sql(
        "PREPARE p AS SELECT id FROM t WHERE any_element(d, 'flag') "
        "AND array_any_match(d, e -> e['flag']) AND s = 'flag' AND id < $1"
    )
    assert session.sql("EXECUTE p(5)").to_pydict() == {"id": [0]}


@pytest.mark.parametrize("dialect", ["mysql", "postgresql", "snowflake", "spark"])
def test_aggregates_of_a_call_in_every_dialect(dialect: str) -> None:
    """They are one aggregate where they are the same call."""
    session = LanceSessionContext()
    session.register_record_batches("t", [ROWS.to_batches()])
    session.sql(f"SET datafusion.sql_parser.dialect = '{dialect}'")
    query = f"SELECT place, bool_or({CAR}) FROM t GROUP BY place HAVING bool_or({CAR}) ORDER BY 1"
    assert rows(session, query) == [("a", True), ("b", True)]


def test_a_comment_of_the_dialect_is_none_of_another_one() -> None:
    session = LanceSessionContext()
    session.register_record_batches("t", [ROWS.to_batches()])
    session.sql("SET datafusion.sql_parser.dialect = 'snowflake'")
    query = f"SELECT id // + 1\n FROM t WHERE {CAR} // AND id > 0"
    for _ in range(2):
        with pytest.raises(InvalidArgumentError, match="dialect"):
            session.sql(query)
    query = f"SELECT 4 // 2\n, id FROM t WHERE {CAR}"
    with pytest.raises(InvalidArgumentError, match="dialect"):
        session.sql(query)


def test_a_function_in_a_predicate_may_be_replaced() -> None:
    """It then is another one for each statement, also where the text is the same as before."""
    session = LanceSessionContext()
    lists = pa.array([[{"k": 0}]], pa.list_(pa.struct([("k", pa.int64())])))
    session.register_record_batches("t", [[pa.RecordBatch.from_arrays([lists], ["d"])]])
    query = "SELECT any_element(d, 'f(k) IN (0, 1)') AS a, {} AS n FROM t"

    def negative_zeros(numbers: pa.Array) -> pa.Array:
        return pa.array([-0.0] * len(numbers), pa.float64())

    for function, returned in (
        (lambda numbers: numbers, pa.int64()),
        (negative_zeros, pa.float64()),
    ):
        session.register_udf(udf(function, [pa.int64()], returned, "immutable", "f"))
        for n in (0, 1):
            assert rows(session, query.format(n)) == [(True, n)]
    session.deregister_udf("f")
    with pytest.raises(InvalidArgumentError, match=r"predicate: .*Invalid function 'f'"):
        session.sql(query.format(2))


def test_what_dialects_read_differently_is_refused() -> None:
    session = LanceSessionContext()
    session.register_record_batches("t", [ROWS.to_batches()])
    session.sql("SET datafusion.sql_parser.dialect = 'mysql'")
    assert rows(session, 'SELECT "place" FROM t WHERE id = 0') == [("place",)]
    with pytest.raises(InvalidArgumentError, match="dialect"):
        session.sql(f'SELECT "place" FROM t WHERE {CAR}')
    with pytest.raises(InvalidArgumentError, match="predicate"):
        session.sql("SELECT id FROM t WHERE any_element(d, 'label = \"car\"')")


def test_what_a_repeated_statement_means_follows_its_table() -> None:
    session = LanceSessionContext()
    query = "SELECT any_element(d, 'k IN (0, 1)') AS a FROM t"
    for type_, value in ((pa.int64(), 0), (pa.float64(), -0.0), (pa.float32(), -0.0)):
        lists = pa.array([[{"k": value}]], pa.list_(pa.struct([("k", type_)])))
        session.register_record_batches("t", [[pa.RecordBatch.from_arrays([lists], ["d"])]])
        assert rows(session, query) == rows(session, query) == [(True,)]
        session.deregister_table("t")
    lists = pa.array([[{"j": 0}]])
    session.register_record_batches("t", [[pa.RecordBatch.from_arrays([lists], ["d"])]])
    with pytest.raises(InvalidArgumentError, match="k is none of them"):
        session.sql(query)
    session.sql("SET datafusion.sql_parser.enable_ident_normalization = false")
    with pytest.raises(InvalidArgumentError, match='"J" is none of them'):
        session.sql("SELECT any_element(d, 'J = 0') FROM t")


def test_threads_share_a_session(session: LanceSessionContext) -> None:
    failures: list[BaseException] = []

    def ask(number: int) -> None:
        try:
            for turn in range(10):
                query = f"SELECT id FROM t WHERE {CAR} AND id <> {number * 100 + turn + 10}"
                assert sorted(rows(session, query)) == [(0,), (1,)]
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
