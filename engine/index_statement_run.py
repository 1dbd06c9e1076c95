"""Runs the statements on indexes, at once, as DataFusion runs its own DDL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datafusion import DataFrame, SessionContext, SQLOptions

from ..indexes.errors import InvalidArgumentError, StatementError
from .index_listing import lance_tables, listing
from .index_statements import (
    CreateIndex,
    DropIndex,
    create_index_of,
    creates_index,
    parse_statement,
)
from .registry import RegisteredTable, find_table

if TYPE_CHECKING:
    from .session import LanceSessionContext


def run_index_statement(
    session: LanceSessionContext, text: str, options: SQLOptions | None
) -> DataFrame | None:
    """What a statement on indexes returns; None where the text is none.

    CREATE INDEX and DROP INDEX return an empty DataFrame, and DataFusion's error where
    `options` do not allow DDL; SHOW INDEXES is a query. Raises StatementError, and
    InvalidArgumentError as the session's methods do.
    """
    context = session.undisclosed
    if creates_index(text):
        _create(session, create_index_of(context.sql(text, options), text))
        return session.adopt(context.empty_table().limit(0))
    statement = parse_statement(text, context.enable_ident_normalization())
    if statement is None:
        return None
    if isinstance(statement, DropIndex):
        _refuse_unless_allowed(context, options)
        _drop(session, statement)
        return session.adopt(context.empty_table().limit(0))
    return session.adopt(context.read_batch(listing(_shown(context, statement.table))))


def _create(session: LanceSessionContext, statement: CreateIndex) -> None:
    try:
        session.create_lance_index(
            statement.table,
            statement.column,
            statement.kind,
            name=statement.index_name,
            **statement.parameters,
        )
    except InvalidArgumentError as error:
        if error.argument != "name" or not statement.index_name:
            raise
        if not statement.if_not_exists:
            raise StatementError(
                f"Execution error: Index '{statement.index_name}' already exists"
            ) from error


def _drop(session: LanceSessionContext, statement: DropIndex) -> None:
    context = session.undisclosed
    table = statement.table
    if table is None:
        table = _table_with(context, statement.name)
    elif find_table(context, table) is None:
        _look_up(context, table)
    if table is not None:
        try:
            session.drop_lance_index(table, statement.name, statement.if_exists)
        except InvalidArgumentError as error:
            if error.argument != "name":
                raise
        else:
            return
    if not statement.if_exists:
        raise StatementError(f"Execution error: Index '{statement.name}' doesn't exist.")


def _table_with(context: SessionContext, index: str) -> str | None:
    """The one Lance table of the context that has an index of that name; None for none."""
    found = [
        name
        for name, table in lance_tables(context)
        if any(index == known.name for known in table.snapshot.indexes)
    ]
    if len(found) > 1:
        raise StatementError(
            f"Error during planning: index '{index}' is on several tables: {', '.join(found)}. "
            f"Say which: DROP INDEX {index} ON {found[0]}"
        )
    return found[0] if found else None


def _shown(context: SessionContext, table: str | None) -> list[tuple[str, RegisteredTable]]:
    if table is None:
        return list(lance_tables(context))
    found = find_table(context, table)
    if found is None:
        _look_up(context, table)
        return []
    return [(table, found)]


def _look_up(context: SessionContext, table: str) -> None:
    """Raises DataFusion's own error where there is no such table."""
    context.sql(f"SELECT 1 FROM {table}")


def _refuse_unless_allowed(context: SessionContext, options: SQLOptions | None) -> None:
    """Raises as DataFusion does where the options, which do not tell, do not allow DDL."""
    if options is None:
        return
    try:
        context.sql("EXPLAIN DROP TABLE IF EXISTS nothing", options)
    except Exception as error:
        raise StatementError(str(error).replace("DropTable", "DropIndex")) from error
