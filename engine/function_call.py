"""A call of a table function while its statement is planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from datafusion import SessionContext
from datafusion.expr import Expr

from ..indexes.errors import InvalidArgumentError
from .filter_memory import FilterMemory
from .own_thread import in_own_thread
from .registry import RegisteredTable, find_table


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """The `arguments`, and the session in which they mean something.

    DataFusion waits for the call on its thread, where the session is not to be used. `known`
    are tables that have been looked up before, `filters` what was planned before in the same
    state of the session; None where that is not known.
    """

    arguments: Sequence[Expr]
    session: SessionContext
    use_indexes: bool
    known: Mapping[str, RegisteredTable] = field(default_factory=dict)
    filters: FilterMemory | None = None

    def table(self, name: str) -> RegisteredTable:
        """The Lance table of that name; raises InvalidArgumentError where there is none."""
        table = self.known.get(name)
        if table is None:
            table = in_own_thread(lambda: named_table(name, self.session))
        if table is None:
            raise InvalidArgumentError(
                "table", name, "the name of a table that register_lance registered"
            )
        return table


def named_table(name: str, session: SessionContext) -> RegisteredTable | None:
    """The Lance table of that name; None where there is none, or the name is no name."""
    try:
        return find_table(session, name)
    except Exception:  # DataFusion's errors have no type of their own
        return None


def check_text_column(table: RegisteredTable, column: str) -> None:
    """Raises InvalidArgumentError where the table has no column of text of that name."""
    texts = [field.name for field in table.full_schema if _is_text(field.type)]
    if column not in texts:
        shown = ", ".join(map(repr, texts)) or "there is none"
        raise InvalidArgumentError("column", column, f"a text column of {table.name} ({shown})")


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
