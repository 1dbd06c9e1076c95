"""Calls with parameters in SQL text, renamed to functions that have them in their names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...indexes.errors import InvalidArgumentError
from ..elements.tokens import (
    Kind,
    Token,
    UnreadableTextError,
    closing,
    named,
    split_arguments,
    tokenize,
)
from .definitions import DEFINITIONS, PARAMETERS, MinHashFunction, function_of


@dataclass(frozen=True, slots=True)
class RenamedCalls:
    """A text whose calls with parameters have other names; the functions of these."""

    text: str
    functions: tuple[MinHashFunction, ...]
    tokens: tuple[Token, ...]

    def first_named(self, column: str) -> str:
        """A column's name as it would be had the calls kept their names."""
        for function in self.functions:
            column = column.replace(f"{function.name}(", f"{function.base}(")
        return column


def mentions_function(text: str) -> bool:
    """Whether one of the functions may be called in a text: its name is in it."""
    lower = text.lower()
    return any(base in lower for base in DEFINITIONS)


def rename_calls(
    text: str,
    values: Mapping[str, Any],
    is_own: Callable[[str], bool],
    *,
    normalize: bool = True,
) -> RenamedCalls | None:
    """The text with its calls that give parameters renamed; None where there is none.

    `values` are what is given for placeholders. `is_own` tells whether a name is that of this
    package's function where the text is read. Without `normalize` an unquoted name is a
    function's only in lower case. A text that cannot be read has no calls.

    Raises InvalidArgumentError for a parameter that is neither a number nor a placeholder with
    one, or out of its range, and for too many of them.

    >>> rename_calls("SELECT minhash_distance(a, 'b', 64)", {}, lambda _: True).text
    "SELECT minhash_distance__64(a, 'b', 64)"
    """
    if not mentions_function(text):
        return None
    try:
        tokens = tokenize(text)
        calls = [
            (index, base, arguments)
            for index, base in _calls(tokens, normalize)
            if len(arguments := _arguments(tokens, index)) > DEFINITIONS[base].texts
        ]
    except UnreadableTextError:
        return None
    calls = [call for call in calls if is_own(call[1])]
    if not calls:
        return None
    parts: list[str] = []
    functions: dict[str, MinHashFunction] = {}
    position = 0
    for index, base, arguments in calls:
        function = function_of(base, _given(text, tokens, index, base, arguments, values))
        functions[function.name] = function
        parts += [text[position : tokens[index].start], function.name]
        position = tokens[index].end
    renamed = "".join([*parts, text[position:]])
    return RenamedCalls(renamed, tuple(functions.values()), tuple(tokens))


def _calls(tokens: Sequence[Token], normalize: bool) -> Iterator[tuple[int, str]]:
    """Where the names of the functions stand before brackets, and which they are."""
    for index, token in enumerate(tokens[:-1]):
        base = named(token, normalize)
        after_point = index > 0 and tokens[index - 1].is_symbol(".")
        if base is None or base not in DEFINITIONS or after_point:
            continue
        if tokens[index + 1].is_symbol("("):
            yield index, base


def _arguments(tokens: Sequence[Token], name: int) -> list[range]:
    return split_arguments(tokens, name + 1, closing(tokens, name + 1))


def _given(
    text: str,
    tokens: Sequence[Token],
    name: int,
    base: str,
    arguments: Sequence[range],
    values: Mapping[str, Any],
) -> tuple[int, ...]:
    parameters = arguments[DEFINITIONS[base].texts :]
    if len(parameters) > len(PARAMETERS):
        shown = text[tokens[name].start : tokens[arguments[-1][-1] + 1].end]
        texts = "one text" if DEFINITIONS[base].texts == 1 else "two texts"
        takes = f"{texts}, and up to {len(PARAMETERS)} parameters: {', '.join(PARAMETERS)}"
        raise InvalidArgumentError(base, shown, takes)
    prepared = tokens[0].is_word("prepare")
    return tuple(
        _number(parameter, [tokens[i] for i in where], text, values, prepared)
        for parameter, where in zip(PARAMETERS, parameters, strict=False)
    )


def _number(
    parameter: str, tokens: Sequence[Token], text: str, values: Mapping[str, Any], prepared: bool
) -> int:
    takes = "a whole number as a literal: the function is settled when the statement is planned"
    got: Any = text[tokens[0].start : tokens[-1].end] if tokens else ""
    negative = len(tokens) == 2 and tokens[0].is_symbol("-")
    if len(tokens) == 1 or negative:
        literal = tokens[-1]
        if literal.kind is Kind.NUMBER and literal.value.isdecimal():
            return -int(literal.value) if negative else int(literal.value)
        if literal.kind is Kind.PLACEHOLDER and not negative:
            if (given := literal.value[1:]) in values:
                got = values[given]
                if isinstance(got, int) and not isinstance(got, bool):
                    return got
                takes = f"a whole number for {literal.value}"
            elif prepared:
                takes = f"{takes}; PREPARE cannot leave it open"
            else:
                takes = f"{takes}; there is no value for {literal.value}"
    raise InvalidArgumentError(parameter, got, takes)
