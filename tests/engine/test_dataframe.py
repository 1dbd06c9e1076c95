"""Every method of a DataFrame, over a Lance table with an index, against rows in memory."""

from __future__ import annotations

import asyncio
import inspect
import io
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from datafusion import DataFrame, ParquetWriterOptions, SessionConfig, SessionContext, col, lit
from datafusion import functions as f

from datafusion_lance.engine import LanceDataFrame, LanceSessionContext

from ..oracle_rows import Comparison, TwiceStored, store_twice


def _tags(key: int) -> list[str | None] | None:
    """NULL, empty and repeating lists, and NULL elements."""
    if key % 11 == 0:
        return None
    return [tag for place, tag in enumerate(("a", "b", "c", None, "a")) if key >> place & 1]


ROWS = pa.table(
    {
        "key": pa.array(range(40), pa.int64()),
        "score": pa.array([None if key % 9 == 0 else key / 4 for key in range(40)], pa.float64()),
        "tags": pa.array([_tags(key) for key in range(40)], pa.list_(pa.string())),
    }
)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> TwiceStored:
    return store_twice(
        tmp_path_factory.mktemp("dataframe"),
        "images",
        ROWS.slice(0, 32),
        key="key",
        rows_per_fragment=8,
        indexed=["tags"],
        deleted_after=[3, 17],
        appended=ROWS.slice(32),
    )


def one_partition() -> SessionConfig:
    return SessionConfig().with_target_partitions(1)


@pytest.fixture
def both(images: TwiceStored) -> tuple[DataFrame, LanceDataFrame]:
    """The same filtered table from memory, and from Lance through the index."""
    plain = SessionContext(one_partition())
    ours = LanceSessionContext(one_partition())
    plain.register_record_batches("images", [images.rows.to_batches()])
    ours.register_lance("images", images.path)
    frames = []
    for context in (plain, ours):
        tagged = context.table("images").filter(f.array_has(col("tags"), lit("a")))
        frames.append(tagged.select("key", "score", "tags"))
    assert type(frames[1]) is LanceDataFrame
    return frames[0], frames[1]


def test_the_index_is_used(both: tuple[DataFrame, LanceDataFrame]) -> None:
    _, ours = both

    assert 0 < ours.count() < 32
    assert ours.session.execution(ours).uses_index


# Methods that return a DataFrame, by name; the rows are compared without order.
CHAINED: dict[str, Callable[[DataFrame], DataFrame]] = {
    "__getitem__": lambda d: d[["key", "score"]],
    "aggregate": lambda d: d.aggregate([col("key") % lit(3)], [f.sum(col("score")).alias("s")]),
    "alias": lambda d: d.alias("other").select("other.key"),
    "cache": lambda d: d.cache(),
    "cast": lambda d: d.cast({"key": pa.int32()}),
    "describe": lambda d: d.select("key", "score").describe().filter(col("describe") != "std"),
    "distinct": lambda d: d.select(col("key") % lit(3)).distinct(),
    "distinct_on": lambda d: d.distinct_on(
        [col("key") % lit(3)], [col("key")], [(col("key") % lit(3)).sort(), col("key").sort()]
    ),
    "drop": lambda d: d.drop("tags"),
    "except_all": lambda d: d.except_all(d.filter(col("key") > 9)),
    "fill_nan": lambda d: d.fill_nan(0.0, ["score"]),
    "fill_null": lambda d: d.fill_null(0.0, ["score"]),
    "filter": lambda d: d.filter("score > 2", col("key") < 30),
    "head": lambda d: d.sort("key").head(3),
    "intersect": lambda d: d.intersect(d.filter(col("key") > 9)),
    "join": lambda d: d.join(d.alias("r").select("r.key"), on="key", how="left"),
    "join_on": lambda d: d.alias("l").join_on(
        d.alias("r"), col("l.key") == col("r.key"), how="semi"
    ),
    "limit": lambda d: d.sort("key").limit(4, 2),
    "repartition": lambda d: d.repartition(3),
    "repartition_by_hash": lambda d: d.repartition_by_hash("key", num=3),
    "select": lambda d: d.select("key", (col("score") * 2).alias("twice")),
    "sort": lambda d: d.sort(col("score").sort(ascending=False)),
    "sort_by": lambda d: d.sort_by("score"),
    "tail": lambda d: d.sort("key").tail(2),
    "transform": lambda d: d.transform(lambda x, n: x.sort("key").limit(n), 5),
    "union": lambda d: d.union(d, distinct=True),
    "union_by_name": lambda d: d.union_by_name(d.select("tags", "score", "key")),
    "unnest_columns": lambda d: d.unnest_columns("tags"),
    "window": lambda d: d.window(f.row_number(order_by="key").alias("n")),
    "with_column": lambda d: d.with_column("next", col("key") + 1),
    "with_column_renamed": lambda d: d.with_column_renamed("key", "id"),
    "with_columns": lambda d: d.with_columns((col("key") + 1).alias("next"), other="key + 2"),
}


