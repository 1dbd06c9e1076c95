"""Predicates on a row: small trees that print themselves for each session, and get smaller."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from .columns import Column, Elements, Labels
from .columns import Plain as PlainColumn
from .elements import draw_element_predicate
from .kinds import text_literal
from .texts import Distance, Texts, draw_bound


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a condition is written: what stands before columns, and for which session.

    Plain DataFusion (`in_memory`) knows no `any_element`, but the lambda that it stands for.
    """

    prefix: str = ""
    in_memory: bool = False


class Condition(Protocol):
    def sql(self, spelling: Spelling) -> str: ...

    def smaller(self) -> Iterator[Condition]:
        """Conditions that are a part of this one."""
        ...


@dataclass(frozen=True, slots=True)
class Plain:
    """SQL in which `@name` stands for a column."""

    text: str

    def sql(self, spelling: Spelling) -> str:
        return re.sub(r"@(\w+)", rf"{spelling.prefix}\1", self.text)

    def smaller(self) -> Iterator[Condition]:
        if self != TRUE:
            yield TRUE


TRUE = Plain("TRUE")


@dataclass(frozen=True, slots=True)
class AnyElement:
    """`any_element(column, 'predicate')`, or `written` as a lambda that means the same.

    In `predicate`, `e.name` is a field of the element. A `masked` lambda reads a field as
    any_element does, NULL of a NULL element; a `raw` one reads what lies under it.
    """

    column: str
    predicate: str
    written: str

    def sql(self, spelling: Spelling) -> str:
        column = f"{spelling.prefix}{self.column}"
        if self.written == "raw":
            return f"array_any_match({column}, e -> {_FIELD.sub(_RAW, self.predicate)})"
        if spelling.in_memory or self.written == "masked":
            return f"array_any_match({column}, e -> {_FIELD.sub(_MASKED, self.predicate)})"
        return f"any_element({column}, {text_literal(_FIELD.sub(_NAME, self.predicate))})"

    def smaller(self) -> Iterator[Condition]:
        yield TRUE
        for part in re.split(r" AND | OR ", self.predicate):
            if part != self.predicate and part.count("(") == part.count(")"):
                yield AnyElement(self.column, part, self.written)


_FIELD = re.compile(r"\be\.(\w+)")
_NAME = r"\1"
_RAW = r"e['\1']"
_MASKED = r"CASE WHEN e IS NOT NULL THEN e['\1'] END"


@dataclass(frozen=True, slots=True)
class Bound:
    """A predicate on a distance of texts, which is `{d}` in the form, with columns as `@name`."""

    form: str
    distance: Distance

    def sql(self, spelling: Spelling) -> str:
        distance = self.distance.sql(spelling.prefix, in_memory=spelling.in_memory)
        return self.form.replace("@", spelling.prefix).replace("{d}", distance)

    def smaller(self) -> Iterator[Condition]:
        yield TRUE
        for distance in self.distance.smaller():
            yield Bound(self.form, distance)


@dataclass(frozen=True, slots=True)
class Near:
    """A distance in the place of a condition: what rows are ordered by, with or without the way."""

    distance: Distance
    with_direction: bool

    def sql(self, spelling: Spelling) -> str:
        distance = self.distance.sql(spelling.prefix, in_memory=spelling.in_memory)
        return f"{distance} {self.distance.direction}" if self.with_direction else distance

    def smaller(self) -> Iterator[Condition]:
        for distance in self.distance.smaller():
            yield Near(distance, self.with_direction)


@dataclass(frozen=True, slots=True)
class Joined:
    """Two conditions or more with AND or OR between them."""

    word: str
    sides: tuple[Condition, ...]

    def sql(self, spelling: Spelling) -> str:
        return "(" + f" {self.word} ".join(side.sql(spelling) for side in self.sides) + ")"

    def smaller(self) -> Iterator[Condition]:
        yield from self.sides
        for at, side in enumerate(self.sides):
            before, after = self.sides[:at], self.sides[at + 1 :]
            if len(self.sides) > 2:
                yield Joined(self.word, (*before, *after))
            for less in side.smaller():
                yield Joined(self.word, (*before, less, *after))


@dataclass(frozen=True, slots=True)
class Around:
    """A condition inside a form: `NOT ({})`, `({}) IS NULL`, ..."""

    form: str
    inside: Condition

    def sql(self, spelling: Spelling) -> str:
        return self.form.format(self.inside.sql(spelling))

    def smaller(self) -> Iterator[Condition]:
        yield self.inside
        for less in self.inside.smaller():
            yield Around(self.form, less)


TESTS = (
    *("({}) IS NULL", "({}) IS NOT NULL", "({}) IS TRUE", "({}) IS NOT TRUE"),
    *("({}) IS FALSE", "({}) IS NOT FALSE", "({}) IS UNKNOWN"),
    "(({}) IS NOT DISTINCT FROM TRUE)",
)


