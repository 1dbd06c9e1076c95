"""CREATE TABLE AS, which DataFusion runs as soon as it reads it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from datafusion import DataFrame, SessionContext

from .environment import execution_of
from .execution import Execution

# SELECT INTO makes a table, too. What else matches is told from these by its plan.
_STATEMENT: Final = re.compile(
    r"\s*create\b.*\btable\b.*\bas\b|[\s(]*(?:select|with)\b.*\binto\b", re.IGNORECASE | re.DOTALL
)


def creation_of(
    statement: str,
    plan: Callable[[str], DataFrame],
    context: SessionContext,
    *,
    use_indexes: bool,
) -> Execution | None:
    """How to run a statement that creates a table from a query; None for any other statement.

    `plan` reads a statement. The statement itself is to run while the execution is active:
    DataFusion plans its query then, and reads the tables that are bound to this thread.
    """
    if not _STATEMENT.match(statement):
        return None
    try:
        explained = plan(f"EXPLAIN {statement}").logical_plan().inputs()[0]
        if not explained.display().startswith("CreateMemoryTable:"):
            return None
        query = context.create_dataframe_from_logical_plan(explained.inputs()[0])
        # DataFusion optimizes the query once before it runs it as one.
        optimized = query.optimized_logical_plan()
    except Exception:  # what is wrong with the statement it says itself
        return None
    query = context.create_dataframe_from_logical_plan(optimized)
    return execution_of(query, context, rebuilds=False) if use_indexes else Execution(query)
