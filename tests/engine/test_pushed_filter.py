"""A pyarrow expression, as DataFusion hands it over, is read back as a tree."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from datafusion_lance.engine.pushed_filter import (
    And,
    Column,
    Comparison,
    InList,
    IsNotNull,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    PushedFilter,
    columns_of,
    conjuncts_of,
    predicate_of,
)

A, B = Column("a"), Column("b")
ONE = Literal(pa.scalar(1))


@pytest.mark.parametrize(
    ("filter", "tree"),
    [
        (None, None),
        (True, None),
        (pa.scalar(True), None),
        (False, Literal(pa.scalar(False))),
        (pa.scalar(None, pa.bool_()), Literal(pa.scalar(None, pa.bool_()))),
        (pc.field("a"), A),
        (pc.field("a") == pa.scalar(1), Comparison("=", A, ONE)),
        (pc.field("a") != pa.scalar(1), Comparison("<>", A, ONE)),
        (pc.field("a") < pc.field("b"), Comparison("<", A, B)),
        (pc.field("a") <= pa.scalar(1), Comparison("<=", A, ONE)),
        (pc.field("a") > pa.scalar(1), Comparison(">", A, ONE)),
        (pa.scalar(1) <= pc.field("a"), Comparison(">=", A, ONE)),
        (~pc.field("a"), Not(A)),
        (pc.field("a").is_null(), IsNull(A)),
        (pc.field("a").is_valid(), IsNotNull(A)),
        (pc.field("a") & pc.field("b") & pc.field("a"), And((A, B, A))),
        (pc.field("a") | pc.field("b") | pc.field("a"), Or((A, B, A))),
        (
            (pc.field("a") & pc.field("b")) | ~pc.field("a").is_null(),
            Or((And((A, B)), Not(IsNull(A)))),
        ),
    ],
)
def test_every_shape(filter: PushedFilter, tree: Predicate | None) -> None:
    assert predicate_of(filter) == tree


def test_in_lists_keep_their_values() -> None:
    tree = predicate_of(pc.field("a").isin([3, 1, 2]) & ~pc.field("b").isin(["x"]))
    assert isinstance(tree, And)
    first, second = tree.operands
    assert isinstance(first, InList)
    assert isinstance(second, Not)
    assert isinstance(second.operand, InList)
    assert first.operand == A
    assert first.values.to_pylist() == [3, 1, 2]
    assert second.operand.values.to_pylist() == ["x"]


@pytest.mark.parametrize("name", ["a.b", 'a"b', "a`b", "a'b", "", "A", "é\n", "[0]", "0"])
def test_names_are_taken_as_they_are(name: str) -> None:
    assert predicate_of(pc.field(name).is_null()) == IsNull(Column(name))


@pytest.mark.parametrize(
    "value",
    [
        pa.scalar(2**64 - 1, pa.uint64()),
        pa.scalar("it's"),
        pa.scalar(b"\0"),
        pa.scalar(5, pa.timestamp("ns", "Europe/Berlin")),
        pa.scalar([1, None], pa.list_(pa.int32())),
        pa.scalar({"x": 1}),
        pa.scalar(None, pa.string()),
    ],
)
def test_literals_keep_type_and_value(value: pa.Scalar) -> None:
    tree = predicate_of(pc.field("a") == value)
    assert isinstance(tree, Comparison)
    assert isinstance(tree.right, Literal)
    assert tree.right.value.type == value.type
    assert tree.right.value == value


def test_long_chains_stay_flat() -> None:
    filter = pc.field("a") == 0
    for value in range(1, 3000):
        filter = filter | (pc.field("a") == value)
    tree = predicate_of(filter)
    assert isinstance(tree, Or)
    assert len(tree.operands) == 3000


def test_other_functions_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="add"):
        predicate_of(pc.field("a") + pc.field("b") > 1)


def test_columns_and_conjuncts() -> None:
    tree = predicate_of((pc.field("b") > 1) & (pc.field("a").is_null() | pc.field("b")))
    assert tree is not None
    assert columns_of(tree) == ("b", "a")
    assert len(conjuncts_of(tree)) == 2
