"""Random statements of MinHash distances: the answers are those of the rows in memory."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from .indexes.effort import one_in
from .minhash_tables import INDEX, Sessions, assert_nearest, base_texts, store
from .oracle_rows import index_scans

QUERIES = [*base_texts()[:2], "owl pig owl pig", "ant", " . "]


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Sessions]:
    made: dict[bool, Sessions] = {}
    for stable in (False, True):
        path: Path = tmp_path_factory.mktemp("minhash") / "t"
        store(path, stable_row_ids=stable, parameters={})
        made[stable] = Sessions.over(path)
    return made


texts = st.sampled_from(QUERIES)
bounds = st.integers(-2, 130).map(lambda k: k / 128) | st.floats(0, 1)


@st.composite
def distances(draw: st.DrawFn) -> tuple[str, bool]:
    """An expression of the distance, and whether it grows with it."""
    text = draw(texts)
    arguments = draw(st.sampled_from([f"(u, '{text}')", f"('{text}', u)"]))
    forms = [("minhash_distance{}", True), ("minhash_similarity{}", False)]
    forms += [("1 - minhash_similarity{}", True), ("CAST(minhash_distance{} AS FLOAT)", True)]
    form, grows = draw(st.sampled_from(forms))
    return form.format(arguments), grows


@st.composite
def bounded(draw: st.DrawFn) -> str:
    form, _ = draw(distances())
    low, high = draw(bounds), draw(bounds)
    operator = draw(st.sampled_from(["<", "<=", "=", "<>", ">", ">="]))
    return draw(
        st.sampled_from(
            [
                f"{form} {operator} {low!r}",
                f"{low!r} {operator} {form}",
                f"{form} BETWEEN {low!r} AND {high!r}",
                f"{form} IN ({low!r}, {high!r})",
                f"{form} IS NULL",
            ]
        )
    )


others = st.sampled_from(
    [
        "x = 2",
        "x IN (1, NULL)",
        "x < 3",
        "i % 3 = 0",
        "u LIKE '%owl%'",
        "u IS NOT NULL",
        "CAST(x AS TEXT) > '1'",
        "array_has(tags, 'a')",
        "array_has_any(tags, ['b', 'c'])",
        "any_element(boxes, 'label = ''car''')",
        "any_element(boxes, 'label = ''dog'' AND area < 4')",
    ]
)
conditions = st.recursive(
    others | bounded(),
    lambda inner: st.one_of(
        inner.map("NOT ({})".format),
        inner.map("({}) IS NULL".format),
        st.tuples(inner, st.sampled_from(["AND", "AND", "OR"]), inner).map(
            lambda parts: f"({parts[0]}) {parts[1]} ({parts[2]})"
        ),
    ),
    max_leaves=4,
)


@one_in(1)
@given(stable=st.booleans(), condition=conditions)
def test_any_condition(sessions: dict[bool, Sessions], stable: bool, condition: str) -> None:
    tables = sessions[stable]
    statement = f"SELECT i FROM t WHERE {condition} ORDER BY i"
    wanted = tables.memory.sql(statement).to_pylist()
    assert tables.indexed.sql(statement).to_pylist() == wanted


@st.composite
def orders(draw: st.DrawFn) -> str:
    """Sort keys, the first of them a distance, mostly from the nearest on."""
    form, grows = draw(distances())
    direction = "ASC" if grows == draw(st.sampled_from([True, True, True, False])) else "DESC"
    nulls = draw(st.sampled_from(["", " NULLS FIRST", " NULLS LAST"]))
    further = draw(st.sampled_from(["", "x DESC, ", "u, ", "x NULLS FIRST, u DESC, "]))
    return f"{form} {direction}{nulls}, {further}"


SHAPES = [
    "SELECT i, x FROM t{where} ORDER BY {order}i{limit}",
    "SELECT s.i, s.x FROM (SELECT u, i, x FROM t{where}) s ORDER BY {order}i{limit}",
    "WITH c AS (SELECT x, u, i FROM t{where}) SELECT i FROM c ORDER BY {order}i{limit}",
    "SELECT * FROM (SELECT i, x FROM t{where} ORDER BY {order}i{limit}) WHERE x > 1 ORDER BY i",
    "SELECT count(*), sum(x) FROM (SELECT i, x FROM t{where} ORDER BY {order}i{limit})",
    "SELECT o.x, n.i FROM o LEFT JOIN (SELECT i FROM t{where} ORDER BY {order}i{limit}) n "
    "ON o.x = n.i ORDER BY o.x",
    "SELECT x FROM o WHERE x NOT IN (SELECT i FROM t{where} ORDER BY {order}i{limit}) ORDER BY x",
    "SELECT i FROM t WHERE i IN (SELECT i FROM t{where} ORDER BY {order}i{limit}) ORDER BY i",
    "(SELECT i FROM t{where} ORDER BY {order}i{limit}) UNION ALL (SELECT i FROM t WHERE x = 1) "
    "ORDER BY i",
]
wheres = st.just("") | conditions.map(" WHERE {}".format)
limits = st.builds(
    lambda limit, offset: f" LIMIT {limit}" + (f" OFFSET {offset}" if offset else ""),
    st.sampled_from([1, 2, 5, 10, 40, 200, 500]),
    st.sampled_from([0, 0, 1, 7, 100]),
)


@one_in(1)
@given(
    stable=st.booleans(),
    shape=st.sampled_from(SHAPES),
    where=wheres,
    order=orders(),
    limit=limits,
)
def test_any_order(
    sessions: dict[bool, Sessions], stable: bool, shape: str, where: str, order: str, limit: str
) -> None:
    tables = sessions[stable]
    statement = shape.format(where=where, order=order, limit=limit)
    wanted = tables.memory.sql(statement).to_pylist()
    frame = tables.indexed.sql(statement)
    assert frame.to_pylist() == wanted
    event("nearest" if any("nearest(" in scan for scan in index_scans(frame)) else "none")


@one_in(2)
@given(
    stable=st.booleans(),
    distance=distances(),
    where=wheres,
    limit=st.sampled_from([1, 3, 10, 50, 500]),
    offset=st.sampled_from([0, 0, 2, 30]),
)
def test_ties_may_be_broken_in_any_way(
    sessions: dict[bool, Sessions],
    stable: bool,
    distance: tuple[str, bool],
    where: str,
    limit: int,
    offset: int,
) -> None:
    form, grows = distance
    statement = f"SELECT i, x, {form} AS d FROM t{where} ORDER BY d {'ASC' if grows else 'DESC'}"
    assert_nearest(sessions[stable], statement, distance="d", limit=limit, offset=offset)


def test_most_statements_are_served(sessions: dict[bool, Sessions]) -> None:
    counts = Counter(
        any(INDEX in scan for scan in index_scans(sessions[True].indexed.sql(statement)))
        for shape in SHAPES
        for where in ("", " WHERE x = 2 AND u LIKE '%owl%'")
        for statement in [
            shape.format(
                where=where, order=f"minhash_distance(u, '{QUERIES[0]}'), ", limit=" LIMIT 5"
            )
        ]
    )
    assert counts == {True: 2 * len(SHAPES)}
