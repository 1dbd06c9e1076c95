"""A call of `minhash_search`, from its arguments to the scan that runs it."""

from __future__ import annotations

from ..indexes.errors import CorruptIndexError, InvalidArgumentError, UnusableIndexError
from ..indexes.manifest import LanceIndex
from ..indexes.minhash_lsh.details import KIND, parameters_of
from ..indexes.minhash_lsh.parameters import MinHashParameters
from ..indexes.minhash_lsh.search import RowFilter
from ..udfs.elements.statement import AnyElementStatements
from ..udfs.minhash.statement import MinHashStatements
from .function_call import FunctionCall, check_text_column
from .indexed_row_filter import filter_of
from .minhash_arguments import EXHAUSTIVE, INDEXED, SEARCH, SearchArguments
from .minhash_scan import DISTANCE, MinHashScan
from .minhash_search import MinHashSearch
from .own_thread import in_own_thread
from .registry import RegisteredTable
from .text_expressions import parse_expression


def bound_search(call: FunctionCall) -> MinHashScan:
    """The scan of `minhash_search(table, column, text, limit[, filter[, mode]])`.

    Raises InvalidArgumentError for arguments that are out of their ranges, and
    UnusableIndexError where the column has no index but such as cannot be used.
    """
    arguments = SearchArguments.of(call.arguments)
    table = call.table(arguments.table)
    check_text_column(table, arguments.column)
    if DISTANCE in table.full_schema.names:
        raise InvalidArgumentError(
            "table", arguments.table, f"a table without a column {DISTANCE}, which {SEARCH} adds"
        )
    passing = _filter(arguments, table, call)
    index, parameters = bound_index(table, arguments.column, call.use_indexes)
    covered = frozenset[int]() if index is None else covered_by(index, table)
    notes = ()
    if index is None:
        if arguments.mode == INDEXED:
            column = f"a column with a MinHash index; {_creating(table, arguments.column)}"
            raise InvalidArgumentError("mode", arguments.mode, column)
        if call.use_indexes:
            consequence = f"{SEARCH} signs and ranks every row"
            notes = (without_index(table, arguments.column, consequence),)
    # Without indexes the rows that an index covers are read as well: all are ranked, exactly.
    shown = covered if arguments.mode == INDEXED else table.shown_fragments
    asked = covered if call.use_indexes else frozenset[int]()
    exact = arguments.mode == EXHAUSTIVE or index is None or not call.use_indexes
    search = MinHashSearch(
        table,
        arguments,
        parameters,
        index if call.use_indexes else None,
        asked,
        shown - asked,
        exact,
        passing,
    )
    return MinHashScan(search, notes)


def bound_index(
    table: RegisteredTable, column: str, use_indexes: bool
) -> tuple[LanceIndex | None, MinHashParameters]:
    """The column's index and its parameters; None and the defaults where it has none.

    Raises UnusableIndexError where it only has indexes that cannot be used. Without
    `use_indexes` those are passed over, too.
    """
    refused: UnusableIndexError | None = None
    if table.snapshot.indexes_unread is not None:
        refused = UnusableIndexError(column, table.snapshot.indexes_unread)
    for index in table.snapshot.indexes_on(column):
        if index.kind == KIND:
            try:
                return index, parameters_of(index)
            except UnusableIndexError as error:
                refused = refused or error
    if refused is not None and use_indexes:
        raise refused
    return None, MinHashParameters()


def covered_by(index: LanceIndex, table: RegisteredTable) -> frozenset[int]:
    """The fragments of the table that the index answers for."""
    return table.snapshot.covered_fragments(index) & table.shown_fragments


def without_index(table: RegisteredTable, column: str, consequence: str) -> str:
    """A note on what a call does without an index, and how there comes to be one."""
    return (
        f"table {table.name}: {column} has no MinHash index, so {consequence}; "
        f"{_creating(table, column)}"
    )


def _creating(table: RegisteredTable, column: str) -> str:
    return f"create_lance_index({table.name!r}, {column!r}, 'MINHASHLSH') builds one"


def _filter(
    arguments: SearchArguments, table: RegisteredTable, call: FunctionCall
) -> RowFilter | None:
    text, session, memory = arguments.filter, call.session, call.filters
    if text is None:
        return None
    known = None if memory is None else memory.get(arguments.table, text, table)
    if known is not None:
        return known

    def planned() -> RowFilter:
        scanned = session.table(arguments.table)
        # The session's own hold what was prepared in it, and with it this function.
        predicate = parse_expression(
            scanned, text, session, AnyElementStatements(), MinHashStatements()
        )
        made = filter_of(table, scanned, predicate, session, use_indexes=call.use_indexes)
        if memory is not None:
            plan = scanned.filter(predicate).logical_plan()
            memory.put(arguments.table, text, table, made, plan)
        return made

    try:
        return in_own_thread(planned)
    except (CorruptIndexError, UnusableIndexError):
        raise
    except Exception as error:  # DataFusion's errors have no type of their own
        raise InvalidArgumentError(
            "filter", text, f"a predicate on the columns of {table.name} ({_cause(error)})"
        ) from error


def _cause(error: Exception) -> str:
    lines = str(error).removeprefix("DataFusion error: ").splitlines()
    return " ".join(lines)
