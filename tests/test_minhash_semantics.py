"""A MinHash index changes no answer of a distance: with it, without it, and over rows in memory."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from datafusion import col, lit, udf
from hypothesis import given
from hypothesis import strategies as st

from datafusion_lance.engine import LanceSessionContext
from datafusion_lance.udfs import minhash_distance

from .indexes.effort import one_in
from .minhash_tables import INDEX, Sessions, assert_nearest, base_texts, store
from .oracle_rows import index_scans, plan_text

QUERY = base_texts()[0]
NEAR = f"minhash_distance(u, '{QUERY}')"
LIKE = f"minhash_similarity(u, '{QUERY}')"


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Sessions:
    path = tmp_path_factory.mktemp("minhash") / "t"
    store(path, stable_row_ids=False, parameters={})
    return Sessions.over(path)


@pytest.fixture(scope="module")
def stable(tmp_path_factory: pytest.TempPathFactory) -> Sessions:
    """The same with stable row ids."""
    path = tmp_path_factory.mktemp("stable") / "t"
    store(path, stable_row_ids=True, parameters={})
    return Sessions.over(path)


def check(sessions: Sessions, statement: str, *, served: bool | None = True) -> None:
    """All three give the same rows in the same order, which the statement settles.

    `served` says whether the MinHash index is used, where DataFusion reads the table at all.
    """
    wanted = sessions.memory.sql(statement).to_pylist()
    assert sessions.plain.sql(statement).to_pylist() == wanted
    assert sessions.indexed.sql(statement).to_pylist() == wanted
    if served is not None and "TableScan: t" in plan_text(sessions.plain.sql(statement)):
        scans = index_scans(sessions.indexed.sql(statement))
        assert any(INDEX in scan for scan in scans) == served


# -- bounds ---------------------------------------------------------------------------------


@pytest.mark.parametrize("outer", ["{}", "NOT ({})", "({}) IS NULL", "({}) IS NOT TRUE"])
@pytest.mark.parametrize(
    "bound",
    [
        f"{NEAR} <= 0.25",
        f"{NEAR} < 0.25",
        f"{NEAR} = 0.25",
        f"{NEAR} <> 0",
        f"{NEAR} > 0.25",
        f"{NEAR} >= 0.25",
        f"0.25 >= {NEAR}",
        f"0.25 < {NEAR}",
        f"minhash_distance('{QUERY}', u) <= 0.25",
        f"{NEAR} BETWEEN 0.1 AND 0.5",
        f"{NEAR} NOT BETWEEN 0.1 AND 0.5",
        f"{NEAR} IN (0, 0.25, 0.5)",
        f"{NEAR} NOT IN (0, 0.25, 0.5, 1, 0.75)",
        f"{NEAR} IS NULL",
        f"{NEAR} IS NOT NULL",
        f"{NEAR} IS DISTINCT FROM 0",
        f"{NEAR} IS NOT DISTINCT FROM 0",
        f"{LIKE} >= 0.75",
        f"{LIKE} > 0.75",
        f"{LIKE} = 1",
        f"1 - {LIKE} <= 0.25",
        f"1 - {NEAR} >= 0.75",
        f"{NEAR} * 100 <= 25",
        f"{NEAR} / 2 + 1 <= 1.2",
        f"CAST({NEAR} AS FLOAT) <= 0.1",
        f"CAST({NEAR} AS FLOAT) <= arrow_cast(0.1, 'Float32')",
        f"{NEAR} <= arrow_cast(0.3, 'Float32')",
        f"{NEAR} <= arrow_cast(0.3, 'Decimal128(5, 2)')",
        f"{NEAR} <= arrow_cast(0.25, 'Decimal128(38, 10)')",
        f"{NEAR} < 1",
        f"{NEAR} <= 2",
        f"{NEAR} < 0",
        f"{NEAR} >= -0.0",
        f"{NEAR} <= -0.0",
        f"{NEAR} = -0.0",
        f"{NEAR} < 'NaN'",
        f"{NEAR} <> 'NaN'",
        f"{NEAR} = 'NaN'",
        f"{NEAR} >= 'NaN'",
        f"{NEAR} < 'inf'",
        f"{NEAR} > '-inf'",
        f"{NEAR} IS DISTINCT FROM 'NaN'",
        f"{NEAR} IS DISTINCT FROM -0.0",
        f"-0.0 IS NOT DISTINCT FROM {LIKE}",
        f"{LIKE} * -1 >= 0.0",
        "minhash_distance(u, ' . ') <= 1",
        "minhash_distance(u, '') IS NULL",
        "minhash_distance(u, 'ant') <= 1",
        "minhash_distance(u, NULL) IS NULL",
        f"minhash_distance(arrow_cast(u, 'LargeUtf8'), '{QUERY}') <= 0.25",
        f"minhash_distance(CAST(u AS TEXT), '{QUERY}') <= 0.25",
    ],
)
def test_a_bound(sessions: Sessions, bound: str, outer: str) -> None:
    check(sessions, f"SELECT i FROM t WHERE {outer.format(bound)} ORDER BY i")


@pytest.mark.parametrize(
    "condition",
    [
        f"{NEAR} <= 0.25 AND x = 2",
        f"{NEAR} <= 0.25 AND u LIKE '%owl%'",
        f"{NEAR} <= 0.5 AND array_has(tags, 'a')",
        f"{NEAR} <= 0.25 OR array_has(tags, 'a')",
        f"NOT ({NEAR} <= 0.5 OR array_has(tags, 'a'))",
        f"{NEAR} <= 0.5 AND any_element(boxes, 'label = ''car''')",
        f"({NEAR} <= 0.5 AND NOT array_has(tags, 'a')) IS NULL",
        f"{NEAR} <= 0.5 AND {NEAR} >= 0.25 AND {NEAR} <> 0.375",
        f"{NEAR} <= 0.3 AND minhash_distance(u, '{base_texts()[1]}') <= 0.3",
        f"{NEAR} <= 0.3 OR minhash_distance(u, '{base_texts()[1]}') <= 0.3",
        f"{NEAR} <= 0.3 OR {NEAR} >= 0.9",
        f"NOT ({NEAR} <= 0.3 OR {NEAR} >= 0.9) AND x IS NOT NULL",
    ],
)
def test_bounds_among_other_conditions(
    sessions: Sessions, stable: Sessions, condition: str
) -> None:
    for each in (sessions, stable):
        check(each, f"SELECT i, u FROM t WHERE {condition} ORDER BY i")


@pytest.mark.parametrize(
    "condition",
    [
        f"round({NEAR}, 1) <= 0.2",
        f"{NEAR} <= x",
        f"{NEAR} <= {LIKE}",
        "minhash_distance(u, tags[1]) <= 0.5",
        f"minhash_distance(upper(u), '{QUERY}') <= 0.2",
        f"{NEAR} + random() < 3",
        f"CAST({NEAR} * 100 AS INT) < 25",
        f"-{NEAR} > -0.25",
    ],
)
def test_what_no_index_answers(sessions: Sessions, condition: str) -> None:
    statement = f"SELECT i FROM t WHERE {condition} ORDER BY i"
    check(sessions, statement, served=False)
    assert f"index {INDEX}: " in notes(sessions, statement)


def notes(sessions: Sessions, statement: str) -> str:
    rows = sessions.indexed.sql(f"EXPLAIN {statement}").to_pydict()
    return dict(zip(rows["plan_type"], rows["plan"], strict=True)).get("index_notes", "")


@pytest.mark.parametrize(
    "items",
    ["-0.0", "-0.0, 0.5", "0.0, -0.0", "-0.0, 0.5, 0.25, 0.125, 1", "'NaN', 0.5", "NULL, 0"],
)
def test_a_list_of_bounds(sessions: Sessions, items: str) -> None:
    for operator in ("IN", "NOT IN"):
        statement = f"SELECT i FROM t WHERE {NEAR} {operator} ({items}) ORDER BY i"
        check(sessions, statement, served=None)


literals = (
    st.floats(width=64)
    | st.floats(-0.2, 1.2)
    | st.integers(0, 128).map(lambda k: k / 128)
    | st.sampled_from([0.0, -0.0, 0.1, 0.2, 0.3, 0.7])
)


@one_in(2)
@given(
    number=literals,
    operator=st.sampled_from(["<", "<=", "=", "<>", ">", ">=", "IS DISTINCT FROM"]),
    call=st.sampled_from([NEAR, LIKE, f"1 - {LIKE}", f"1 - {NEAR}", f"{NEAR} * 3 - 0.1"]),
    kind=st.sampled_from(["Float64", "Float32"]),
    wrapped=st.sampled_from(["{}", "CAST({} AS FLOAT)"]),
    flipped=st.booleans(),
)
def test_any_float_as_bound(
    sessions: Sessions,
    number: float,
    operator: str,
    call: str,
    kind: str,
    wrapped: str,
    flipped: bool,
) -> None:
    literal = f"arrow_cast('{number!r}', '{kind}')"
    left, right = wrapped.format(call), literal
    if flipped:
        left, right = right, left
    check(sessions, f"SELECT i FROM t WHERE {left} {operator} {right} ORDER BY i", served=None)


@one_in(4)
@given(
    unscaled=st.integers(-(10**5), 13 * 10**6),
    precision=st.integers(8, 38),
    scale=st.integers(0, 7),
    operator=st.sampled_from(["<", "<=", "=", "<>", ">", ">="]),
)
def test_any_decimal_as_bound(
    sessions: Sessions, unscaled: int, precision: int, scale: int, operator: str
) -> None:
    literal = f"arrow_cast('{unscaled / 10**scale:.{scale}f}', 'Decimal128({precision}, {scale})')"
    statement = f"SELECT i FROM t WHERE {NEAR} {operator} {literal} ORDER BY i"
    check(sessions, statement, served=None)


# -- the nearest ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT i FROM t ORDER BY {d}, i LIMIT 10",
        "SELECT i, {d} AS d FROM t ORDER BY d, i LIMIT 10",
        "SELECT i, {d} FROM t ORDER BY 2, 1 LIMIT 10",
        "SELECT i, {d} AS d FROM t ORDER BY d, i DESC LIMIT 10 OFFSET 7",
        "SELECT i, u FROM t ORDER BY {d} NULLS FIRST, i LIMIT 45",
        "SELECT i FROM t ORDER BY {d}, x DESC, i LIMIT 60",
        "SELECT i FROM t ORDER BY {s} DESC NULLS LAST, i LIMIT 10",
        "SELECT i FROM t ORDER BY {s} DESC, i LIMIT 5",
        "SELECT i FROM t ORDER BY {s} DESC, i LIMIT 90",
        "SELECT i, 1 - {s} AS away FROM t ORDER BY away, i LIMIT 10",
        "SELECT i FROM t ORDER BY CAST({d} AS FLOAT), i LIMIT 10",
        "SELECT i FROM t ORDER BY 3 * {d} + 0.5, i LIMIT 10",
        "SELECT i FROM t ORDER BY minhash_distance('{q}', u), i LIMIT 10",
        "SELECT i FROM t ORDER BY {d}, i LIMIT 1",
        "SELECT i FROM t ORDER BY {d}, i LIMIT 300",
        "SELECT i FROM t ORDER BY {d}, i LIMIT 1000000",
        "SELECT * FROM (SELECT i, u AS w FROM t) s ORDER BY minhash_distance(s.w, '{q}'), i "
        "LIMIT 9",
        "SELECT * FROM (SELECT i, u AS w FROM t WHERE x = 1) ORDER BY minhash_distance(w, '{q}'), "
        "i LIMIT 9",
        "SELECT i FROM (SELECT x AS i, i AS u, u AS w, {d} AS d FROM t) s ORDER BY d, u LIMIT 9",
        "SELECT * FROM (SELECT i, x FROM t ORDER BY {d}, i LIMIT 20) s WHERE x = 2 ORDER BY i",
        "WITH near AS (SELECT i, u, {d} AS d FROM t WHERE x < 4) SELECT i FROM near ORDER BY d, i "
        "LIMIT 9",
        "SELECT count(*), sum(i) FROM (SELECT i FROM t ORDER BY {d}, i LIMIT 20)",
        "SELECT x, count(*) FROM (SELECT * FROM t ORDER BY {d}, i LIMIT 50) GROUP BY x ORDER BY x",
        "SELECT o.x FROM o JOIN (SELECT i FROM t ORDER BY {d}, i LIMIT 90) n ON o.x = n.i "
        "ORDER BY o.x",
        "SELECT t.i FROM t JOIN (SELECT i FROM t ORDER BY {d}, i LIMIT 9) n ON t.i = n.i "
        "ORDER BY t.i",
        "SELECT i FROM t WHERE i IN (SELECT i FROM t ORDER BY {d}, i LIMIT 9) ORDER BY i",
        "SELECT i FROM o LEFT JOIN (SELECT i FROM t ORDER BY {d}, i LIMIT 50) n ON o.x = n.i "
        "ORDER BY o.x, i",
        "SELECT x, (SELECT i FROM t ORDER BY {d}, i LIMIT 1) FROM o ORDER BY x",
        "(SELECT i FROM t ORDER BY {d}, i LIMIT 9) UNION ALL (SELECT x FROM o) ORDER BY i",
        "(SELECT i FROM t ORDER BY {d}, i LIMIT 9) UNION (SELECT i FROM t ORDER BY "
        "minhash_distance(u, 'ant bee cat dog'), i LIMIT 5) ORDER BY i",
        "SELECT i, row_number() OVER (ORDER BY i) AS r FROM (SELECT i FROM t ORDER BY {d}, i "
        "LIMIT 9) ORDER BY i",
        "SELECT x FROM o WHERE x NOT IN (SELECT i FROM t ORDER BY {d}, i LIMIT 90) ORDER BY x",
        "SELECT x FROM o WHERE x NOT IN (SELECT i FROM t WHERE x < 3 AND u LIKE '%owl%' "
        "ORDER BY {d}, i LIMIT 20) ORDER BY x",
        "SELECT x FROM o WHERE x NOT IN (SELECT i FROM t WHERE x < 3 ORDER BY {d}, i LIMIT 20) AND "
        "x NOT IN (SELECT i FROM t WHERE array_has(tags, 'b')) ORDER BY x",
        "SELECT x FROM o WHERE x NOT IN (SELECT i FROM t WHERE x < 3 ORDER BY {d}, i LIMIT 20) AND "
        "x NOT IN (SELECT i FROM t WHERE x = 4 ORDER BY minhash_distance(u, 'ant'), i LIMIT 20) "
        "ORDER BY x",
    ],
)
def test_the_nearest(sessions: Sessions, statement: str) -> None:
    check(sessions, statement.format(d=NEAR, s=LIKE, q=QUERY))


CONDITIONS = [
    "x = 2",
    "x IN (1, NULL)",
    "x < 3 AND i > 100",
    "x IS NULL",
    "u LIKE '%owl%'",
    "u IS NULL OR x = 1",
    "CAST(x AS TEXT) = '3'",
    "i % 2 = 0",
    "length(u) > 60",
    "array_has(tags, 'a')",
    "NOT array_has(tags, 'a')",
    "array_has(tags, 'a') AND x = 2",
    "array_has(tags, 'a') OR x = 2",
    "any_element(boxes, 'label = ''car''')",
    "any_element(boxes, 'label = ''car'' AND area > 3') AND NOT array_has(tags, 'b')",
    "any_element(boxes, 'area > 3')",
    f"{NEAR} <= 0.3",
    f"{NEAR} > 0.3",
    f"{LIKE} < 0.9 AND {NEAR} < 0.9",
    "i = 50",
    "i < 0",
    "true",
    "x = 2 AND x = 3",
    f"round({NEAR}, 1) <= 0.4",
]


@pytest.mark.parametrize("limit", [10, 400])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_nearest_of_those_that_pass(
    sessions: Sessions, stable: Sessions, condition: str, limit: int
) -> None:
    check(stable, f"SELECT i FROM t WHERE {condition} ORDER BY {NEAR}, i LIMIT {limit}")
    check(
        sessions,
        f"SELECT i, d FROM (SELECT *, {LIKE} AS d FROM t WHERE {condition}) "
        f"ORDER BY d DESC, i LIMIT {limit} OFFSET 2",
    )
    statement = f"SELECT i, x, {NEAR} AS d FROM t WHERE {condition} ORDER BY d"
    assert_nearest(sessions, statement, distance="d", limit=limit, offset=1)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT i FROM t ORDER BY {d} DESC, i LIMIT 10",
        "SELECT i FROM t ORDER BY {s}, i LIMIT 10",
        "SELECT i FROM t ORDER BY x, {d}, i LIMIT 10",
        "SELECT i FROM t ORDER BY round({d}, 1), i LIMIT 10",
        "SELECT i FROM t ORDER BY 0 * {d}, i LIMIT 10",
        "SELECT i FROM t ORDER BY -{d} DESC, i LIMIT 10",
        "SELECT i FROM t ORDER BY minhash_distance(u, tags[1]), i LIMIT 10",
        "SELECT i FROM t ORDER BY {d}, i",
        "SELECT i FROM (SELECT * FROM t ORDER BY i LIMIT 30) ORDER BY {d}, i LIMIT 10",
        "SELECT i, count(*) OVER () AS n FROM t ORDER BY {d}, i LIMIT 10",
        "SELECT DISTINCT x, {d} AS d FROM t ORDER BY d, x LIMIT 10",
        "SELECT x, min({d}) AS d FROM t GROUP BY x ORDER BY d, x LIMIT 3",
        "SELECT t.i FROM t JOIN o ON t.i = o.x ORDER BY {d}, t.i LIMIT 10",
        "SELECT t.i FROM t WHERE x IN (SELECT x FROM o WHERE x > 2) ORDER BY {d}, t.i LIMIT 10",
        "SELECT i FROM t WHERE x < 3 AND random() < 2 ORDER BY {d}, i LIMIT 10",
        "SELECT u, i, unnest(tags) AS tag FROM t ORDER BY {d}, i LIMIT 10",
    ],
)
def test_what_is_no_search_for_the_nearest(sessions: Sessions, statement: str) -> None:
    check(sessions, statement.format(d=NEAR, s=LIKE), served=False)


def test_no_rows_at_all_are_wanted(sessions: Sessions) -> None:
    check(sessions, f"SELECT i FROM t ORDER BY {NEAR} LIMIT 0", served=False)


def test_a_text_without_tokens_is_equally_far_from_all(sessions: Sessions) -> None:
    check(sessions, "SELECT i FROM t ORDER BY minhash_distance(u, ' . '), i LIMIT 10")
    check(sessions, "SELECT i FROM t ORDER BY minhash_distance(u, NULL), i LIMIT 10")
    statement = "SELECT x, minhash_distance(u, '') AS d FROM t WHERE x = 1 ORDER BY d"
    assert_nearest(sessions, statement, distance="d", limit=10)


def test_threads_share_a_session(sessions: Sessions) -> None:
    def statement(number: int) -> str:
        condition, text = CONDITIONS[number % 20], base_texts()[number % 4]
        return (
            f"SELECT i FROM t WHERE {condition} ORDER BY minhash_distance(u, '{text}'), i LIMIT 9"
        )

    with ThreadPoolExecutor(16) as threads:
        found = threads.map(lambda n: sessions.indexed.sql(statement(n)).to_pylist(), range(80))
        for number, rows in enumerate(found):
            assert rows == sessions.memory.sql(statement(number)).to_pylist()


def test_a_prepared_statement(sessions: Sessions) -> None:
    for session in (sessions.indexed, sessions.memory):
        session.sql(
            "PREPARE near(TEXT, INT) AS SELECT i FROM t WHERE x < $2 "
            "ORDER BY minhash_distance(u, $1), i LIMIT 7"
        )
    execute = f"EXECUTE near('{QUERY}', 3)"
    found = sessions.indexed.sql(execute)
    assert found.to_pylist() == sessions.memory.sql(execute).to_pylist()
    named = "SELECT i FROM t ORDER BY minhash_distance(u, $q), i LIMIT 7"
    frame = sessions.indexed.sql(named, param_values={"q": QUERY})
    wanted = sessions.memory.sql(named, param_values={"q": QUERY})
    assert frame.to_pylist() == wanted.to_pylist()
    assert any(INDEX in scan for scan in index_scans(frame))


# -- other parameters -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Sessions:
    path = tmp_path_factory.mktemp("small") / "t"
    parameters = {"num_hashes": 60, "num_bands": 12, "shingle_size": 2}
    store(path, stable_row_ids=True, parameters=parameters)
    return Sessions.over(path)


@pytest.mark.parametrize(
    ("given", "served"),
    [("60, 12, 2", True), ("60, 4, 2", True), ("60, 12, 3", False), ("120, 12, 2", False)],
)
def test_a_distance_with_parameters(small: Sessions, given: str, served: bool) -> None:
    distance = f"minhash_distance(u, '{QUERY}', {given})"
    order = f"ORDER BY minhash_distance('{QUERY}', u, {given}), i LIMIT 10"
    check(small, f"SELECT i FROM t WHERE {distance} <= 0.1 ORDER BY i", served=served)
    check(small, f"SELECT i FROM t WHERE {distance} > 0.35 AND x = 2 ORDER BY i", served=served)
    check(small, f"SELECT i FROM t WHERE x < 4 {order}", served=served)
    check(small, f"SELECT i, {distance} AS d FROM t ORDER BY d, i LIMIT 10", served=served)


def test_the_default_parameters_are_not_the_indexs(small: Sessions) -> None:
    statement = f"SELECT i FROM t WHERE {NEAR} <= 0.1 ORDER BY i"
    check(small, statement, served=False)
    assert notes(small, statement) == (
        f"table t, index {INDEX}: its signatures are not made with the parameters of "
        "minhash_distance"
    )


def test_a_users_own_function_of_the_name_is_not_served(sessions: Sessions) -> None:
    session = LanceSessionContext()
    own = udf(
        lambda a, _: pa.array([0.5] * len(a)),
        [pa.string(), pa.string()],
        pa.float64(),
        "immutable",
        "minhash_distance",
    )
    session.register_udf(own)
    session.register_lance("t", sessions.path)
    statement = f"SELECT i FROM t WHERE {NEAR} <= 0.5 ORDER BY i"
    assert len(session.sql(statement).to_pylist()) == sessions.memory.table("t").count()
    assert not index_scans(session.sql(statement))
    assert not index_scans(session.sql(f"SELECT i FROM t ORDER BY {NEAR} LIMIT 3"))


def test_dataframes(small: Sessions) -> None:
    near = minhash_distance(col("u"), QUERY, num_hashes=60, num_bands=12, shingle_size=2)
    frames = [
        session.table("t").filter(col("x") < lit(4)).sort(near, col("i")).limit(10, 2).select("i")
        for session in (small.indexed, small.memory)
    ]
    assert frames[0].to_pylist() == frames[1].to_pylist()
    assert any("nearest(u, " in scan for scan in index_scans(frames[0]))
    frames = [
        session.table("t").filter(near <= lit(0.2)).sort(col("i")).select("i")
        for session in (small.indexed, small.memory)
    ]
    assert frames[0].to_pylist() == frames[1].to_pylist()
    assert any("<= 12/60" in scan for scan in index_scans(frames[0]))