@pytest.mark.parametrize("method", CHAINED)
def test_a_chained_method_keeps_class_session_and_rows(
    method: str, both: tuple[DataFrame, LanceDataFrame]
) -> None:
    plain, ours = (CHAINED[method](frame) for frame in both)

    assert type(ours) is LanceDataFrame
    assert ours.session is both[1].session
    Comparison(rounded=True).assert_equal(ours, plain, method)


def test_methods_of_another_shape_keep_the_class(both: tuple[DataFrame, LanceDataFrame]) -> None:
    _, ours = both

    selected = ours.select_exprs("key + 1")
    assert type(selected) is LanceDataFrame
    with pytest.warns(DeprecationWarning, match="union_distinct"):
        assert type(ours.union_distinct(ours)) is LanceDataFrame


def printed(call: Callable[[], object]) -> str:
    text = io.StringIO()
    with redirect_stdout(text):
        call()
    return text.getvalue()


def arrow_stream(frame: DataFrame) -> pa.Table:
    return pa.RecordBatchReader.from_stream(frame).read_all()


# Methods that run the plan; sorted first, so that results compare as they are.
RUNNING: dict[str, Callable[[DataFrame], Any]] = {
    "__arrow_c_stream__": arrow_stream,
    "__repr__": repr,
    "_repr_html_": lambda d: len(d._repr_html_()),
    "collect": lambda d: pa.Table.from_batches(d.collect()),
    "collect_column": lambda d: d.collect_column("key"),
    "collect_partitioned": lambda d: pa.Table.from_batches(
        [batch for part in d.collect_partitioned() for batch in part]
    ),
    "count": lambda d: d.count(),
    "execute_stream": lambda d: [batch.to_pyarrow() for batch in d.execute_stream()],
    "execute_stream_partitioned": lambda d: [
        [batch.to_pyarrow() for batch in stream] for stream in d.execute_stream_partitioned()
    ],
    "show": lambda d: printed(lambda: d.show(5)),
    "to_arrow_table": lambda d: d.to_arrow_table(),
    "to_pydict": lambda d: d.to_pydict(),
    "to_pylist": lambda d: d.to_pylist(),
    "to_pandas": lambda d: pytest.importorskip("pandas") and d.to_pandas().to_dict(),
    "to_polars": lambda d: pytest.importorskip("polars") and d.to_polars().to_dicts(),
    "__iter__": lambda d: [batch.to_pyarrow() for batch in d],
}


@pytest.mark.parametrize("method", RUNNING)
def test_a_running_method_gives_the_same_result(
    method: str, both: tuple[DataFrame, LanceDataFrame]
) -> None:
    plain, ours = (RUNNING[method](frame.sort("key")) for frame in both)

    assert ours == plain


@pytest.mark.parametrize("method", RUNNING)
def test_a_running_method_finds_bound_tables(
    method: str, both: tuple[DataFrame, LanceDataFrame]
) -> None:
    """A plan that cannot be rebuilt reads its candidates by a table bound to this thread."""
    _, ours = both
    session = ours.session
    context = SessionContext(one_partition())
    context.register_record_batches("images", [session.table("images").sort("key").collect()])
    grouped = (
        "SELECT key % 3 AS key, count(*) AS n FROM images WHERE array_has(tags, 'a') "
        "GROUP BY ROLLUP (key % 3)"
    )
    expected, read = (c.sql(grouped).sort("key", "n") for c in (context, session))

    execution = session.execution(read)
    assert execution.bound
    assert RUNNING[method](read) == RUNNING[method](expected)


def test_batches_come_asynchronously_too(both: tuple[DataFrame, LanceDataFrame]) -> None:
    async def batches(frame: DataFrame) -> list[pa.RecordBatch]:
        return [batch.to_pyarrow() async for batch in frame]

    plain, ours = (asyncio.run(batches(frame.sort("key"))) for frame in both)

    assert ours == plain


WRITING: dict[str, Callable[[DataFrame, Path], object]] = {
    "write_csv": lambda d, p: d.write_csv(p, with_header=True),
    "write_json": lambda d, p: d.write_json(p),
    "write_parquet": lambda d, p: d.write_parquet(p),
    "write_parquet_with_options": lambda d, p: d.write_parquet_with_options(
        p, ParquetWriterOptions()
    ),
}


@pytest.mark.parametrize("method", WRITING)
def test_a_writing_method_writes_the_same(
    method: str, both: tuple[DataFrame, LanceDataFrame], tmp_path: Path
) -> None:
    for frame, name in zip(both, ("plain", "ours"), strict=True):
        WRITING[method](frame.select("key", "score").sort("key"), tmp_path / name)

    assert _read(tmp_path / "ours") == _read(tmp_path / "plain")


def _read(folder: Path) -> list[bytes | pa.Table]:
    return [
        pyarrow.parquet.read_table(file) if file.suffix == ".parquet" else file.read_bytes()
        for file in sorted(folder.glob("*"))
    ]


