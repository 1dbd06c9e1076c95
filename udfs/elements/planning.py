"""Private contexts in which statements are planned that the session's own dialect cannot say."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from datafusion import SessionContext
from datafusion.common import DFSchema

from ..session_copy import session_copy
from .tokens import UnreadableTextError, reads_plainly, tokenize

_DIALECT_WITH_LAMBDAS = "duckdb"

# Both read PLAIN text alike; of all dialects only these two have this operator. Where it begins
# a comment instead, the bracket does not end.
_ONLY_GENERIC_AND_DUCKDB = "(1 // 2)"


class Readers:
    """Copies of a context that read text in its own dialect (`own`) or in one with lambdas.

    They share the catalogs, tables, runtime and functions of the context. What is set or
    registered in them is out of its sight; tables that are made in them are in its catalogs.
    `text` is what they are to read, None for anything: functions by other names than those in
    it may not be those of the context.
    """

    def __init__(self, context: SessionContext, text: str | None = "") -> None:
        self._context = context
        self._text = text
        self._functions: dict[str, bool] = {}

    @cached_property
    def own(self) -> SessionContext:
        return session_copy(self._context, self._context, self._text)

    @cached_property
    def lambdas(self) -> SessionContext:
        copy = session_copy(self._context, self._context, self._text)
        copy.sql(f"SET datafusion.sql_parser.dialect = '{_DIALECT_WITH_LAMBDAS}'")
        return copy

    @cached_property
    def normalize(self) -> bool:
        """Whether names without quotes are in lower case."""
        return self._context.enable_ident_normalization()

    @cached_property
    def agree(self) -> bool:
        """Whether both dialects read alike what `reads_plainly`."""
        try:
            self._context.parse_sql_expr(_ONLY_GENERIC_AND_DUCKDB, DFSchema.empty())
        except Exception:  # DataFusion's errors have no type of their own
            return False
        return True

    def have_function(self, name: str) -> bool:
        """Whether the context has a function of that name, of whatever kind."""
        if name not in self._functions:
            self._functions[name] = any(
                _finds(find, name)
                for find in (self._context.udf, self._context.udaf, self._context.udwf)
            )
        return self._functions[name]

    def agree_on(self, text: str) -> bool:
        """Whether a text is surely the same in both dialects; False where a plan has to tell."""
        try:
            return self.agree and reads_plainly(tokenize(text))
        except UnreadableTextError:
            return False


def _finds(find: Callable[[str], object], name: str) -> bool:
    try:
        find(name)
    except KeyError:
        return False
    return True