def draw_condition(draw: random.Random, columns: Sequence[Column], depth: int = 2) -> Condition:
    """A condition on columns, with at most `depth` connectives and tests above each leaf."""
    kind = draw.choices(("leaf", "AND", "OR", "NOT", "test"), (5, 3, 2, 1.5, 1))[0]
    if kind == "leaf" or not depth:
        return _draw_leaf(draw, columns)
    inner = draw_condition(draw, columns, depth - 1)
    if kind == "NOT":
        return Around("NOT ({})", inner)
    if kind == "test":
        return Around(draw.choice(TESTS), inner)
    others = [draw_condition(draw, columns, depth - 1) for _ in range(draw.choice((1, 1, 1, 2)))]
    return Joined(kind, (inner, *others))


Leaf = Callable[[random.Random, Sequence[Column]], Condition]


def _draw_leaf(draw: random.Random, columns: Sequence[Column]) -> Condition:
    kinds = {type(column) for column in columns}
    leaves = [(leaf, weight) for leaf, weight, kind in LEAVES if kind in kinds]
    leaf = draw.choices([leaf for leaf, _ in leaves], [weight for _, weight in leaves])[0]
    return leaf(draw, columns)


# -- plain columns ----------------------------------------------------------------------------

_PLAIN = (
    *("@n < 2", "@n = 3", "@n IS NULL", "@n IN (0, 3)", "NOT (@n BETWEEN 1 AND 2)", "@n <> 1"),
    *("@s = 'x'", "@s <> 'y'", "@s LIKE '%x%'", "@s IS NOT NULL", "@s IN ('x', 'z', NULL)"),
    *("@x = 0.0", "@x <= 0.5", "@x > 0.5", "@x <> CAST('NaN' AS DOUBLE)", "@x IS NULL"),
    *("@key % 3 = 1", "@key > 20", "@key BETWEEN 5 AND 60", "abs(@n) = 2"),
    *("@day > DATE '2020-01-01'", "@text LIKE '%dog%'", "@m = @key", "true", "false"),
    # A NULL literal is missing here: as a conjunct of its own it fails in DataFusion's Python
    # package over every pyarrow dataset, before a table is asked.
)


def _draw_plain(draw: random.Random, columns: Sequence[Column]) -> Condition:
    listed = [f"@{c.name} IS NULL" for c in columns if not isinstance(c, PlainColumn)]
    listed += [f"cardinality(@{c.name}) = 2" for c in columns if isinstance(c, Labels)]
    return Plain(draw.choice((*_PLAIN, *_PLAIN, *listed)))


# -- labels -------------------------------------------------------------------------------------

_ONE = (
    *("array_has(@{c}, {one})", "array_has(@{c}, {one})", "array_contains(@{c}, {one})"),
    "{one} = ANY(@{c})",
)
_SEVERAL = (
    *("array_has_any(@{c}, [{some}])", "array_has_any(@{c}, [{some}])"),
    *("array_has_all(@{c}, [{some}])", "list_has_any(@{c}, [{some}])"),
    *("arrays_overlap(@{c}, [{some}])", "@{c} @> [{some}]", "array_has_any([{some}], @{c})"),
    # On a batch whose lists have no element at all, DataFusion itself takes this for TRUE on
    # NULL lists: see tests/test_label_list_semantics.py.
    "(@{c} IS NOT NULL AND array_has_all([{some}], @{c}))",
)
_RARE = (
    *("array_has(@{c}, NULL)", "array_has_any(@{c}, [])", "array_has_all(@{c}, [])"),
    *("array_has_any(@{c}, [{one}, NULL])", "array_has_all(@{c}, [{one}, NULL])"),
)


def _draw_labels(draw: random.Random, columns: Sequence[Column]) -> Condition:
    column = draw.choice([c for c in columns if isinstance(c, Labels)])
    literals = column.kind.literals
    one = draw.choice(literals[:8] if draw.random() < 0.6 else literals)
    if column.kind.others and draw.random() < 0.06:
        one = draw.choice(column.kind.others)
    some = draw.sample(literals, min(len(literals), draw.randrange(1, 4)))
    if pa.types.is_integer(column.type.value_type) and draw.random() < 0.03:
        one = "'1'"  # compared as text
    form = draw.choice(draw.choices((_ONE, _SEVERAL, _RARE), (6, 6, 1))[0])
    # Not before the lists: of those DataFusion has answers that depend on the batch.
    behind = not form.startswith(("(", "array_has_any([{"))
    if behind and pa.types.is_string(column.type.value_type) and draw.random() < 0.05:
        one, some = "@s", [*some, "lower(@s)"]
    return Plain(form.format(c=column.name, one=one, some=", ".join(some)))


# -- elements -----------------------------------------------------------------------------------


def _draw_elements(draw: random.Random, columns: Sequence[Column]) -> Condition:
    column = draw.choice([c for c in columns if isinstance(c, Elements)])
    written = draw.choices(("any_element", "masked", "raw"), (6, 3, 1))[0]
    return AnyElement(column.name, draw_element_predicate(draw, column), written)


# -- texts --------------------------------------------------------------------------------------


def _draw_texts(draw: random.Random, columns: Sequence[Column]) -> Condition:
    return Bound(*draw_bound(draw, draw.choice([c for c in columns if isinstance(c, Texts)])))


LEAVES: tuple[tuple[Leaf, float, type], ...] = (
    (_draw_plain, 1.5, PlainColumn),
    (_draw_labels, 6, Labels),
    (_draw_elements, 6, Elements),
    (_draw_texts, 5, Texts),
)
"""Draws a leaf, with its weight and the kind of column that it is about."""
