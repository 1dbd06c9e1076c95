"""`any_element` without its DataFrame: bound by the method of a LanceDataFrame that takes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from datafusion import DataFrame, SessionContext, col, lit
from datafusion import functions as f
from datafusion.expr import Expr, GroupingSet

from datafusion_lance.engine import InvalidArgumentError, LanceDataFrame, LanceSessionContext
from datafusion_lance.udfs import any_element

DETECTION = pa.struct([("label", pa.string()), ("k", pa.float32())])
LISTS = (
    [{"label": "car", "k": 0.9}, {"label": "dog", "k": 0.3}],
    [{"label": "car", "k": 0.3}],
    [],
    None,
    [None],
    [{"label": "dog", "k": 0.9}, None],
)
ROWS = pa.table(
    {
        "id": pa.array(range(6), pa.int64()),
        "d": pa.array(LISTS, pa.list_(DETECTION)),
        "large": pa.array(LISTS, pa.large_list(DETECTION)),
        "other": pa.array(
            [None, [], [{"n": 1}], [{"n": 2}], [None], []], pa.list_(pa.struct([("n", pa.int8())]))
        ),
    }
)
CAR = any_element(col("d"), "label = 'car'")
SQL_CAR = "any_element(d, 'label = ''car''')"


@pytest.fixture(scope="module", params=["Lance", "memory"])
def session(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> LanceSessionContext:
    """A session with the rows as table `t`: from Lance with an index on `d`, or from memory."""
    session = LanceSessionContext()
    if request.param == "memory":
        session.register_record_batches("t", [ROWS.to_batches()])
    else:
        path = tmp_path_factory.mktemp("deferred") / "t.lance"
        lance.write_dataset(ROWS, path, max_rows_per_file=4)
        session.register_lance("t", path)
        session.create_lance_index("t", "d", "LIST_ELEMENT", keys=["label"])
    return session


@pytest.mark.parametrize(
    ("built", "query"),
    [
        (lambda t: t.filter(CAR), "SELECT * FROM t WHERE {}"),
        (lambda t: t.filter(~CAR), "SELECT * FROM t WHERE NOT {}"),
        (lambda t: t.filter(CAR, col("id") > 0), "SELECT * FROM t WHERE {} AND id > 0"),
        (lambda t: t.filter((col("id") > 0) & CAR), "SELECT * FROM t WHERE id > 0 AND {}"),
        (lambda t: t.filter(CAR & (col("id") > 0)), "SELECT * FROM t WHERE {} AND id > 0"),
        (lambda t: t.filter((col("id") > 4) | CAR), "SELECT * FROM t WHERE id > 4 OR {}"),
        (lambda t: t.filter(CAR.is_null()), "SELECT * FROM t WHERE {} IS NULL"),
        (lambda t: t.filter(CAR.is_not_null()), "SELECT * FROM t WHERE {} IS NOT NULL"),
        (lambda t: t.filter(CAR.__eq__(lit(False))), "SELECT * FROM t WHERE {} = FALSE"),
        (lambda t: t.filter(lit(False) == CAR), "SELECT * FROM t WHERE {} = FALSE"),
        (lambda t: t.filter(CAR != True), "SELECT * FROM t WHERE {} <> TRUE"),  # noqa: E712
        (lambda t: t.filter(CAR.__lt__(lit(True))), "SELECT * FROM t WHERE {} < TRUE"),
        (lambda t: t.filter(lit(False) < CAR), "SELECT * FROM t WHERE FALSE < {}"),
        (lambda t: t.filter(CAR.fill_null(lit(True))), "SELECT * FROM t WHERE coalesce({}, TRUE)"),
        (lambda t: t.filter(CAR.between(lit(False), lit(False))), "SELECT * FROM t WHERE NOT {}"),
        (lambda t: t.select("id", CAR.alias("car")), "SELECT id, {} AS car FROM t"),
        (
            lambda t: t.select((col("id") - CAR.cast(pa.int64())).alias("n")),
            "SELECT id - CAST({} AS BIGINT) AS n FROM t",
        ),
        (
            lambda t: t.select((CAR.cast(pa.int64()) - col("id")).alias("n")),
            "SELECT CAST({} AS BIGINT) - id AS n FROM t",
        ),
        (
            lambda t: t.select((CAR.cast(pa.int64()) + 1).alias("n")),
            "SELECT CAST({} AS BIGINT) + 1 AS n FROM t",
        ),
        (lambda t: t.with_column("car", CAR), "SELECT *, {} AS car FROM t"),
        (lambda t: t.with_columns([CAR.alias("car")]), "SELECT *, {} AS car FROM t"),
        (lambda t: t.with_columns(e.alias("car") for e in (CAR,)), "SELECT *, {} AS car FROM t"),
        (lambda t: t.with_columns(car=CAR), "SELECT *, {} AS car FROM t"),
        (
            lambda t: t.aggregate([CAR.alias("car")], [f.count(lit(1)).alias("n")]),
            "SELECT {} AS car, count(*) AS n FROM t GROUP BY {}",
        ),
        (
            lambda t: t.with_column("car", CAR).aggregate(
                [], f.count(col("id"), filter=col("car")).alias("n")
            ),
            "SELECT count(id) FILTER (WHERE {}) AS n FROM t",
        ),
        (
            lambda t: t.distinct_on(
                [CAR], [CAR.alias("car"), col("id")], [CAR.sort(), col("id").sort()]
            ),
            "SELECT DISTINCT ON ({}) {} AS car, id FROM t ORDER BY {}, id",
        ),
        (
            lambda t: t.alias("l").join_on(
                t.alias("r").select(col("r.id").alias("rid")), col("id") == col("rid"), CAR
            ),
            "SELECT l.*, r.id AS rid FROM t l JOIN t r "
            "ON l.id = r.id AND any_element(l.d, 'label = ''car''')",
        ),
        (
            lambda t: (
                t.select("id")
                .alias("l")
                .join_on(
                    t.alias("r"),
                    col("l.id") == col("r.id"),
                    any_element(col("r.d"), "label = 'car'"),
                    how="semi",
                )
            ),
            "SELECT l.id FROM t l LEFT SEMI JOIN t r "
            "ON l.id = r.id AND any_element(r.d, 'label = ''car''')",
        ),
        (
            lambda t: t.filter(
                CAR
                | any_element(col("other"), "n = 2")
                & any_element(col("large"), "k > 0.1").is_null()
            ),
            "SELECT * FROM t WHERE {} OR any_element(other, 'n = 2') "
            "AND any_element(large, 'k > 0.1') IS NULL",
        ),
        (
            lambda t: t.select(col("id"), col("large").alias("d")).filter(CAR).limit(5),
            "SELECT id, large AS d FROM t WHERE any_element(large, 'label = ''car''')",
        ),
        (
            lambda t: t.select(
                any_element(f.array_distinct(col("d")), "k = CAST(0.9 AS FLOAT)").alias("a")
            ),
            "SELECT any_element(array_distinct(d), 'k = CAST(0.9 AS FLOAT)') AS a FROM t",
        ),
        (
            lambda t: t.transform(
                lambda x, e: x.drop("d").with_column_renamed("large", "d").filter(e), CAR
            ),
            "SELECT id, large AS d, other FROM t WHERE any_element(large, 'label = ''car''')",
        ),
    ],
)
def test_it_answers_as_sql(
    session: LanceSessionContext, built: Callable[[DataFrame], DataFrame], query: str
) -> None:
    frame = built(session.table("t"))
    expected = session.sql(query.replace("{}", SQL_CAR))
    assert isinstance(frame, LanceDataFrame)
    assert frame.schema().names == expected.schema().names
    assert sorted(frame.to_pylist(), key=repr) == sorted(expected.to_pylist(), key=repr)


def test_sorting(session: LanceSessionContext) -> None:
    table = session.table("t")
    expected = [0, 1, 2, 3, 4, 5]
    assert table.sort(CAR.sort(False, False), "id").to_pydict()["id"] == expected
    assert table.sort(CAR, col("id").sort(False)).to_pydict()["id"] == [2, 1, 0, 5, 4, 3]
    assert table.sort_by(CAR, col("id")).to_pydict()["id"] == [2, 0, 1, 3, 4, 5]
    assert table.repartition_by_hash(CAR, num=2).count() == 6


def test_an_index_serves_it(tmp_path: Path) -> None:
    session = LanceSessionContext()
    lance.write_dataset(ROWS, tmp_path / "t.lance", max_rows_per_file=4)
    session.register_lance("t", tmp_path / "t.lance")
    session.create_lance_index("t", "d", "LIST_ELEMENT", keys=["label"])
    for predicate, found in (
        (CAR, [0, 1]),
        ((col("id") > 0) & CAR, [1]),
        (~CAR, [2]),
        (SQL_CAR, [0, 1]),
    ):
        served = session.table("t").filter(predicate).sort("id")
        assert session.execution(served).uses_index
        assert served.to_pydict()["id"] == found


def test_one_expression_is_bound_to_many_frames() -> None:
    """Lists of every kind, of different structs."""
    session = LanceSessionContext()
    predicate = any_element(col("d"), "k = 1")
    for numbers in (pa.int8(), pa.float64(), pa.decimal128(3, 1)):
        element = pa.struct([("k", numbers)])
        for type_ in (pa.list_(element), pa.large_list(element), pa.list_(element, 1)):
            table = pa.table({"d": pa.array([[{"k": 1}], [{"k": 2}], None], type_)})
            frame = session.from_arrow(table)
            assert frame.select(predicate.alias("a")).to_pydict()["a"] == [True, False, None]


def test_lists_of_every_kind_in_one_chain() -> None:
    session = LanceSessionContext()
    fixed = pa.array([[{"z": 1}], [{"z": 2}], None], pa.list_(pa.struct([("z", pa.int16())]), 1))
    table = pa.table(
        {**dict(zip(ROWS.column_names, ROWS.slice(0, 3), strict=True)), "fixed": fixed}
    )
    chained = (
        session.from_arrow(table)
        .with_columns(a=any_element(col("fixed"), "z = 1"), b=any_element(col("large"), "k > 0.5"))
        .filter(CAR & (col("a") | any_element(col("fixed"), "z = 2")))
        .select("id", "a", "b")
        .sort("id")
    )
    assert chained.to_pylist() == [
        {"id": 0, "a": True, "b": True},
        {"id": 1, "a": False, "b": False},
    ]


def test_the_session_reads_the_predicate() -> None:
    session = LanceSessionContext()
    session.sql("SET datafusion.sql_parser.enable_ident_normalization = false")
    frame = session.from_pydict({"d": [[{"Label": "car"}]]})
    assert frame.filter(any_element(col("d"), "Label = 'car'")).count() == 1
    lower = any_element(col("d"), "Label = 'car'", context=SessionContext())
    with pytest.raises(InvalidArgumentError, match="label is none of them"):
        frame.filter(lower)


@pytest.mark.parametrize(
    ("use", "error"),
    [
        (
            lambda t: t.filter(any_element(col("d"), "nope = 1")),
            "predicate: .*nope is none of them",
        ),
        (lambda t: t.filter(any_element(col("id"), "k = 1")), "list_expr: got .*int64"),
        (lambda t: t.filter(any_element(col("nope"), "k = 1")), "No field named nope"),
        (
            lambda t: t.alias("l").join_on(t.alias("r"), any_element(col("nope"), "k = 1")),
            "No field named nope",
        ),
    ],
)
def test_refusals_come_when_it_is_bound(
    session: LanceSessionContext, use: Callable[[DataFrame], object], error: str
) -> None:
    with pytest.raises(Exception, match=error):
        use(session.table("t"))


@pytest.mark.parametrize(
    "use",
    [
        lambda plain: plain.filter(CAR),
        lambda plain: plain.select(CAR.alias("a")),
        lambda plain: plain.sort(CAR.sort()),
        lambda plain: plain.with_columns(a=~CAR),
        lambda _: f.coalesce(CAR, lit(True)),
        lambda _: f.when(CAR, lit(1)),
        lambda _: f.count(col("id"), filter=CAR),
        lambda _: col("a").fill_null(CAR),
        lambda _: GroupingSet.rollup(CAR),
        lambda _: CAR.to_variant(),
        lambda _: CAR.schema_name(),
        lambda _: CAR.sort().expr(),
        lambda _: any_element(CAR, "TRUE", pa.list_(DETECTION)),
    ],
)
def test_what_does_not_bind_it_asks_for_of(use: Callable[[DataFrame], object]) -> None:
    plain = SessionContext().from_arrow(ROWS)
    with pytest.raises(InvalidArgumentError, match="only the methods of a LanceDataFrame") as error:
        use(plain)
    assert error.value.argument == "of"


def test_what_is_made_of_it_is_deferred_too() -> None:
    """All that makes an expression of one does; fails where a later DataFusion has more."""
    made = {
        name: method
        for name, method in vars(Expr).items()
        if getattr(method, "__annotations__", {}).get("return") in ("Expr", "SortExpr")
    }
    assert {"__and__", "__rand__", "__invert__", "alias", "sort", "cast", "abs"} <= made.keys()
    for name, method in made.items():
        assert getattr(type(CAR), name) is not method
    assert repr(~CAR) == f"{CAR!r}.__invert__()"
    assert repr(CAR) == """any_element(Expr(d), "label = 'car'")"""
    assert not hasattr(CAR, "nope")
