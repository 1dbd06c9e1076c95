"""IN lists of a predicate that DataFusion would not answer as the OR of equalities that they are.

It compares the bits of floats, so that -0.0 is not found by `IN (0.0)`, although it equals 0.0.
And it folds two lists for the same operand into one: `k IN (0) AND k IN (1)` becomes FALSE, also
where k is NULL and both are UNKNOWN. An equality beside the list repairs either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from datafusion import SessionContext
from datafusion.expr import Expr

from .expressions import ElementExpressions
from .tokens import Token, closing, joined, split_arguments

_PROBE = "__any_element_in"


@dataclass(frozen=True, slots=True)
class Membership:
    """`operand [NOT] IN (item, …)`: tokens `first` to `last`.

    `operand_last` is the operand's last token, `items` are the tokens of each item, and
    `compared` those that have to be compared by `=`, too.
    """

    first: int
    operand_last: int
    last: int
    negated: bool
    items: tuple[range, ...]
    compared: tuple[range, ...]

    def write(self, text: Callable[[int, int], str]) -> str:
        """SQL for it, `text` giving that of a range of tokens from its first to its last."""
        operand = f"({text(self.first, self.operand_last)})"
        listed = ", ".join(text(item[0], item[-1]) for item in self.items)
        ways = [] if self.items == self.compared else [f"{operand} IN ({listed})"]
        ways += [f"{operand} = ({text(item[0], item[-1])})" for item in self.compared]
        return f"({'NOT ' * self.negated}({' OR '.join(ways)}))"


def find_memberships(
    tokens: Sequence[Token], form: str, fields: pa.StructType, context: SessionContext
) -> tuple[Membership, ...]:
    """The IN lists that need an equality beside them, of a predicate in the given form."""
    if not any(token.is_word("in") for token in tokens):
        return ()
    finder = _Finder(tokens, form, fields, context)
    found = list(finder.memberships())
    shared = Counter(finder.operand(membership) for membership in found)
    return tuple(
        replace(membership, compared=compared)
        for membership in found
        if (compared := finder.compared(membership, shared[finder.operand(membership)] > 1))
    )


class _Finder:
    def __init__(
        self, tokens: Sequence[Token], form: str, fields: pa.StructType, context: SessionContext
    ) -> None:
        self._tokens = tokens
        self._form = form
        self._expressions = ElementExpressions(context, [*fields, pa.field(_PROBE, pa.bool_())])
        self._probe = self._expressions.form(_PROBE)

    def memberships(self) -> Iterator[Membership]:
        for index, token in enumerate(self._tokens[:-1]):
            if index and token.is_word("in") and self._tokens[index + 1].is_symbol("("):
                last = closing(self._tokens, index + 1)
                items = tuple(split_arguments(self._tokens, index + 1, last))
                negated = self._tokens[index - 1].is_word("not")
                first = self._operand_first(index - 1 - negated, last)
                if first is not None and items and all(items):
                    yield Membership(first, index - 1 - negated, last, negated, items, ())

    def _operand_first(self, operand_last: int, last: int) -> int | None:
        """Where the operand begins: there, a column fits in the place of the whole IN."""
        for first in range(operand_last, -1, -1):
            try:
                whole = self._expressions.form(joined(self._tokens[first : last + 1]))
                before, after = self._tokens[:first], self._tokens[last + 1 :]
                around = f"{joined(before)} {_PROBE} {joined(after)}"
                if self._expressions.form(around).replace(self._probe, whole) == self._form:
                    return first
            except Exception:  # DataFusion's errors have no type of their own
                continue
        return None

    def operand(self, membership: Membership) -> str:
        """The operand's form."""
        return self._expressions.form(self._operand_text(membership))

    def compared(self, membership: Membership, shared: bool) -> tuple[range, ...]:
        """The items to be compared by `=` too; `shared` where another list has the same operand."""
        items = membership.items
        values = self._values(membership)
        floats = self._on_floats(membership, values)
        zeros = [number for number, value in enumerate(values) if floats and _is_zero(value)]
        computed = [number for number, value in enumerate(values) if floats and value is None]
        chosen = sorted({*zeros[:1], *computed})
        if shared and not chosen:
            known = [n for n, value in enumerate(values) if value is not None and value.is_valid]
            chosen = known[:1] or [0]
        return tuple(items[number] for number in chosen)

    def _on_floats(self, membership: Membership, values: Sequence[pa.Scalar | None]) -> bool:
        """Whether the operand or an item is a float, or the operand's type is not known yet."""
        operand = self._expressions.type_of(self._operand_text(membership))
        if pa.types.is_floating(operand) or pa.types.is_null(operand):
            return True
        if not (pa.types.is_integer(operand) or pa.types.is_decimal(operand)):
            return False
        return any(
            pa.types.is_floating(
                self._expressions.type_of(joined(self._tokens[item.start : item.stop]))
                if value is None
                else value.type
            )
            for item, value in zip(membership.items, values, strict=True)
        )

    def _values(self, membership: Membership) -> list[pa.Scalar | None]:
        """The items' values, None for those that are no literals."""
        text = joined(self._tokens[membership.first : membership.last + 1])
        in_list: Any = self._expressions.parse(text).to_variant()
        items = [Expr(item) for item in in_list.list()]
        return [item.python_value() if item.variant_name() == "Literal" else None for item in items]

    def _operand_text(self, membership: Membership) -> str:
        return joined(self._tokens[membership.first : membership.operand_last + 1])


def _is_zero(value: pa.Scalar | None) -> bool:
    if value is None or not value.is_valid:
        return False
    kind = value.type
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return numeric and value.as_py() == 0
