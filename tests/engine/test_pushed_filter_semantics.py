"""A filter that DataFusion hands over and drops means what DataFusion says it means."""

from __future__ import annotations

import tempfile
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from datafusion import SessionContext
from datafusion.catalog import Table
from hypothesis import given, settings
from hypothesis import strategies as st

from datafusion_lance.engine.lance_table import LanceTable

from .filter_cases import DOMAINS, predicates, tables

# DataFusion's Python side pushes a filter down, then simplifies it to `NULL OR x`, which it
# cannot hand over any more: it has no operator for a scalar before an expression. A table has
# no say in that.
NULL_BEFORE_EXPRESSION = "refused: NULL before an expression"
SCALAR_OPERATORS = ("'pyarrow.lib.BooleanScalar' and", "'bit_wise_and'", "'bit_wise_or'")

QUERY_COLUMNS = "n, f64, text, labels"


def outcome(context: SessionContext, sql: str) -> tuple[pa.Schema, list[str]] | str:
    """A query's schema and rows in no order, or that DataFusion refuses it."""
    try:
        table = context.sql(sql).to_arrow_table()
    except Exception as error:
        if any(operator in str(error) for operator in SCALAR_OPERATORS):
            return NULL_BEFORE_EXPRESSION
        return f"refused: {type(error).__name__}"
    # repr keeps apart what == does not (-0.0) and finds equal what == does not (NaN).
    return table.schema, sorted(map(repr, table.to_pylist()))


def both(rows: pa.Table, dataset: lance.LanceDataset) -> tuple[SessionContext, SessionContext]:
    """The rows in DataFusion's memory, and in Lance: two contexts with a table `t`."""
    memory, stored = SessionContext(), SessionContext()
    memory.register_record_batches("t", [rows.to_batches()])
    stored.register_table("t", Table(LanceTable(dataset)))
    return memory, stored


def check(memory: SessionContext, stored: SessionContext, predicate: str) -> None:
    for columns in (QUERY_COLUMNS, "count(*)"):
        sql = f"SELECT {columns} FROM t WHERE {predicate}"
        found = outcome(stored, sql)
        if found == NULL_BEFORE_EXPRESSION:
            continue
        assert found == outcome(memory, sql), sql


@settings(max_examples=settings().max_examples // 6)
@given(tables(), st.lists(predicates(list(DOMAINS)), min_size=4, max_size=8))
def test_filters_mean_what_datafusion_means(rows: pa.Table, wanted: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        dataset = lance.write_dataset(rows, Path(folder) / "t.lance")
        memory, stored = both(rows, dataset)
        for predicate in wanted:
            check(memory, stored, predicate)


@pytest.fixture(scope="module")
def floats(tmp_path_factory: pytest.TempPathFactory) -> tuple[SessionContext, SessionContext]:
    values = DOMAINS["f64"].values
    rows = pa.table(
        {
            "n": pa.array(range(len(values) + 1)),
            "f64": pa.concat_arrays([values, pa.nulls(1, pa.float64())]),
            "text": pa.nulls(len(values) + 1, pa.string()),
            "labels": pa.nulls(len(values) + 1, pa.list_(pa.string())),
        }
    )
    return both(rows, lance.write_dataset(rows, tmp_path_factory.mktemp("floats") / "t.lance"))


@pytest.mark.parametrize("literals", [1, 2, 3, 4, 5, 40])
@pytest.mark.parametrize("first", ["0.0", "-0.0", "arrow_cast('NaN', 'Float64')"])
@pytest.mark.parametrize("word", ["IN", "NOT IN"])
def test_in_compares_bits_from_four_literals_on(
    floats: tuple[SessionContext, SessionContext], word: str, first: str, literals: int
) -> None:
    values = ", ".join([first, *(f"{10 + at}.0" for at in range(literals - 1))])
    check(*floats, f"f64 {word} ({values})")


@pytest.mark.parametrize(
    "predicate",
    ["f64 > arrow_cast('inf', 'Float64')", "f64 = 0.0", "f64 < -0.0", "NOT (f64 >= 0.0)"],
)
def test_floats_are_ordered_totally_with_one_zero(
    floats: tuple[SessionContext, SessionContext], predicate: str
) -> None:
    check(*floats, predicate)


def test_a_long_chain_of_ors(floats: tuple[SessionContext, SessionContext]) -> None:
    terms = " OR ".join(f"(n > {at} AND f64 < {at}.5)" for at in range(200))
    assert len(outcome(floats[1], f"SELECT n FROM t WHERE {terms}")) == 2
    check(*floats, terms)


@pytest.mark.xfail(strict=True, reason="DataFusion hands over no scalar before an expression")
def test_in_with_null_first(floats: tuple[SessionContext, SessionContext]) -> None:
    assert outcome(floats[1], "SELECT n FROM t WHERE n IN (NULL, 5)") != NULL_BEFORE_EXPRESSION
