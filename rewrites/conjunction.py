"""A predicate as the list of its conjuncts, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from datafusion.expr import Expr


def conjuncts(predicate: Expr) -> Iterator[Expr]:
    """The operands of the predicate's outermost ANDs, left to right.

    >>> from datafusion import col, lit
    >>> [str(e) for e in conjuncts((col("a") > lit(1)) & (col("b") < lit(2)) & col("c").is_null())]
    ['Expr(a > Int64(1))', 'Expr(b < Int64(2))', 'Expr(c IS NULL)']
    """
    if predicate.variant_name() == "BinaryExpr" and predicate.rex_call_operator() == "AND":
        for operand in predicate.rex_call_operands():
            yield from conjuncts(operand)
    else:
        yield predicate


def conjunction(predicates: Sequence[Expr]) -> Expr:
    """The AND of one predicate or more, left to right."""
    first, *rest = predicates
    for predicate in rest:
        first = first & predicate
    return first
