"""The table functions of a session: their registration, and what a call tells its statement."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from datafusion import SessionContext, udtf
from datafusion.catalog import Table
from datafusion.expr import Expr

from ..indexes.errors import LanceIndexError
from .filter_memory import FilterMemory
from .function_call import FunctionCall, named_table
from .function_scan import FunctionScan
from .minhash_arguments import SEARCH
from .minhash_binding import bound_search
from .minhash_duplicates import DUPLICATES
from .registry import RegisteredTable

Bind = Callable[[FunctionCall], FunctionScan]
"""Makes the scan of a call."""

FUNCTIONS: Final[dict[str, Bind]] = {
    SEARCH: bound_search,
    **{function.name: function.bound for function in DUPLICATES},
}

# A call's first argument is the name of its table.
_TABLE: Final = re.compile(rf"\b(?:{'|'.join(FUNCTIONS)})\s*\(\s*'((?:[^']|'')*)'")


@dataclass(slots=True)
class _Statement:
    """A statement that is being planned on a thread; `error` is the last one of its calls."""

    use_indexes: bool
    tables: Mapping[str, RegisteredTable]
    filters: FilterMemory | None
    error: LanceIndexError | None = None


_STATEMENT: ContextVar[_Statement | None] = ContextVar("lance_statement", default=None)


@contextmanager
def calling(
    use_indexes: bool,
    tables: Mapping[str, RegisteredTable] = MappingProxyType({}),
    filters: FilterMemory | None = None,
) -> Iterator[None]:
    """Lets calls that are planned on this thread meanwhile use indexes or not.

    `tables` spares them looking up the tables of those names, `filters` planning those that are
    kept there.

    DataFusion turns what a call raises into an error of its own, which keeps the text alone;
    an error of this package is raised as it was in its place.
    """
    statement = _Statement(use_indexes, tables, filters)
    token = _STATEMENT.set(statement)
    try:
        yield
    except Exception as error:
        own = statement.error
        if own is None or own is error or f"{type(own).__name__}(" not in str(error):
            raise
        raise own from error
    finally:
        _STATEMENT.reset(token)


def called_tables(query: str, context: SessionContext) -> dict[str, RegisteredTable]:
    """The Lance tables that calls in a statement seem to name, as far as there are any."""
    names = {name.replace("''", "'") for name in _TABLE.findall(query)}
    tables = {name: named_table(name, context) for name in names}
    return {name: table for name, table in tables.items() if table is not None}


def register_functions(context: SessionContext, *, is_new: bool) -> None:
    """Gives the context the functions whose names are free; in a new one all are.

    The functions know nothing of the session: it may go while they are held.
    """
    for name, bind in FUNCTIONS.items():
        if is_new or not _has_function(context, name):
            context.register_udtf(udtf(_function(bind), name, with_session=True))


def _function(bind: Bind) -> Callable[..., Table]:
    def call(*arguments: Expr, session: SessionContext) -> Table:
        statement = _STATEMENT.get()
        if statement is None:
            return Table(bind(FunctionCall(arguments, session, use_indexes=True)))
        given = FunctionCall(
            arguments, session, statement.use_indexes, statement.tables, statement.filters
        )
        try:
            return Table(bind(given))
        except LanceIndexError as error:
            statement.error = error
            raise

    return call


def _has_function(context: SessionContext, name: str) -> bool:
    """Whether the context has a table function of that name.

    There is no asking: a call without arguments is planned, which fails in either case or is
    forgotten.
    """
    try:
        context.sql(f"EXPLAIN SELECT * FROM {name}()")
    except Exception as error:  # DataFusion's errors have no type of their own
        return "not found" not in str(error)
    return True
