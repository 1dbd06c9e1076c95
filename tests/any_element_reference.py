"""The definition of `any_element` in plain Python, over values as `to_pylist()` gives them.

A predicate is a small tree that prints itself as SQL and evaluates itself, in three-valued logic
(True, False, None for UNKNOWN), on an element: a dict, or None for a null element. Comparisons
are DataFusion's: floats are in total order but for -0.0 = 0.0, NaN equals NaN and is greatest.

Nothing here comes from the package under test.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Protocol

Truth = bool | None
Element = Mapping[str, Any] | None


class Predicate(Protocol):
    def sql(self) -> str: ...

    def truth(self, element: Element) -> Truth: ...


class Operand(Protocol):
    def sql(self) -> str: ...

    def value(self, element: Element) -> Any: ...


def any_element(elements: Sequence[Element] | None, predicate: Predicate) -> Truth:
    """TRUE where the predicate is TRUE on an element; else NULL where the list is NULL or the
    predicate is UNKNOWN on an element; else FALSE."""
    if elements is None:
        return None
    truths = [predicate.truth(element) for element in elements]
    if any(truth is True for truth in truths):
        return True
    return None if any(truth is None for truth in truths) else False


# -- operands -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Field:
    """A field, or one of a nested struct; `spelling` is the SQL that names it."""

    path: tuple[str, ...]
    spelling: str

    def sql(self) -> str:
        return self.spelling

    def value(self, element: Element) -> Any:
        found: Any = element
        for name in self.path:
            if found is None:
                return None
            found = found[name]
        return found


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant: SQL and the value that it stands for."""

    spelling: str
    constant: Any

    def sql(self) -> str:
        return self.spelling

    def value(self, element: Element) -> Any:
        return self.constant


NULL = Literal("NULL", None)


@dataclass(frozen=True, slots=True)
class Length:
    """The number of characters of a text."""

    operand: Operand

    def sql(self) -> str:
        return f"character_length({self.operand.sql()})"

    def value(self, element: Element) -> Any:
        text = self.operand.value(element)
        return None if text is None else len(text)


@dataclass(frozen=True, slots=True)
class Plus:
    """A sum that fits the type that it has."""

    operand: Operand
    addend: int

    def sql(self) -> str:
        return f"{self.operand.sql()} + {self.addend}"

    def value(self, element: Element) -> Any:
        number = self.operand.value(element)
        return None if number is None else number + self.addend


# -- comparisons --------------------------------------------------------------------------


def compared(left: Any, right: Any) -> int | None:
    """-1, 0 or 1 as left is less than, equal to or greater than right; None if one is NULL."""
    if left is None or right is None:
        return None
    if isinstance(left, float) or isinstance(right, float):
        left, right = _total_order(float(left)), _total_order(float(right))
    elif isinstance(left, datetime) != isinstance(right, datetime):
        left, right = _midnight(left), _midnight(right)
    return (left > right) - (left < right)


def _total_order(number: float) -> tuple[int, float]:
    if math.isnan(number):
        return (1 if math.copysign(1.0, number) > 0 else -1), 0.0
    return 0, number


def _midnight(day: date) -> datetime:
    return day if isinstance(day, datetime) else datetime(day.year, day.month, day.day)


_HOLDS = {
    "=": lambda order: order == 0,
    "<>": lambda order: order != 0,
    "!=": lambda order: order != 0,
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}


@dataclass(frozen=True, slots=True)
class Compare:
    operator: str
    left: Operand
    right: Operand

    def sql(self) -> str:
        return f"{self.left.sql()} {self.operator} {self.right.sql()}"

    def truth(self, element: Element) -> Truth:
        order = compared(self.left.value(element), self.right.value(element))
        return None if order is None else _HOLDS[self.operator](order)


@dataclass(frozen=True, slots=True)
class Distinct:
    """`left IS [NOT] DISTINCT FROM right`: never UNKNOWN."""

    left: Operand
    right: Operand
    negated: bool = False

    def sql(self) -> str:
        return f"{self.left.sql()} IS {'NOT ' * self.negated}DISTINCT FROM {self.right.sql()}"

    def truth(self, element: Element) -> Truth:
        left, right = self.left.value(element), self.right.value(element)
        if left is None or right is None:
            distinct = (left is None) != (right is None)
        else:
            distinct = compared(left, right) != 0
        return distinct != self.negated


@dataclass(frozen=True, slots=True)
class In:
    """`operand [NOT] IN (items)`: the OR of the equalities, or its negation."""

    operand: Operand
    items: tuple[Operand, ...]
    negated: bool = False

    def sql(self) -> str:
        listed = ", ".join(item.sql() for item in self.items)
        return f"{self.operand.sql()} {'NOT ' * self.negated}IN ({listed})"

    def truth(self, element: Element) -> Truth:
        found: Truth = False
        for item in self.items:
            found = _either(found, Compare("=", self.operand, item).truth(element))
        return _negation(found) if self.negated else found


