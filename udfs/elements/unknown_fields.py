"""What is said of a name in a predicate that no field has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from .debug_form import quoted
from .tokens import Kind, Token, named, tokenize

_UNKNOWN = re.compile(r'No field named ((?:"(?:[^"]|"")*"|[^".\s]|\.(?=\S))+)')

_BEFORE_CONDITIONS = frozenset({"and", "or", "not", "when", "then", "else"})
_COMPARING = frozenset("=<>!~")


def in_double_quotes(name: str) -> str:
    """The name as SQL that keeps its case and its dots.

    >>> print(in_double_quotes('Order'), in_double_quotes('q"q'))
    "Order" "q""q"
    """
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


@dataclass(frozen=True, slots=True)
class UnknownFields:
    """The names of a predicate, given its tokens, that are none of an element's fields.

    With `normalize` names without quotes are lower-cased.
    """

    tokens: Sequence[Token]
    element: pa.StructType
    normalize: bool

    def dotted(self) -> str | None:
        """What the predicate takes where it has no quotes around a field with dots in its name."""
        written = [named(token, self.normalize) or token.source for token in self.tokens]
        for field in self.element:
            parts = re.split(r"(\.)", field.name)
            for start in range(len(written) if len(parts) > 1 else 0):
                if self._is_meant(written[start : start + len(parts)], parts):
                    return (
                        f"{_fields('the element', self.element)}; a name with a dot in it takes "
                        f"double quotes: {in_double_quotes(field.name)}"
                    )
        return None

    def named_in(self, reason: str) -> str | None:
        """What the predicate takes where DataFusion's reason is that no field has a name."""
        found = _UNKNOWN.search(reason)
        if found is None:
            return None
        unknown = found.group(1)
        first, *others = tokenize(unknown)
        hint = self._other_case(first.value, self.element)
        if not hint and not others:
            hint = self._text(first.value)
        return f"{_fields('the element', self.element)}; {unknown} is none of them{hint}"

    def inside(self, path: Sequence[str], struct: pa.StructType, name: str) -> str:
        """What the predicate takes in place of a name that no field of a nested struct has."""
        hint = self._other_case(name, struct)
        return f"{_fields('.'.join(path), struct)}; {name} is none of them{hint}"

    def _is_meant(self, written: Sequence[str], name: Sequence[str]) -> bool:
        if not self.normalize:
            return written == name
        return [part.lower() for part in written] == [part.lower() for part in name]

    def _other_case(self, name: str, struct: pa.StructType) -> str:
        """A hint at the field that has the name in other letters."""
        for field in struct:
            if self.normalize and field.name.lower() == name.lower():
                meant = in_double_quotes(field.name)
                return f": did you mean {meant}? names without double quotes are lower-cased"
        return ""

    def _text(self, name: str) -> str:
        """A hint at single quotes, where a name is not the first in its condition."""
        for index, token in enumerate(self.tokens):
            if named(token, self.normalize) != name:
                continue
            before, after = self.tokens[index - 1 : index], self.tokens[index + 1 : index + 2]
            compared = after and after[0].kind is Kind.SYMBOL and after[0].value in _COMPARING
            if before and before[0].value.lower() not in _BEFORE_CONDITIONS and not compared:
                return f": a text takes single quotes, {quoted(token.value)}"
        return ""


def _fields(owner: str, struct: pa.StructType) -> str:
    return f"the fields of {owner}: {', '.join(field.name for field in struct) or 'none'}"