def test_write_table_inserts(both: tuple[DataFrame, LanceDataFrame]) -> None:
    plain, ours = both
    session = ours.session
    session.sql("CREATE TABLE keys (id BIGINT)")

    ours.select(col("key").alias("id")).write_table("keys")

    written = session.table("keys").sort("id").to_pydict()["id"]
    assert written == plain.sort("key").to_pydict()["key"]


def test_what_only_looks_at_the_plan_is_as_it_was_built(
    both: tuple[DataFrame, LanceDataFrame],
) -> None:
    plain, ours = both

    assert ours.schema() == plain.schema()
    assert str(ours.col("key")) == str(plain.col("key"))
    assert str(ours.column("key")) == str(plain.column("key"))
    assert str(ours.find_qualified_columns("key")) == str(plain.find_qualified_columns("key"))
    assert str(ours.parse_sql_expr("key + 1")) == str(plain.parse_sql_expr("key + 1"))
    assert ours.logical_plan().display_indent() == plain.logical_plan().display_indent()
    assert ours.optimized_logical_plan().display_indent() == (
        plain.optimized_logical_plan().display_indent()
    )


def test_the_plan_that_ran_has_its_metrics(both: tuple[DataFrame, LanceDataFrame]) -> None:
    _, ours = both
    counted = ours.aggregate([], [f.count(col("key"))])

    counted.collect()

    metrics = counted.execution_plan().metrics()
    assert metrics is not None
    assert metrics.output_rows == 1


# Methods that are tested elsewhere: explain in test_explain, views below.
ELSEWHERE = {
    "default_str_repr",
    "execution_plan",
    "explain",
    "into_view",
    "select_exprs",
    "union_distinct",
    "write_table",
    *("schema", "col", "column", "find_qualified_columns", "parse_sql_expr"),
    *("logical_plan", "optimized_logical_plan"),
}


def test_no_method_is_left_out() -> None:
    """Fails when a later DataFusion has one more: add a call of it above."""
    methods = {
        name
        for name, member in vars(DataFrame).items()
        if inspect.isfunction(inspect.unwrap(member)) and not name.startswith("_")
    }

    tried = {*CHAINED, *RUNNING, *WRITING, *ELSEWHERE}
    assert methods == {name for name in tried if not name.startswith("_")}


def test_a_view_is_rewritten_where_it_is_read(both: tuple[DataFrame, LanceDataFrame]) -> None:
    plain, ours = both
    session = ours.session

    for temporary in (False, True):
        view = ours.into_view(temporary=temporary)
        assert view.kind == plain.into_view(temporary=temporary).kind
        name = f"v_{temporary}".lower()
        session.register_table(name, view)
        read = session.sql(f"SELECT key FROM {name} WHERE array_has(tags, 'b') ORDER BY key")
        assert session.execution(read).uses_index
        assert read.to_pylist() == (
            plain.filter(f.array_has(col("tags"), lit("b"))).sort("key").select("key").to_pylist()
        )


def test_a_dataframe_in_a_statement_is_rewritten_with_it(
    both: tuple[DataFrame, LanceDataFrame],
) -> None:
    plain, ours = both
    session = ours.session

    read = session.sql("SELECT count(*) AS n FROM $frame WHERE key > $least", frame=ours, least=5)

    assert session.execution(read).uses_index
    assert read.to_pylist() == [{"n": plain.filter(col("key") > 5).count()}]
    assert not [name for name in _tables(session) if name.startswith("view_")]


def test_parameters_become_literals_that_an_index_can_look_up(
    both: tuple[DataFrame, LanceDataFrame],
) -> None:
    plain, ours = both
    session = ours.session
    expected = plain.sort("key").select("key").to_pylist()
    session.sql(
        "PREPARE tagged(VARCHAR) AS SELECT key FROM images WHERE array_has(tags, $1) ORDER BY key"
    )

    for read in (
        session.sql("EXECUTE tagged('a')"),
        session.sql(
            "SELECT key FROM images WHERE array_has(tags, $tag) ORDER BY key",
            param_values={"tag": "a"},
        ),
        session.sql("SELECT key FROM images WHERE array_has(tags, $tag) ORDER BY key", tag="'a'"),
    ):
        assert session.execution(read).uses_index
        assert read.to_pylist() == expected


def _tables(session: SessionContext) -> Iterator[str]:
    for catalog in session.catalog_names():
        for schema in session.catalog(catalog).schema_names():
            yield from session.catalog(catalog).schema(schema).table_names()


def test_use_indexes_false_reads_no_index(images: TwiceStored) -> None:
    session = LanceSessionContext(use_indexes=False)
    session.register_lance("images", images.path)
    read = session.sql("SELECT key FROM images WHERE array_has(tags, 'a')")

    assert not session.execution(read).uses_index
    assert "IndexScan" not in printed(read.explain)
    assert read.count() > 0