@dataclass(frozen=True, slots=True)
class Between:
    """`operand [NOT] BETWEEN low AND high`."""

    operand: Operand
    low: Operand
    high: Operand
    negated: bool = False

    def sql(self) -> str:
        bounds = f"{self.low.sql()} AND {self.high.sql()}"
        return f"{self.operand.sql()} {'NOT ' * self.negated}BETWEEN {bounds}"

    def truth(self, element: Element) -> Truth:
        inside = _both(
            Compare(">=", self.operand, self.low).truth(element),
            Compare("<=", self.operand, self.high).truth(element),
        )
        return _negation(inside) if self.negated else inside


@dataclass(frozen=True, slots=True)
class StartsWith:
    """`operand [NOT] LIKE 'prefix%'` or, `called`, `[NOT] starts_with(operand, 'prefix')`.

    The prefix has no wildcard, quote or backslash.
    """

    operand: Operand
    prefix: str
    negated: bool = False
    called: bool = False

    def sql(self) -> str:
        if self.called:
            return f"{'NOT ' * self.negated}starts_with({self.operand.sql()}, '{self.prefix}')"
        return f"{self.operand.sql()} {'NOT ' * self.negated}LIKE '{self.prefix}%'"

    def truth(self, element: Element) -> Truth:
        value = self.operand.value(element)
        return None if value is None else value.startswith(self.prefix) != self.negated


@dataclass(frozen=True, slots=True)
class Like:
    """`operand [NOT] LIKE 'pattern'`, or ILIKE; the pattern has no quote.

    A backslash takes the meaning away from the wildcard or the backslash that follows it.
    """

    operand: Operand
    pattern: str
    negated: bool = False
    any_case: bool = False

    def sql(self) -> str:
        operator = "ILIKE" if self.any_case else "LIKE"
        return f"{self.operand.sql()} {'NOT ' * self.negated}{operator} '{self.pattern}'"

    def truth(self, element: Element) -> Truth:
        value = self.operand.value(element)
        if value is None:
            return None
        tokens = re.findall(r"\\[%_\\]|.", self.pattern)
        wildcards = {"%": ".*", "_": "."}
        regex = "".join(wildcards.get(token) or re.escape(token[-1]) for token in tokens)
        flags = re.DOTALL | (re.IGNORECASE if self.any_case else 0)
        return (re.fullmatch(regex, value, flags) is not None) != self.negated


@dataclass(frozen=True, slots=True)
class IsNull:
    """`operand IS [NOT] NULL`."""

    operand: Operand
    negated: bool = False

    def sql(self) -> str:
        return f"{self.operand.sql()} IS {'NOT ' * self.negated}NULL"

    def truth(self, element: Element) -> Truth:
        return (self.operand.value(element) is None) != self.negated


# -- connectives --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BooleanField:
    """A boolean operand as a predicate."""

    operand: Operand

    def sql(self) -> str:
        return self.operand.sql()

    def truth(self, element: Element) -> Truth:
        return self.operand.value(element)


@dataclass(frozen=True, slots=True)
class Constant:
    """TRUE, FALSE or a boolean NULL."""

    constant: Truth

    def sql(self) -> str:
        return "CAST(NULL AS BOOLEAN)" if self.constant is None else str(self.constant).upper()

    def truth(self, element: Element) -> Truth:
        return self.constant


@dataclass(frozen=True, slots=True)
class Case:
    """`CASE WHEN condition THEN chosen [ELSE otherwise] END`."""

    condition: Predicate
    chosen: Predicate
    otherwise: Predicate | None

    def sql(self) -> str:
        otherwise = "" if self.otherwise is None else f" ELSE {self.otherwise.sql()}"
        return f"CASE WHEN {self.condition.sql()} THEN {self.chosen.sql()}{otherwise} END"

    def truth(self, element: Element) -> Truth:
        if self.condition.truth(element) is True:
            return self.chosen.truth(element)
        return None if self.otherwise is None else self.otherwise.truth(element)


@dataclass(frozen=True, slots=True)
class And:
    left: Predicate
    right: Predicate

    def sql(self) -> str:
        return f"({self.left.sql()}) AND ({self.right.sql()})"

    def truth(self, element: Element) -> Truth:
        return _both(self.left.truth(element), self.right.truth(element))


@dataclass(frozen=True, slots=True)
class Or:
    left: Predicate
    right: Predicate

    def sql(self) -> str:
        return f"({self.left.sql()}) OR ({self.right.sql()})"

    def truth(self, element: Element) -> Truth:
        return _either(self.left.truth(element), self.right.truth(element))


@dataclass(frozen=True, slots=True)
class Not:
    predicate: Predicate

    def sql(self) -> str:
        return f"NOT ({self.predicate.sql()})"

    def truth(self, element: Element) -> Truth:
        return _negation(self.predicate.truth(element))


@dataclass(frozen=True, slots=True)
class Is:
    """`predicate IS [NOT] TRUE|FALSE|UNKNOWN`."""

    predicate: Predicate
    tested: Truth
    negated: bool = False

    def sql(self) -> str:
        tested = "UNKNOWN" if self.tested is None else str(self.tested).upper()
        return f"({self.predicate.sql()}) IS {'NOT ' * self.negated}{tested}"

    def truth(self, element: Element) -> Truth:
        return (self.predicate.truth(element) is self.tested) != self.negated


def _both(left: Truth, right: Truth) -> Truth:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _either(left: Truth, right: Truth) -> Truth:
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def _negation(truth: Truth) -> Truth:
    return None if truth is None else not truth
