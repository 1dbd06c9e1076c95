"""Predicates further up than a scan: which of them narrow it, and what EXPLAIN says of others."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest
from datafusion import Accumulator, SessionContext, col, lit, udaf, udf
from datafusion import functions as f

from datafusion_lance.engine import LanceSessionContext
from datafusion_lance.indexes.manifest import LanceIndex
from datafusion_lance.indexes.query import And, HasAny, Is, Not, Or, Query, Superset
from datafusion_lance.rewrites.aggregate_filter import aggregate_filter
from datafusion_lance.rewrites.row_demands import true_on_missing_row

from ..oracle_rows import Comparison, TwiceStored
from ..plan_shape_tables import memory, session, store_tables

_INDEX = LanceIndex("tags_idx", "LabelList", (1,), ())
NIGHT = HasAny(_INDEX, "tags", pa.array(["night"]), match_null=False)
RAIN = HasAny(_INDEX, "tags", pa.array(["rain"]), match_null=False)


@pytest.fixture(autouse=True)
def null_lists_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HasAny, "null_known", property(lambda self: self is not None))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (lambda: NIGHT, False),
        (lambda: Not(NIGHT), False),
        (lambda: Is(NIGHT, True), False),
        (lambda: Is(NIGHT, None), True),
        (lambda: Is(NIGHT, False), False),
        (lambda: Not(Is(NIGHT, True)), True),
        (lambda: Not(Is(NIGHT, None)), False),
        (lambda: And((NIGHT, Is(RAIN, None))), False),
        (lambda: And((Is(NIGHT, None), Is(RAIN, None))), True),
        (lambda: Or((NIGHT, RAIN)), False),
        (lambda: Or((NIGHT, Is(RAIN, None))), True),
        (lambda: Not(And((NIGHT, Is(RAIN, True)))), True),
        (lambda: Superset(NIGHT), False),
        (lambda: Superset(Is(NIGHT, None)), True),
    ],
)
def test_value_on_a_row_that_an_outer_join_misses(query: object, expected: bool) -> None:
    made: Query = query()  # pyright: ignore[reportCallIssue]
    assert true_on_missing_row(made) is expected


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[TwiceStored, ...]:
    return store_tables(tmp_path_factory.mktemp("demands"))


@pytest.fixture(scope="module")
def indexed(tables: tuple[TwiceStored, ...]) -> LanceSessionContext:
    return session(tables, use_indexes=True)


@pytest.fixture(scope="module")
def plain(tables: tuple[TwiceStored, ...]) -> SessionContext:
    return memory(tables)


def explained(context: SessionContext, query: str) -> dict[str, str]:
    rows = context.sql(f"EXPLAIN {query}").to_pydict()
    return dict(zip(rows["plan_type"], rows["plan"], strict=True))


LEFT = "FROM images i LEFT JOIN reviews r ON i.id = r.image_id"
FULL = "FROM images i FULL JOIN reviews r ON i.id = r.image_id"

SERVED = [
    f"SELECT i.shot, r.review {LEFT} WHERE array_has(r.words, 'sharp')",
    f"SELECT i.shot, r.review {LEFT} WHERE NOT array_has(r.words, 'sharp')",
    f"SELECT i.shot, r.review {LEFT} WHERE array_has(r.words, 'sharp') AND r.stars IS NULL",
    f"SELECT i.shot, r.review {FULL} WHERE array_has(r.words, 'sharp')",
    f"SELECT i.shot, r.review {FULL} WHERE array_has(i.tags, 'night') AND r.review IS NULL",
    f"SELECT i.shot, r.review {FULL} WHERE any_element(i.boxes, 'label = ''car''')",
    # A join that misses rows, on either side of another one.
    f"SELECT x.shot, c.serial FROM (SELECT i.shot, i.camera_id, r.words {LEFT}) x "
    "LEFT JOIN cameras c ON c.id = x.camera_id WHERE array_has(x.words, 'sharp')",
    f"SELECT x.shot, c.serial FROM cameras c LEFT JOIN (SELECT i.shot, i.camera_id, r.words {LEFT})"
    " x ON c.id = x.camera_id WHERE array_has(x.words, 'sharp')",
    # An OR of conditions on two tables.
    "SELECT i.shot, c.serial FROM images i JOIN cameras c ON i.camera_id = c.id WHERE "
    "(array_has(i.tags, 'night') AND c.year > 2010) OR (array_has(i.tags, 'sea') AND c.id < 9)",
    "SELECT i.shot FROM images i LEFT JOIN cameras c ON i.camera_id = c.id AND "
    "((array_has(c.features, 'gps') AND i.shot > 9) OR "
    "(array_has(c.features, 'raw') AND i.id > 3))",
    # Groups and partitions of the column.
    "SELECT * FROM (SELECT DISTINCT ON (tags) tags AS t, shot AS s FROM images ORDER BY tags, shot)"
    " WHERE array_has(t, 'night')",
    "SELECT * FROM (SELECT tags, max(shot) OVER (PARTITION BY tags, place) AS m FROM images) "
    "WHERE array_has(tags, 'night')",
    # The FILTER of every aggregate.
    "SELECT count(*) FILTER (WHERE array_has(tags, 'night')), max(shot) FILTER (WHERE "
    "any_element(boxes, 'label = ''car''')) FROM images",
    f"SELECT count(*) FILTER (WHERE array_has(r.words, 'sharp')) AS n {LEFT}",
]


@pytest.mark.parametrize("query", SERVED)
def test_served(query: str, indexed: LanceSessionContext, plain: SessionContext) -> None:
    assert "IndexScan: " in explained(indexed, query)["physical_plan"]
    Comparison().assert_equal(indexed.sql(query), plain.sql(query), query)


BLOCKED = [
    (
        f"SELECT i.shot, r.review {LEFT} WHERE array_has(r.words, 'sharp') IS NOT TRUE",
        "table reviews: NOT (array_has(words, 'sharp') IS TRUE): it is TRUE where an outer join "
        "finds no row of the table",
    ),
    (
        f"SELECT i.shot, r.review {LEFT} WHERE r.words IS NULL",
        "it is TRUE where an outer join finds no row of the table",
    ),
    (
        f"SELECT i.shot, r.review {LEFT} AND array_has(i.tags, 'night')",
        "table images: array_has(tags, 'night'): it is in the ON of a join that keeps rows on "
        "which it is not TRUE",
    ),
    (
        f"SELECT i.shot, r.review {FULL} AND array_has(i.tags, 'night')",
        "it is in the ON of a join that keeps rows on which it is not TRUE",
    ),
    (
        "SELECT shot FROM (SELECT * FROM images ORDER BY shot LIMIT 50) "
        "WHERE array_has(tags, 'night')",
        "table images: array_has(tags, 'night'): it is above a LIMIT",
    ),
    (
        "SELECT * FROM (SELECT shot, tags, row_number() OVER (ORDER BY shot) AS r FROM images) "
        "WHERE array_has(tags, 'night')",
        "it is above a window that is not partitioned by its column",
    ),
    (
        "SELECT * FROM (SELECT tags, max(shot) OVER (PARTITION BY tags) AS a, max(shot) OVER "
        "(PARTITION BY place) AS b FROM images) WHERE array_has(tags, 'night')",
        "it is above a window that is not partitioned by its column",
    ),
    (
        "SELECT place, count(*) FILTER (WHERE array_has(tags, 'night')) AS n FROM images "
        "GROUP BY place",
        "groups in which an aggregate's FILTER finds no row stay in the answer",
    ),
    (
        "SELECT count(*) FILTER (WHERE array_has(tags, 'night')) AS n, count(*) AS m FROM images",
        "another aggregate beside it takes other rows",
    ),
]


@pytest.mark.parametrize(("query", "reason"), BLOCKED)
def test_not_served_for_a_reason_that_explain_gives(
    query: str, reason: str, indexed: LanceSessionContext, plain: SessionContext
) -> None:
    plans = explained(indexed, query)
    assert "IndexScan: " not in plans["physical_plan"]
    assert reason in plans["index_notes"]
    Comparison().assert_equal(indexed.sql(query), plain.sql(query), query)


def test_a_filter_of_an_aggregate_may_call_a_registered_function(
    indexed: LanceSessionContext, plain: SessionContext
) -> None:
    unpicklable = threading.Lock()

    def is_placed(place: pa.Array) -> pa.Array:
        with unpicklable:
            return place.is_valid()

    own = udf(is_placed, [pa.string()], pa.bool_(), "immutable", "is_placed")
    for context in (indexed, plain):
        context.register_udf(own)
    query = (
        "SELECT count(*) FILTER (WHERE is_placed(place) AND array_has(tags, 'night')) AS n, "
        "count(*) AS m FROM images"
    )
    Comparison().assert_equal(indexed.sql(query), plain.sql(query), query)


def test_a_registered_first_value_is_not_datafusions(tables: tuple[TwiceStored, ...]) -> None:
    class Constant(Accumulator):
        def state(self) -> list[pa.Scalar]:
            return [pa.scalar(["night"])]

        def update(self, *values: pa.Array) -> None:
            pass

        def merge(self, states: list[pa.Array]) -> None:
            pass

        def evaluate(self) -> pa.Scalar:
            return pa.scalar(["night"])

    lists = pa.list_(pa.string())
    contexts = session(tables, use_indexes=True), memory(tables)
    for context in contexts:
        context.register_udaf(udaf(Constant, [lists], lists, [lists], "immutable", "first_value"))
    query = (
        "SELECT n FROM (SELECT first_value(tags) AS t, count(*) AS n FROM images GROUP BY tags) "
        "WHERE array_has(t, 'night')"
    )

    ours, plain = (context.sql(query) for context in contexts)
    Comparison().assert_equal(ours, plain, query)


def test_the_filter_of_a_call() -> None:
    call = f.sum(col("a"), filter=f.array_has(col("tags"), lit("night"))).alias("s")

    read = aggregate_filter(call, SessionContext())

    assert read is not None
    assert read.variant_name() == "ScalarFunction"
    assert str(read.rex_call_operands()[0]) == "Expr(tags)"
    assert aggregate_filter(col("a"), SessionContext()) is None
