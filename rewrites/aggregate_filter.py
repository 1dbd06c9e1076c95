"""The FILTER of an aggregate's call, which DataFusion's Python side only prints and serializes."""

from __future__ import annotations

from typing import Final

from datafusion import SessionContext
from datafusion.expr import Expr

from ..indexes.message_set import MessageSet
from .aliases import unaliased

_FILTER: Final = " FILTER (WHERE "

# Field numbers are those of DataFusion's `datafusion.proto`.
_SET: Final = MessageSet(
    "datafusion_lance.datafusion",
    {
        "LogicalExprNode": {
            "aggregate_udf_expr": (19, "AggregateUDFExprNode"),
        },
        "AggregateUDFExprNode": {"fun_name": (1, "string"), "filter": (3, "bytes?")},
    },
)


def aggregate_filter(call: Expr, context: SessionContext) -> Expr | None:
    """The predicate of a call's FILTER; None where it has none, or where it cannot be read.

    The call may have aliases. Its functions are those that the context has by their names, so
    that only the plan with the call tells whose they are.

    >>> from datafusion import col, functions as f, lit
    >>> context = SessionContext()
    >>> print(aggregate_filter(f.count(col("a"), filter=col("a") > lit(1)), context))
    Expr(a > Int64(1))
    >>> aggregate_filter(f.count(col("a")), context)
    """
    call = unaliased(call)
    if call.variant_name() != "AggregateFunction" or _FILTER not in call.canonical_name():
        return None
    try:
        node = _SET.parse("LogicalExprNode", call.to_bytes())
        if not node.aggregate_udf_expr.HasField("filter"):
            return None
        predicate = Expr.from_bytes(node.aggregate_udf_expr.filter, context)
    except Exception:
        # Some expressions cannot be serialized, and a function may be gone from the context;
        # DataFusion's errors have no class of their own.
        return None
    # What was read has to be what the call itself prints.
    printed = f"{_FILTER}{predicate.canonical_name()})"
    return predicate if printed in call.canonical_name() else None
