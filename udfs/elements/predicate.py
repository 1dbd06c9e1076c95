"""A predicate on the fields of an element, as the body of a lambda over the element.

DataFusion reads a field of a null element, and of a null struct inside one, as what lies under
it. So each field read of the predicate is masked: NULL where what it is read from is NULL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from ...indexes.errors import InvalidArgumentError
from .debug_form import quoted
from .expressions import ELEMENT, ElementExpressions, LambdaBodies
from .membership import Membership, find_memberships
from .planning import Readers
from .tokens import Kind, Token, UnreadableTextError, joined, named, tokenize
from .unknown_fields import UnknownFields, in_double_quotes

_COLUMN = "Column("
_PROBE = "__any_element_probe"

_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)

_REFUSED = {
    "AggregateFunction(": "without aggregate functions",
    "WindowFunction(": "without window functions",
    "input: Window(": "without window functions",
    "Placeholder(": "without placeholders: give the whole predicate as the parameter",
    "subquery": "without subqueries",
    "Unnest(": "without unnest",
}


@dataclass(frozen=True, slots=True)
class FieldRead:
    """A field as the predicate names it: `box.width`, `"a b"`, `box['width']`.

    `first` and `last` are its tokens, `path` the names from the element on.
    """

    first: int
    last: int
    path: tuple[str, ...]


def lambda_body(predicate: str, element: pa.DataType, readers: Readers) -> str:
    """SQL of the lambda's body: the predicate with its field reads masked.

    The text is proved to be the predicate: planned, and with its masks taken off, it is the
    expression that DataFusion makes of the predicate over a table of the elements. A predicate
    that is NULL without a type is UNKNOWN on every element.

    Two things are not as in DataFusion: IN on floats finds both zeros, as its `=` does, and two
    INs on the same operand that exclude each other are UNKNOWN where it is NULL, not FALSE.

    Raises InvalidArgumentError for a text that is not one scalar boolean expression over the
    element's fields, and for elements that are no structs.
    """
    if not pa.types.is_struct(element):
        raise InvalidArgumentError("list_expr", f"a list of {element}", "a list of structs")
    return _Predicate(predicate, element, readers).body()


def masked(path: Sequence[str]) -> str:
    """SQL that reads a field and is NULL where the element, or a struct on the way, is NULL.

    >>> masked(["label"])
    "CASE WHEN __element IS NOT NULL THEN __element['label'] END"
    """
    read = ELEMENT
    for depth, name in enumerate(path):
        source = f"({read})" if depth else read
        read = f"CASE WHEN {source} IS NOT NULL THEN {source}[{quoted(name)}] END"
    return read


class _Predicate:
    """One predicate on its way to a lambda's body."""

    def __init__(self, text: str, element: pa.StructType, readers: Readers) -> None:
        self._text = text
        self._element = element
        self._readers = readers
        try:
            self._tokens = tokenize(text)
            self._fields = ElementExpressions(readers.own, element)
            self._bodies = LambdaBodies(readers.lambdas, element)
        except UnreadableTextError as error:
            raise self._refusal("one expression", str(error)) from error
        except Exception as error:
            got = f"a list of {element}"
            raise InvalidArgumentError(
                "list_expr", got, f"a list of structs that make a table ({error})"
            ) from error
        self._memberships: tuple[Membership, ...] = ()

    def body(self) -> str:
        plain = joined(self._tokens)
        try:
            form, type_ = self._fields.form(plain), self._fields.type_of(plain)
        except Exception as error:
            raise self._unplanned(error) from error
        if not self._is_closed(plain):
            raise self._reserved() or self._refusal("an expression without an alias")
        shown = self._without_strings()
        for sign, condition in _REFUSED.items():
            if sign in shown:
                raise self._refusal(f"an expression {condition}")
        if not (pa.types.is_boolean(type_) or pa.types.is_null(type_)):
            raise self._refusal(f"a boolean expression; this one is {type_}")
        reads = self._proved_reads(form)
        body = self._render(reads)
        memberships = find_memberships(self._tokens, form, self._element, self._readers.own)
        if memberships:
            self._memberships = memberships
            body = self._render(reads)
        return f"CAST(({body}) AS BOOLEAN)" if pa.types.is_null(type_) else body

    def _is_closed(self, plain: str) -> bool:
        """Whether it may stand in parentheses."""
        try:
            self._fields.parse(f"({plain})")
        except Exception:  # DataFusion's errors have no type of their own
            return False
        return True

    def _without_strings(self) -> str:
        """The form without what its strings say.

        A form does not escape what is in strings, so that an end of a string would not be told
        from a double quote in it, nor from one that follows a backslash: let there be none.
        """
        tokens: list[Token] = []
        names: list[str] = []
        for index, token in enumerate(self._tokens):
            if token.kind not in (Kind.STRING, Kind.OTHER_STRING):
                tokens.append(token)
            elif tokens and tokens[-1].is_symbol("["):
                tokens.append(token)
                names.append(token.value)
            else:
                source = token.source
                if token.kind is Kind.STRING:
                    source = source.replace("\\", ".")
                if '"' in token.value and not self._are_quotes_needed(index):
                    source = source.replace('"', ".")
                tokens.append(replace(token, source=source))
        form = self._fields.form(joined(tokens))
        for name in names:
            form = form.replace(f'("{name}")', '("")')
        return _STRINGS.sub('""', form)

    def _are_quotes_needed(self, index: int) -> bool:
        """Whether the predicate cannot be planned without the double quotes in a string.

        So it is with the name of a type, `Timestamp(Second, Some("UTC"))`, in which they come
        in pairs.
        """
        token = self._tokens[index]
        if token.value.count('"') % 2:
            return False
        unquoted = replace(token, source=token.source.replace('"', "."))
        try:
            self._fields.form(joined([*self._tokens[:index], unquoted, *self._tokens[index + 1 :]]))
        except Exception:  # DataFusion's errors have no type of their own
            return True
        return False

    # Which tokens are fields

    def _proved_reads(self, form: str) -> list[FieldRead]:
        reads = list(self._candidates())
        leftover = self._difference(reads, form)
        if leftover is None:
            # A name may also be a type's, a unit of time or the like: let DataFusion say.
            reads = [read for read in reads if self._is_column(read, form)]
            leftover = self._difference(reads, form)
        if leftover is None:
            raise self._refusal("an expression that is the same one inside a lambda")
        if leftover > self._map_reads(reads):
            raise self._refusal("nested fields written as struct.field or struct['field']")
        return reads

    def _candidates(self) -> Iterator[FieldRead]:
        """The tokens that are named as a field is, with the nested names that follow them."""
        tokens = self._tokens
        index = 0
        while index < len(tokens):
            name = self._name(tokens[index])
            follows_dot = index > 0 and tokens[index - 1].is_symbol(".")
            calls = index + 1 < len(tokens) and tokens[index + 1].is_symbol("(")
            if name is None or follows_dot or calls or self._element.get_field_index(name) < 0:
                index += 1
                continue
            read = self._nested(index, name)
            yield read
            index = read.last + 1

    def _nested(self, index: int, name: str) -> FieldRead:
        path, last = [name], index
        type_ = self._element.field(name).type
        while pa.types.is_struct(type_):
            inner, end = self._inner(last)
            if inner is None or type_.get_field_index(inner) < 0:
                break
            path.append(inner)
            type_, last = type_.field(inner).type, end
        return FieldRead(index, last, tuple(path))

    def _inner(self, last: int) -> tuple[str | None, int]:
        """The name by which a field of the struct that ends at `last` is read, and its end."""
        following = self._tokens[last + 1 : last + 4]
        if len(following) > 1 and following[0].is_symbol("."):
            return self._name(following[1]), last + 2
        if len(following) > 2 and following[0].is_symbol("[") and following[2].is_symbol("]"):
            return following[1].value if following[1].kind is Kind.STRING else None, last + 3
        return None, last

    def _name(self, token: Token) -> str | None:
        return named(token, self._readers.normalize)

    def _map_reads(self, reads: Sequence[FieldRead]) -> int:
        """How many of the fields are maps, of which a key is read."""
        return sum(
            pa.types.is_map(self._type(read.path))
            and self._tokens[read.last + 1 : read.last + 2] != []
            and self._tokens[read.last + 1].is_symbol("[")
            for read in reads
        )

    def _type(self, path: Sequence[str]) -> pa.DataType:
        type_: pa.DataType = self._element
        for name in path:
            type_ = type_.field(name).type
        return type_

    def _difference(self, reads: Sequence[FieldRead], form: str) -> int | None:
        """None where the text with these reads masked is another expression.

        Otherwise how many field reads of it are not masked.
        """
        try:
            body = self._bodies.form(self._render(reads))
            # Longer paths first: they contain the shorter ones.
            paths = {read.path: read for read in reads}
            for number, path in enumerate(sorted(paths, key=len, reverse=True)):
                read = paths[path]
                mark = f"\0{number}\0"
                body = body.replace(self._bodies.form(masked(path)), mark)
                text = joined(self._tokens[read.first : read.last + 1])
                if not self._fields.form(self._tokens[read.first].source).startswith(_COLUMN):
                    return None  # such as NULL beside a field of that name
                form = form.replace(self._fields.form(text), mark)
        except Exception:  # DataFusion's errors have no type of their own
            return None
        return form.count(" GetFieldFunc ") if body == form else None

    def _is_column(self, read: FieldRead, form: str) -> bool:
        """Whether DataFusion takes the token for a column: another one then fits in its place."""
        probe = pa.field(_PROBE, self._element.field(read.path[0]).type)
        try:
            probing = ElementExpressions(self._readers.own, [*self._element, probe])
            before, after = self._tokens[: read.first], self._tokens[read.first + 1 :]
            text = f"{joined(before)} {_PROBE} {joined(after)}"
            column = probing.form(self._tokens[read.first].source)
            return (
                column.startswith(_COLUMN)
                and probing.form(text).replace(probing.form(_PROBE), column) == form
            )
        except Exception:  # DataFusion's errors have no type of their own
            return False

    # Text

    def _render(self, reads: Sequence[FieldRead]) -> str:
        return self._text_of(reads, 0, len(self._tokens) - 1)

    def _text_of(
        self,
        reads: Sequence[FieldRead],
        first: int,
        last: int,
        within: Membership | None = None,
    ) -> str:
        """Tokens `first` to `last` with the reads masked and the memberships written out."""
        masks = {read.first: read for read in reads}
        memberships: dict[int, Membership] = {}
        for membership in self._memberships:
            inside = first <= membership.first and membership.last <= last
            if inside and membership is not within:
                # Of two that begin together the longer one holds the other.
                other = memberships.get(membership.first)
                if other is None or other.last < membership.last:
                    memberships[membership.first] = membership
        parts: list[str] = []
        index, end = first, None
        while index <= last:
            token = self._tokens[index]
            if end is not None and token.start > end:
                parts.append(" ")
            if index in memberships:
                membership = memberships[index]
                parts.append(
                    membership.write(
                        lambda a, b, holder=membership: self._text_of(reads, a, b, holder)
                    )
                )
                index = membership.last
            elif index in masks and masks[index].last <= last:
                parts.append(f"({masked(masks[index].path)})")
                index = masks[index].last
            else:
                parts.append(token.source)
            end = self._tokens[index].end
            index += 1
        return "".join(parts)

    # Errors

    def _refusal(self, takes: str, reason: str = "") -> InvalidArgumentError:
        return InvalidArgumentError(
            "predicate", self._text, f"{takes} ({reason})" if reason else takes
        )

    def _unplanned(self, error: Exception) -> InvalidArgumentError:
        reason = str(error).removeprefix("DataFusion error: ")
        if any(token.is_word("select") for token in self._tokens):
            return self._refusal("an expression without subqueries", reason)
        takes = self._unknown(reason)
        if takes is not None:
            return self._refusal(takes)
        names = ", ".join(field.name for field in self._element) or "none"
        return self._reserved() or self._refusal(
            f"one boolean expression over the element's fields: {names}", reason
        )

    def _unknown(self, reason: str) -> str | None:
        """What the predicate takes in place of a name that no field has."""
        names = UnknownFields(self._tokens, self._element, self._readers.normalize)
        if "No field named" in reason:
            return names.dotted() or names.named_in(reason)
        if "Cannot access field" in reason:
            return names.dotted()
        if "not found in struct" not in reason:
            return None
        for read in self._candidates():
            struct, (name, _) = self._type(read.path), self._inner(read.last)
            if name is not None and isinstance(struct, pa.StructType):
                return names.dotted() or names.inside(read.path, struct, name)
        return None

    def _reserved(self) -> InvalidArgumentError | None:
        """The refusal of a field's name without double quotes that is a word of SQL."""
        text = self._text
        for read in reversed([*self._candidates()]):
            token = self._tokens[read.first]
            text = text[: token.start] + in_double_quotes(read.path[0]) + text[token.end :]
        try:
            self._fields.form(text)
        except Exception:  # DataFusion's errors have no type of their own
            return None
        if not self._is_closed(joined(tokenize(text))):
            return None
        return self._refusal(f"names that are reserved words in double quotes: {text}")
