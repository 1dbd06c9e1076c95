"""`any_element` for DataFrames, and registered in a session that is not this package's."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionConfig, SessionContext, col, lit

from datafusion_lance.engine import InvalidArgumentError, LanceSessionContext
from datafusion_lance.udfs import any_element, register_any_element

STRUCT = pa.struct([("label", pa.string()), ("k", pa.float64())])
LISTS = [
    [{"label": "car", "k": 0.9}, {"label": "dog", "k": -0.0}],
    [],
    None,
    [None],
    [{"label": "dog", "k": 0.5}, {"label": None, "k": None}],
    [{"label": "cat", "k": 2.0}] * 2,
]
CAR = [True, False, None, None, None, False]
TYPES = [pa.list_(STRUCT), pa.large_list(STRUCT), pa.list_(STRUCT, 2)]


def lists_of(list_type: pa.DataType) -> pa.Array:
    if not pa.types.is_fixed_size_list(list_type):
        return pa.array(LISTS, list_type)
    return pa.array([x if x is None or len(x) == 2 else None for x in LISTS], list_type)


def batch(list_type: pa.DataType) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(range(6)), lists_of(list_type)], ["id", "d"])


@pytest.mark.parametrize("list_type", TYPES, ids=str)
@pytest.mark.parametrize("context_type", [SessionContext, LanceSessionContext])
def test_the_expression(list_type: pa.DataType, context_type: type[SessionContext]) -> None:
    rows = context_type().read_batch(batch(list_type))
    for of in (rows, list_type):
        found = any_element(col("d"), "label = 'car' AND k IN (0.9, 0)", of)
        answers = rows.select(found.alias("a")).to_pydict()["a"]
        fixed = pa.types.is_fixed_size_list(list_type)
        assert answers == ([True, None, None, None, None, False] if fixed else CAR)
        assert rows.filter(found & (col("id") < lit(3))).count() == 1
        assert rows.filter(~found).count() == answers.count(False)


def test_the_expression_coerces_types_as_sql_does() -> None:
    """DataFusion's own lambdas in Python do not: they coerce before they know the types."""
    rows = SessionContext().read_batch(batch(TYPES[0]))
    for predicate in ("k + 1 > 1.95", "-k < -1.5", "k IN (1.5, 2, 3)", "k * 10 = 9"):
        answers = rows.select(any_element(col("d"), predicate, rows).alias("a")).to_pydict()["a"]
        assert True in answers


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        (("d", "TRUE", TYPES[0]), "list_expr"),
        ((col("d"), 1, TYPES[0]), "predicate"),
        ((col("d"), "TRUE", "d"), "of"),
        ((col("d"), "TRUE", pa.int8()), "of"),
        ((col("d"), "TRUE", pa.list_(pa.int8())), "of"),
        ((col("d"), "nope = 1", TYPES[0]), "predicate"),
        ((col("d"), "label", TYPES[0]), "predicate"),
    ],
)
def test_refusals_of_the_expression(arguments: tuple[Any, ...], argument: str) -> None:
    with pytest.raises(InvalidArgumentError) as refusal:
        any_element(*arguments)
    assert refusal.value.argument == argument


def test_the_expression_refuses_a_column_that_is_no_list() -> None:
    rows = SessionContext().read_batch(batch(TYPES[0]))
    with pytest.raises(InvalidArgumentError, match=r"list_expr: got .*int64.*a list of structs"):
        any_element(col("id"), "TRUE", rows)


@pytest.mark.parametrize("list_type", TYPES, ids=str)
def test_a_registered_function(list_type: pa.DataType) -> None:
    context = SessionContext()
    register_any_element(context, list_type)
    context.register_record_batches("t", [[batch(list_type)]])
    call = "any_element(d, 'label = ''car'' AND k IN (0.9, 0)')"
    answers = context.sql(f"SELECT {call} AS a FROM t").to_pydict()["a"]
    fixed = pa.types.is_fixed_size_list(list_type)
    assert answers == ([True, None, None, None, None, False] if fixed else CAR)
    found = context.sql(f"SELECT id FROM t WHERE NOT {call}").to_pydict()["id"]
    assert found == [row for row, answer in enumerate(answers) if answer is False]
    assert context.sql(f"SELECT {call} FROM t WHERE id > 100").count() == 0


def test_a_registered_function_under_another_name() -> None:
    context = SessionContext()
    register_any_element(context, TYPES[0], "any_detection")
    context.register_record_batches("t", [[batch(TYPES[0])]])
    query = "SELECT id FROM t WHERE any_detection(d, 'k = 0')"
    assert context.sql(query).to_pydict()["id"] == [0]
    assert "any_element" not in context.udfs()


def test_a_registered_function_runs_in_many_threads() -> None:
    """Each partition waits for an evaluation of its own, on as many threads as there are."""
    context = SessionContext(SessionConfig().with_target_partitions(16))
    register_any_element(context, TYPES[0])
    context.register_record_batches("t", [[batch(TYPES[0])] for _ in range(32)])
    answers: list[int] = []

    def ask() -> None:
        query = "SELECT id FROM t WHERE any_element(d, 'label = ''car''') ORDER BY id"
        answers.append(context.sql(query).count())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert answers == [32] * 8


def test_refusals_of_a_registered_function() -> None:
    context = SessionContext()
    for no_list in (pa.int8(), pa.list_(pa.int8()), STRUCT):
        with pytest.raises(InvalidArgumentError, match="a list of structs"):
            register_any_element(context, no_list)
    register_any_element(context, TYPES[0])
    context.register_record_batches("t", [[batch(TYPES[0])]])
    for call in ("any_element(d, 'nope = 1')", "any_element(d, CAST(id AS VARCHAR))"):
        with pytest.raises(Exception, match="predicate: got"):
            context.sql(f"SELECT {call} FROM t").collect()
