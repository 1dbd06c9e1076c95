"""`any_element` is what its definition, written in plain Python, says."""

from __future__ import annotations

import pyarrow as pa
from datafusion import SessionContext, col
from hypothesis import given, note

from datafusion_lance.engine import LanceSessionContext
from datafusion_lance.udfs import any_element as expression

from .any_element_cases import Lists, cases
from .any_element_reference import any_element


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@given(cases())
def test_sql_is_the_definition(case: Lists) -> None:
    note(f"{case.lists.type}: {case.predicate.sql()}")
    expected = [any_element(elements, case.predicate) for elements in case.lists.to_pylist()]
    rows = pa.RecordBatch.from_arrays(
        [pa.array(range(len(expected)), pa.int64()), case.lists], ["id", "d"]
    )
    session = LanceSessionContext()
    session.register_record_batches("t", [[rows]])
    call = f"any_element(d, {_literal(case.predicate.sql())})"
    answers = session.sql(f"SELECT {call} AS answer FROM t").to_pydict()["answer"]
    assert answers == expected
    # Filters are simplified in other ways than what is selected.
    for condition, truth in ((call, True), (f"NOT {call}", False), (f"{call} IS NULL", None)):
        found = session.sql(f"SELECT id FROM t WHERE {condition}").to_pydict()["id"]
        assert found == [row for row, answer in enumerate(expected) if answer is truth]


@given(cases())
def test_the_expression_is_the_definition(case: Lists) -> None:
    note(f"{case.lists.type}: {case.predicate.sql()}")
    expected = [any_element(elements, case.predicate) for elements in case.lists.to_pylist()]
    context = SessionContext()
    rows = context.read_batch(pa.RecordBatch.from_arrays([case.lists], ["d"]))
    answer = expression(col("d"), case.predicate.sql(), rows).alias("answer")
    assert rows.select(answer).to_pydict().get("answer", []) == expected
