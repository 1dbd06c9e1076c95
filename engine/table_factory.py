"""CREATE EXTERNAL TABLE ... STORED AS LANCE."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from datafusion import SessionContext
from datafusion.catalog import Table, TableProviderFactory

from ..indexes.cache import ReaderCache
from ..indexes.errors import InvalidArgumentError, StatementError
from ..udfs.elements.tokens import UnreadableTextError, joined, tokenize
from .registry import RegisteredTable, Terms

Result = TypeVar("Result")

_FORMAT: Final = "LANCE"
# DataFusion puts it before the name of an option that has no dot.
_PREFIX: Final = "format."
_BOOLEANS: Final[Mapping[str, bool]] = {"true": True, "false": False}


def creates_external_table(text: str) -> bool:
    """Whether a statement may be a CREATE EXTERNAL TABLE of a Lance table.

    >>> creates_external_table("CREATE EXTERNAL TABLE t STORED AS LANCE LOCATION 'x'")
    True
    """
    return re.search(r"external[\s\S]*stored[\s\S]*lance", text, re.IGNORECASE) is not None


class LanceTableFactory(TableProviderFactory):
    """Makes the table of one statement, the same as `register_lance` makes.

    The options `version` (a number or a tag) and `row_id` (TRUE or FALSE) are those of
    `register_lance`, every other one is a storage option of Lance's.
    """

    def __init__(self, cache: ReaderCache) -> None:
        self._cache = cache
        self._error: Exception | None = None

    def serving(self, context: SessionContext, plan: Callable[[], Result]) -> Result:
        """What `plan` gives while DataFusion asks this factory; its errors come as they are."""
        context.register_table_factory(_FORMAT, self)
        try:
            return plan()
        except Exception as error:
            if self._error is not None:
                raise self._error from error
            raise

    def create(self, cmd: Any) -> Table:
        try:
            return Table(self._table(cmd))
        except Exception as error:
            self._error = error
            raise

    def _table(self, cmd: Any) -> RegisteredTable:
        (location,) = cmd.locations()
        terms = _terms(location, cmd.options())
        # DataFusion has not looked at these: what it makes of them is the factory's.
        for what, given in (
            ("a list of columns", cmd.schema().field_names()),
            ("PARTITIONED BY", cmd.table_partition_cols()),
            ("WITH ORDER", cmd.order_exprs()),
            ("UNBOUNDED", cmd.unbounded()),
        ):
            if given:
                raise StatementError(
                    f"Error during planning: {what} is not supported for tables stored as LANCE: "
                    "they have their own schema"
                )
        return RegisteredTable(_name(cmd), terms.open(), terms, self._cache)


def _terms(location: str, options: Mapping[str, str]) -> Terms:
    given: dict[str, str] = {name.removeprefix(_PREFIX): value for name, value in options.items()}
    version: Any = given.pop("version", None)
    if version is not None and version.isdecimal():
        version = int(version)
    row_id = given.pop("row_id", "false")
    if row_id.lower() not in _BOOLEANS:
        raise InvalidArgumentError("row_id", row_id, "TRUE or FALSE")
    return Terms(location, version, given or None, _BOOLEANS[row_id.lower()])


def _name(cmd: Any) -> str:
    """The table's name as it stands in the statement, which `cmd.name()` has without quotes."""
    try:
        tokens = tokenize(cmd.definition() or "")
    except UnreadableTextError:
        return cmd.name()
    begin = next(i for i, token in enumerate(tokens) if token.is_word("table")) + 1
    if tokens[begin].is_word("if"):
        begin += 3
    end = begin + 1
    while tokens[end].is_symbol("."):
        end += 2
    return joined(tokens[begin:end])
