"""The arguments of this package's table functions, as they stand in a statement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from datafusion.expr import Expr

from ..indexes.errors import InvalidArgumentError

SEARCH: Final = "minhash_search"
PAIRS: Final = "minhash_pairs"
CLUSTERS: Final = "minhash_clusters"
FUNCTION_NAMES: Final = (SEARCH, PAIRS, CLUSTERS)

APPROXIMATE: Final = "approximate"
INDEXED: Final = "indexed"
EXHAUSTIVE: Final = "exhaustive"
MODES: Final = (APPROXIMATE, INDEXED, EXHAUSTIVE)

_NEEDED: Final = ("table", "column", "text", "limit")
_OPTIONAL: Final = ("filter", "mode")


@dataclass(frozen=True, slots=True)
class SearchArguments:
    """What a call of `minhash_search` asks; `text` and `filter` are None for NULL."""

    table: str
    column: str
    text: str | None
    limit: int
    filter: str | None = None
    mode: str = APPROXIMATE

    @classmethod
    def of(cls, arguments: Sequence[Expr]) -> SearchArguments:
        """Reads `(table, column, text, limit[, filter[, mode]])`; NULL for an optional one is none.

        Raises InvalidArgumentError for another number of arguments, and for one that is no
        literal or that is out of its range.
        """
        given = literals(SEARCH, arguments, _NEEDED, _OPTIONAL)
        limit = given["limit"]
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
            raise InvalidArgumentError("limit", limit, "a whole number, 0 or more")
        mode = _optional_text("mode", given["mode"]) or APPROXIMATE
        if mode.lower() not in MODES:
            raise InvalidArgumentError("mode", mode, f"one of {', '.join(MODES)}")
        return cls(
            text_of("table", given["table"]),
            text_of("column", given["column"]),
            _optional_text("text", given["text"]),
            limit,
            _optional_text("filter", given["filter"]),
            mode.lower(),
        )


def literals(
    function: str, arguments: Sequence[Expr], needed: Sequence[str], optional: Sequence[str] = ()
) -> dict[str, Any]:
    """The values of positional arguments by their names; None for those that are left out.

    Raises InvalidArgumentError for another number of them and for one that is no literal.
    """
    names = (*needed, *optional)
    if not len(needed) <= len(arguments) <= len(names):
        optionals = "".join(f"[, {name}" for name in optional) + "]" * len(optional)
        raise InvalidArgumentError(
            function, f"{len(arguments)} arguments", f"({', '.join(needed)}{optionals})"
        )
    values: dict[str, Any] = dict.fromkeys(names)
    for name, argument in zip(names, arguments, strict=False):
        if argument.variant_name() != "Literal":
            raise InvalidArgumentError(
                name,
                argument.canonical_name(),
                f"a literal in {function}; columns and placeholders are for "
                "minhash_distance(text, query)",
            )
        values[name] = argument.python_value().as_py()
    return values


def text_of(argument: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidArgumentError(argument, value, "a text")
    return value


def _optional_text(argument: str, value: object) -> str | None:
    if not isinstance(value, str | None):
        raise InvalidArgumentError(argument, value, "a text or NULL")
    return value
