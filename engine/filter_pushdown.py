"""A filter that DataFusion hands to a table and cannot express.

`id IN (NULL, 5)` is pushed down to the table as it is and simplified to `NULL OR id = 5`
there. When DataFusion's Python side then writes it as a pyarrow expression, the literal is
none, and planning fails. A table has no say in what is pushed down; without pushing down
filters the plan runs.
"""

from __future__ import annotations

from datafusion import DataFrame, SessionContext

from ..udfs.function_names import keep_names

_FAILURES = (
    "'pyarrow.lib.BooleanScalar' and 'pyarrow._compute.Expression'",
    "'pyarrow._compute.Expression' and 'pyarrow.lib.BooleanScalar'",
    "has no kernel matching input types",
)


def is_inexpressible(error: Exception) -> bool:
    """Whether planning failed on a filter that has no pyarrow expression."""
    text = str(error)
    return any(failure in text for failure in _FAILURES)


def without_pushdown(dataframe: DataFrame, context: SessionContext) -> DataFrame:
    """The DataFrame in a copy of the context that leaves filters above their tables."""
    plan = dataframe.logical_plan()
    return leaving_filters(context).create_dataframe_from_logical_plan(plan)


def leaving_filters(context: SessionContext, text: str = "") -> SessionContext:
    """A copy of the context, with the same tables, that leaves filters above them.

    By the names in `text` it calls what `context` does.
    """
    # The one method that copies the state of a session whole.
    copy = context.enable_url_table()
    copy.remove_optimizer_rule("push_down_filter")
    keep_names(context, copy, text)
    return copy
