"""Texts as expressions, with the functions of this package."""

from __future__ import annotations

from datafusion import DataFrame, SessionContext
from datafusion.expr import Expr

from ..udfs.elements.statement import AnyElementStatements
from ..udfs.minhash.statement import MinHashStatements


def parse_expression(
    frame: DataFrame,
    text: str,
    context: SessionContext,
    any_element: AnyElementStatements,
    minhash: MinHashStatements,
) -> Expr:
    """What `frame.parse_sql_expr` gives in a context that has all functions of this package.

    `frame` is a plain DataFrame of `context`.
    """
    renamed = minhash.renamed(context, text, {})
    if renamed is not None:
        context, text = renamed.context, renamed.text
        frame = context.create_dataframe_from_logical_plan(frame.logical_plan())
    calling = any_element.expression(context, frame, text)
    return frame.parse_sql_expr(text) if calling is None else calling
