"""A predicate as the list of its conjuncts or disjuncts."""

from __future__ import annotations

from datafusion.expr import Expr


def conjuncts(predicate: Expr) -> list[Expr]:
    """The operands of the predicate's outermost ANDs, left to right.

    >>> from datafusion import col, lit
    >>> [str(e) for e in conjuncts((col("a") > lit(1)) & (col("b") < lit(2)) & col("c").is_null())]
    ['Expr(a > Int64(1))', 'Expr(b < Int64(2))', 'Expr(c IS NULL)']
    """
    return _operands(predicate, "AND")


def disjuncts(predicate: Expr) -> list[Expr]:
    """The operands of the predicate's outermost ORs, left to right."""
    return _operands(predicate, "OR")


def _operands(predicate: Expr, operator: str) -> list[Expr]:
    # Not recursive: a chain of operators is as deep as it is long.
    operands: list[Expr] = []
    waiting = [predicate]
    while waiting:
        one = waiting.pop()
        if one.variant_name() == "BinaryExpr" and one.rex_call_operator() == operator:
            waiting.extend(reversed(one.rex_call_operands()))
        else:
            operands.append(one)
    return operands
