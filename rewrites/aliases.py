"""Expressions under their aliases."""

from __future__ import annotations

from datafusion.expr import Expr


def unaliased(expression: Expr) -> Expr:
    """The expression that an alias, or an alias of one, gives a name to.

    >>> from datafusion import col
    >>> print(unaliased(col("a").alias("b").alias("c")))
    Expr(a)
    """
    while expression.variant_name() == "Alias":
        expression = Expr(expression.to_variant().expr())
    return expression
