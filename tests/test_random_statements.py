"""Random statements over the tables of the plan shapes give plain DataFusion's answers."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest
from datafusion import SessionContext

from datafusion_lance.engine import LanceSessionContext

from .oracle_rows import Comparison, TwiceStored
from .plan_shape_tables import memory, session, store_tables
from .random_statements import random_statement

SEEDS = range(int(os.environ.get("RANDOM_STATEMENTS", "150")))


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[TwiceStored, ...]:
    return store_tables(tmp_path_factory.mktemp("random"))


@pytest.fixture(scope="module")
def plain(tables: tuple[TwiceStored, ...]) -> SessionContext:
    return memory(tables)


@pytest.fixture(scope="module")
def indexed(tables: tuple[TwiceStored, ...]) -> LanceSessionContext:
    return session(tables, use_indexes=True)


@pytest.fixture(scope="module")
def unindexed(tables: tuple[TwiceStored, ...]) -> LanceSessionContext:
    return session(tables, use_indexes=False)


def refuses(context: SessionContext, statement: str) -> bool:
    """Whether the statement fails when it is planned, or when it is optimized."""
    try:
        context.sql(statement).optimized_logical_plan()
    except Exception:  # DataFusion raises nothing more special
        return True
    return False


def answered(context: SessionContext, statement: str) -> pa.Table | None:
    """The rows; None where DataFusion fails to give them, or panics."""
    try:
        return context.sql(statement).to_arrow_table()
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        return None


@pytest.mark.parametrize("seed", SEEDS)
def test_answer_is_that_of_plain_datafusion(
    seed: int,
    plain: SessionContext,
    indexed: LanceSessionContext,
    unindexed: LanceSessionContext,
) -> None:
    statement = random_statement(seed)
    expected = answered(plain, statement)
    if expected is None or refuses(unindexed, statement):
        pytest.skip("DataFusion refuses it")

    actual = indexed.sql(statement)

    difference = Comparison().difference(actual.to_arrow_table(), expected)
    assert difference is None, f"{statement}\n{difference}"
    # A count plans another statement, over the same scans.
    assert actual.count() == expected.num_rows, statement


def test_a_table_made_of_an_answer_holds_it(
    plain: SessionContext, indexed: LanceSessionContext
) -> None:
    made = 0
    for seed in range(0, len(SEEDS), 10):
        creation = f"CREATE OR REPLACE TABLE made AS {random_statement(seed)}"
        if answered(plain, creation) is None:
            continue
        made += 1
        indexed.sql(creation)
        tables = [context.table("made").to_arrow_table() for context in (indexed, plain)]
        assert Comparison().difference(*tables) is None, creation
    assert made > 5
