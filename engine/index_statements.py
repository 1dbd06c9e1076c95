"""CREATE INDEX, DROP INDEX and SHOW INDEXES.

DataFusion parses CREATE INDEX into a plan that it cannot run; what stands behind the columns is
lost in it and is read from the text here. The other two it does not know: they are recognized by
their tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from datafusion import DataFrame
from datafusion.expr import Expr

from ..indexes.errors import InvalidArgumentError, StatementError
from ..udfs.elements.tokens import (
    Kind,
    Token,
    UnreadableTextError,
    closing,
    joined,
    named,
    split_arguments,
    tokenize,
)

KINDS: Final[Mapping[str, str]] = {
    "list_element": "LIST_ELEMENT",
    "label_list": "LABEL_LIST",
    "minhash_lsh": "MINHASHLSH",
}
"""What USING takes, and the kind that `create_lance_index` knows it by."""

_EXAMPLE: Final = "list_element (detections.label, detections.confidence)"


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """CREATE INDEX [IF NOT EXISTS] [name] ON table USING kind (column or its fields) [WITH (..)].

    `parameters` are the keyword arguments of `create_lance_index` for the kind.
    """

    name: str | None
    table: str
    kind: str
    column: str
    parameters: Mapping[str, Any]
    if_not_exists: bool

    @property
    def index_name(self) -> str:
        return f"{self.column}_idx" if self.name is None else self.name


@dataclass(frozen=True, slots=True)
class DropIndex:
    """DROP INDEX [IF EXISTS] name [ON table]."""

    name: str
    table: str | None
    if_exists: bool


@dataclass(frozen=True, slots=True)
class ShowIndexes:
    """SHOW INDEXES [FROM table]; INDEX, KEYS and IN are other words for the same."""

    table: str | None


# -- recognizing --------------------------------------------------------------------------


def creates_index(text: str) -> bool:
    """Whether the text begins as CREATE INDEX does.

    >>> creates_index("CREATE UNIQUE INDEX i ON t (a)"), creates_index("CREATE TABLE t AS SELECT 1")
    (True, False)
    """
    head = [token.value.lower() for token in _tokens(text)[:3]]
    return head[:2] == ["create", "index"] or head == ["create", "unique", "index"]


def parse_statement(text: str, normalize: bool) -> DropIndex | ShowIndexes | None:
    """The statement that a text is; None for any that DataFusion itself is to read.

    `normalize`: names without quotes are in lower case. Raises StatementError for a text that
    begins as one of the two and goes on otherwise.

    >>> parse_statement('DROP INDEX IF EXISTS "My" ON public.images;', True)
    DropIndex(name='My', table='public.images', if_exists=True)
    >>> parse_statement("SHOW INDEXES FROM images", True)
    ShowIndexes(table='images')
    """
    reader = _Reader(_tokens(text), normalize)
    if reader.words("drop", "index"):
        if_exists = reader.words("if", "exists")
        name = reader.name("an index name")
        table = reader.reference() if reader.words("on") else None
        reader.end()
        return DropIndex(name, table, if_exists)
    for word in ("indexes", "index", "keys"):
        if reader.words("show", word):
            if reader.at_end:
                return ShowIndexes(None)
            if not (reader.words("from") or reader.words("in")):
                return None
            table = reader.reference()
            reader.end()
            return ShowIndexes(table)
    return None


def _tokens(text: str) -> list[Token]:
    """The tokens without semicolons at the end; none of a text that cannot be read."""
    try:
        tokens = tokenize(text)
    except UnreadableTextError:
        return []
    while tokens and tokens[-1].is_symbol(";"):
        tokens.pop()
    return tokens


class _Reader:
    """Reads a statement's tokens one after the other."""

    def __init__(self, tokens: Sequence[Token], normalize: bool) -> None:
        self._tokens = tokens
        self._normalize = normalize
        self._at = 0

    @property
    def at_end(self) -> bool:
        return self._at >= len(self._tokens)

    def words(self, *words: str) -> bool:
        """Goes on behind the words where they are what comes next."""
        ahead = self._tokens[self._at : self._at + len(words)]
        found = len(ahead) == len(words) and all(
            token.is_word(word) for token, word in zip(ahead, words, strict=True)
        )
        if found:
            self._at += len(words)
        return found

    def name(self, what: str) -> str:
        name = None if self.at_end else named(self._tokens[self._at], self._normalize)
        if name is None:
            raise self._expected(what)
        self._at += 1
        return name

    def reference(self) -> str:
        """A table's name in up to three parts, as it stands."""
        first = self._at
        self.name("a table name")
        while not self.at_end and self._tokens[self._at].is_symbol("."):
            self._at += 1
            self.name("a table name")
        return joined(self._tokens[first : self._at])

    def end(self) -> None:
        if not self.at_end:
            raise self._expected("end of statement")

    def _expected(self, what: str) -> StatementError:
        found = "EOF" if self.at_end else self._tokens[self._at].source
        return StatementError(f"SQL error: expected {what}, found: {found}")


# -- CREATE INDEX -------------------------------------------------------------------------


