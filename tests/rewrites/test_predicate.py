"""A predicate is read as `query AND leftover`, three-valued connectives included."""

from __future__ import annotations

import pyarrow as pa
import pytest
from datafusion import SessionContext
from datafusion.expr import Expr

from datafusion_lance.indexes.manifest import IndexSegment, LanceIndex
from datafusion_lance.indexes.query import HasAny, Query
from datafusion_lance.rewrites.predicate import ReadPredicate, read_predicate


def an_index(version: int) -> LanceIndex:
    segment = IndexSegment(
        uuid="0",
        name="tags_idx",
        field_ids=(0,),
        dataset_version=1,
        fragment_ids=frozenset({0}),
        details_type_url="/lance.table.LabelListIndexDetails",
        details=b"",
        index_version=version,
        created_at=None,
        base_id=None,
        files=(),
    )
    return LanceIndex("tags_idx", "LabelList", (0,), (segment,))


def read(predicate: str, *, version: int = 1) -> tuple[ReadPredicate, list[str]]:
    """The predicate over tags and a number; `array_has(tags, '?')` is what an index answers."""
    context = SessionContext()
    rows = pa.table({"tags": pa.array([["a"]]), "n": pa.array([1])})
    context.register_record_batches("t", [rows.to_batches()])
    plan = context.sql(f"SELECT * FROM t WHERE {predicate}").optimized_logical_plan()
    notes: list[str] = []
    return (
        read_predicate(
            Expr(plan.to_variant().predicate()), lambda leaf: _leaf(leaf, version), notes.append
        ),
        notes,
    )


def _leaf(predicate: Expr, version: int) -> Query | None:
    if predicate.variant_name() != "ScalarFunction":
        return None
    _, needle = predicate.rex_call_operands()
    labels = pa.array([needle.python_value().as_py()], pa.string())
    return HasAny(an_index(version), "tags", labels, False)


@pytest.mark.parametrize(
    ("predicate", "query", "recheck", "leftover"),
    [
        ("array_has(tags, 'a')", "array_has(tags, 'a')", [], []),
        ("n > 1 AND array_has(tags, 'a')", "array_has(tags, 'a')", [], ["t.n > Int64(1)"]),
        (
            "array_has(tags, 'a') AND NOT array_has(tags, 'b') AND n > 1",
            "array_has(tags, 'a') AND NOT array_has(tags, 'b')",
            [],
            ["t.n > Int64(1)"],
        ),
        (
            "array_has(tags, 'a') OR array_has(tags, 'b') AND n > 1",
            "array_has(tags, 'a') OR array_has(tags, 'b')",
            ['array_has(t.tags, Utf8("a")) OR array_has(t.tags, Utf8("b")) AND t.n > Int64(1)'],
            [],
        ),
        ("array_has(tags, 'a') IS TRUE", "array_has(tags, 'a') IS TRUE", [], []),
        ("array_has(tags, 'a') IS NOT TRUE", "NOT (array_has(tags, 'a') IS TRUE)", [], []),
        ("array_has(tags, 'a') IS FALSE", "array_has(tags, 'a') IS FALSE", [], []),
        ("array_has(tags, 'a') IS UNKNOWN", "array_has(tags, 'a') IS NULL", [], []),
        ("array_has(tags, 'a') IS NOT NULL", "NOT (array_has(tags, 'a') IS NULL)", [], []),
        (
            "array_has(tags, 'a') IS DISTINCT FROM TRUE",
            "NOT (array_has(tags, 'a') IS TRUE)",
            [],
            [],
        ),
        (
            "array_has(tags, 'a') IS NOT DISTINCT FROM NULL",
            "array_has(tags, 'a') IS NULL",
            [],
            [],
        ),
        (
            "CASE WHEN array_has(tags, 'a') THEN TRUE ELSE FALSE END",
            "array_has(tags, 'a') IS TRUE",
            [],
            [],
        ),
        (
            "NOT (array_has(tags, 'a') OR array_has(tags, 'b'))",
            "NOT array_has(tags, 'a') AND NOT array_has(tags, 'b')",
            [],
            [],
        ),
    ],
)
def test_what_is_answered_rechecked_and_left_over(
    predicate: str, query: str, recheck: list[str], leftover: list[str]
) -> None:
    found, notes = read(predicate)
    assert str(found.query) == query
    assert [e.canonical_name() for e in found.recheck] == recheck
    assert [e.canonical_name() for e in found.leftover] == leftover
    assert notes == []


@pytest.mark.parametrize("predicate", ["n > 1", "n > 1 OR n IS NULL AND n < 7"])
def test_a_predicate_without_an_index_is_left_over(predicate: str) -> None:
    found, notes = read(predicate)
    assert found.query is None
    assert len(found.leftover) >= 1
    assert notes == []


@pytest.mark.parametrize(
    ("predicate", "note"),
    [
        (
            "array_has(tags, 'a') OR n > 1",
            'array_has(t.tags, Utf8("a")) OR t.n > Int64(1): no index answers every side of the OR',
        ),
        (
            "NOT (array_has(tags, 'a') AND n > 1) AND n IS NOT NULL",
            'NOT array_has(t.tags, Utf8("a")) OR t.n <= Int64(1): '
            "no index answers every side of the OR",
        ),
    ],
)
def test_a_predicate_that_an_index_could_not_answer_is_noted(predicate: str, note: str) -> None:
    found, notes = read(predicate)
    assert found.query is None
    assert notes == [note]


@pytest.mark.parametrize(
    "predicate",
    [
        "NOT array_has(tags, 'a')",
        "array_has(tags, 'a') IS NULL",
        "array_has(tags, 'a') IS FALSE",
        "array_has(tags, 'a') IS NOT TRUE",
    ],
)
def test_an_index_that_stores_no_null_lists_answers_no_negation(predicate: str) -> None:
    found, notes = read(predicate, version=0)
    assert found.query is None
    assert notes == ["array_has(tags, 'a'): the index does not know on which rows it is FALSE"]


def test_an_index_that_stores_no_null_lists_answers_is_true() -> None:
    found, _ = read("array_has(tags, 'a') IS TRUE", version=0)
    assert str(found.query) == "array_has(tags, 'a') IS TRUE"


@pytest.mark.parametrize("operator", ["AND", "OR"])
def test_a_chain_of_a_thousand_operators(operator: str) -> None:
    chain = f" {operator} ".join(f"array_has(tags, '{n}')" for n in range(1000))
    found, notes = read(chain)
    assert str(found.query).count("array_has") == 1000
    assert found.leftover == ()
    assert notes == []
