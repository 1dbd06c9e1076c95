"""The calls of `any_element` in a statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...indexes.errors import InvalidArgumentError
from .debug_form import quoted
from .tokens import Kind, Token, UnreadableTextError, closing, named, split_arguments, tokenize

NAME = "any_element"

_TAKES = "a string literal, such as 'label = ''car'''"


@dataclass(frozen=True, slots=True)
class Call:
    """`any_element(list, 'predicate')`, which is `text[start:end]` of its statement.

    `list_start` and `list_end` are where the list expression stands.
    """

    start: int
    end: int
    list_start: int
    list_end: int
    predicate: str


@dataclass(frozen=True, slots=True)
class CallingStatement:
    """A statement's text with its calls in the order in which they begin; calls may be nested."""

    text: str
    calls: tuple[Call, ...]
    tokens: tuple[Token, ...]

    def replaced(self, write: Callable[[int, str], str]) -> str:
        """The text with each call written anew from its number and its list expression's text."""
        return self._render(0, len(self.text), range(len(self.calls)), write)

    def _render(
        self, start: int, end: int, calls: Sequence[int], write: Callable[[int, str], str]
    ) -> str:
        parts: list[str] = []
        position = start
        for number in calls:
            call = self.calls[number]
            if call.start < position:
                continue  # inside the one before
            inner = [n for n in calls if call.list_start <= self.calls[n].start < call.list_end]
            parts.append(self.text[position : call.start])
            parts.append(write(number, self._render(call.list_start, call.list_end, inner, write)))
            position = call.end
        parts.append(self.text[position:end])
        return "".join(parts)


def find_calls(
    text: str, values: Mapping[str, Any], *, normalize: bool = True
) -> CallingStatement | None:
    """The calls in a statement; None where there is none, or where the text cannot be read.

    `values` are what is given for placeholders; a predicate that is one of them is written into
    the statement. Without `normalize` an unquoted name is the function's only in lower case.
    Raises InvalidArgumentError for a call with other than two arguments or with a predicate that
    is neither a string literal nor a text among the values.

    >>> statement = find_calls("SELECT any_element(d, 'label = ''car''') FROM t", {})
    >>> statement.replaced(lambda number, argument: f"f({argument})")
    'SELECT f(d) FROM t'
    """
    if NAME not in text.lower():
        return None
    try:
        tokens = tokenize(text)
        places = [
            (index, closing(tokens, index + 1))
            for index in range(len(tokens) - 1)
            if named(tokens[index], normalize) == NAME
            and tokens[index + 1].is_symbol("(")
            and not (index and tokens[index - 1].is_symbol("."))
        ]
    except UnreadableTextError:
        return None
    if not places:
        return None
    calls = tuple(_call(text, tokens, index, end, values) for index, end in places)
    statement = CallingStatement(text, calls, tuple(tokens))
    if all(tokens[end - 1].kind is Kind.STRING for _, end in places):
        return statement
    spelled = statement.replaced(
        lambda number, lists: f"{NAME}({lists}, {quoted(calls[number].predicate)})"
    )
    return find_calls(spelled, {}, normalize=normalize)


def _call(
    text: str, tokens: Sequence[Token], name: int, end: int, values: Mapping[str, Any]
) -> Call:
    arguments = split_arguments(tokens, name + 1, end)
    shown = text[tokens[name].start : tokens[end].end]
    if len(arguments) != 2 or not all(arguments):
        raise InvalidArgumentError(NAME, shown, "a list expression and a predicate")
    first, second = arguments
    if len(second) > 1:
        got = text[tokens[second[0]].start : tokens[second[-1]].end]
        raise InvalidArgumentError("predicate", got, _TAKES)
    predicate = _literal(tokens[second[0]], values, prepared=tokens[0].is_word("prepare"))
    return Call(
        tokens[name].start,
        tokens[end].end,
        tokens[name + 1].end,
        tokens[first[-1] + 1].start,
        predicate,
    )


def _literal(token: Token, values: Mapping[str, Any], *, prepared: bool) -> str:
    """The predicate that a token is, or that is given for it."""
    if token.kind is Kind.STRING:
        return token.value
    takes, placeholder = _TAKES, token.value[1:]
    if token.kind is Kind.OTHER_STRING:
        takes = "a plain string literal, 'text' or $$text$$"
    elif token.kind is Kind.PLACEHOLDER and placeholder in values:
        value = values[placeholder]
        if isinstance(value, str):
            return value
        raise InvalidArgumentError("predicate", value, f"a text for {token.value}")
    elif token.kind is Kind.PLACEHOLDER and prepared:
        takes = f"{_TAKES}; PREPARE cannot leave the predicate open"
    elif token.kind is Kind.PLACEHOLDER:
        takes = f"{_TAKES}; there is no value for {token.value}"
    raise InvalidArgumentError("predicate", token.source, takes)