def create_index_of(planned: DataFrame, text: str) -> CreateIndex:
    """What DataFusion's plan of a CREATE INDEX and its text say.

    Raises StatementError for what no index of this package has (UNIQUE, DESC, WHERE, ...), and
    InvalidArgumentError for a kind, columns or options that none takes.
    """
    node = planned.logical_plan().to_variant()
    using = node.using()
    kind = KINDS.get((using or "").lower())
    if kind is None:
        raise InvalidArgumentError("USING", using, f"one of {', '.join(sorted(KINDS))}")
    if node.unique():
        raise _unsupported("UNIQUE")
    columns = node.columns()
    if not all(column.ascending() for column in columns):
        raise _unsupported("DESC")
    options = _options(text)
    table = _table(text)
    column, keys = _column_and_keys([Expr(column.expr()) for column in columns], node.table())
    if kind == "LIST_ELEMENT":
        if not keys:
            raise InvalidArgumentError(
                "USING list_element", f"({column})", f"fields of the column, such as {_EXAMPLE}"
            )
        options = {"keys": keys} | options
    elif keys:
        raise InvalidArgumentError(
            f"USING {using}", f"({column}.{keys[0]})", "the column alone, without fields"
        )
    return CreateIndex(node.name(), table, kind, column, options, node.if_not_exists())


def _unsupported(what: str) -> StatementError:
    return StatementError(f"This feature is not implemented: CREATE INDEX with {what}")


def _table(text: str) -> str:
    """The table's name as it stands; the plan has it without its quotes."""
    tokens = _tokens(text)
    opening = _opening(tokens)
    on = max(i for i, token in enumerate(tokens[:opening]) if token.is_word("on"))
    reader = _Reader(tokens[on + 1 :], normalize=False)
    return reader.reference()


def _opening(tokens: Sequence[Token]) -> int:
    """Where the list of columns begins: no bracket can stand before."""
    return next(i for i, token in enumerate(tokens) if token.is_symbol("("))


def _column_and_keys(expressions: Sequence[Expr], table: str) -> tuple[str, list[str]]:
    """The one column, and the fields of its elements where such are named."""
    columns: set[str] = set()
    keys: list[str] = []
    for expression in expressions:
        path = _path(expression, table)
        columns.add(path[0])
        if len(path) > 2 or (len(path) == 1 and len(expressions) > 1):
            raise _no_columns(expression)
        keys += path[1:]
    if len(columns) != 1:
        raise InvalidArgumentError(
            "columns", ", ".join(sorted(columns)), "one column, or fields of one: an index has one"
        )
    return columns.pop(), keys


def _path(expression: Expr, table: str) -> list[str]:
    """The names of a column and of a field inside of it."""
    variant = expression.variant_name()
    if variant == "Column":
        column = expression.to_variant()
        # A first name that is no column's is taken for a table's.
        if column.relation() in (None, table, table.rpartition(".")[2]):
            return [column.name()]
    if variant == "ScalarFunction" and expression.rex_call_operator() == "get_field":
        inner, *fields = expression.rex_call_operands()
        if all(field.variant_name() == "Literal" for field in fields):
            return [*_path(inner, table), *(field.python_value().as_py() for field in fields)]
    raise _no_columns(expression)


def _no_columns(expression: Expr) -> InvalidArgumentError:
    return InvalidArgumentError(
        "columns", expression.canonical_name(), f"a column, or fields of one, such as {_EXAMPLE}"
    )


def _options(text: str) -> dict[str, Any]:
    """The options in WITH (..) behind the columns; raises for anything else that stands there.

    DataFusion's plan has nothing of it.
    """
    tokens = _tokens(text)
    if any(token.is_word("concurrently") for token in tokens[2:4]):
        raise _unsupported("CONCURRENTLY")
    behind = closing(tokens, _opening(tokens)) + 1
    if behind == len(tokens):
        return {}
    if not tokens[behind].is_word("with"):
        raise _unsupported(joined(tokens[behind:]))
    opening = behind + 1
    end = closing(tokens, opening)
    if end + 1 < len(tokens):
        raise _unsupported(joined(tokens[end + 1 :]))
    options: dict[str, Any] = {}
    for argument in split_arguments(tokens, opening, end):
        _add_option(options, [tokens[i] for i in argument])
    return options


def _add_option(options: dict[str, Any], tokens: Sequence[Token]) -> None:
    """Adds `name = value`, or `name.part = value` as a part of that option."""
    equals = next((i for i, token in enumerate(tokens) if token.is_symbol("=")), len(tokens))
    names = [named(token, normalize=True) for token in tokens[:equals:2]]
    dotted = all(token.is_symbol(".") for token in tokens[1:equals:2])
    if equals < len(tokens) - 1 and equals % 2 and dotted and len(names) <= 2:
        *outer, name = names
        into = options
        for part in outer:
            into = options.setdefault(str(part), {})
        if name is not None and None not in outer and isinstance(into, dict) and name not in into:
            into[name] = _value(".".join(map(str, names)), tokens[equals + 1 :])
            return
    raise InvalidArgumentError("WITH", joined(tokens), "name = value, each name once")


def _value(name: str, tokens: Sequence[Token]) -> Any:
    """A literal: a number, a text, TRUE or FALSE."""
    if len(tokens) == 1:
        (token,) = tokens
        if token.kind is Kind.STRING:
            return token.value
        if token.kind is Kind.NUMBER:
            return int(token.value) if token.value.isdecimal() else float(token.value)
        if token.is_word("true") or token.is_word("false"):
            return token.is_word("true")
    raise InvalidArgumentError(name, joined(tokens), "a number, a text, TRUE or FALSE")
