"""`any_element` as a plan holds it: `array_any_match` over a list of structs.

The text `any_element(d, 'label = ''car''')` is planned as

    array_any_match(d, e -> CASE WHEN e IS NOT NULL THEN get_field(e, 'label') END = 'car')

where every read of a field is *masked*, so that it is NULL on a NULL element; a plain
`get_field(e, 'label')` reads there whatever lies under the NULL. DataFusion's optimizer
makes connectives out of the CASE of a boolean field:

    flag      (e IS NOT NULL AND get_field(e, 'flag')) OR (e IS NULL AND NULL)
    NOT flag  (e IS NULL OR NOT get_field(e, 'flag')) AND (e IS NOT NULL OR NULL)

and merges them with the connectives around. Here they are taken apart again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_, or_
from typing import TypeAlias

import pyarrow as pa
from datafusion.expr import Expr

from .cast_type import cast_type
from .conjunction import conjuncts, disjuncts

FUNCTION = "array_any_match"
FIELD_FUNCTION = "get_field"


@dataclass(frozen=True, slots=True)
class FieldRead:
    """A field of the element, cast to each of `casts` in turn.

    `path` are the names from the element on. `masked` where it is NULL on a NULL element.
    """

    path: tuple[str, ...]
    masked: bool
    casts: tuple[pa.DataType, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A condition inside the lambda.

    `guarded`: on a NULL element it is NULL, whatever the expression is. `tested`: it is the
    expression IS TRUE, so FALSE where the expression is UNKNOWN.
    """

    expression: Expr
    guarded: bool = False
    tested: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class All:
    """Parts joined by AND, none of them an `All`."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Any:
    """Parts joined by OR, none of them an `Any`."""

    parts: tuple[Tree, ...]


Tree: TypeAlias = Part | All | Any


@dataclass(frozen=True, slots=True)
class ElementPredicate:
    """`array_any_match(column, variable -> predicate)`."""

    column: str
    variable: str
    predicate: Expr

    @classmethod
    def of(cls, expression: Expr) -> ElementPredicate | None:
        """The call in an expression; None for any other expression, or list than a column."""
        if (
            expression.variant_name() != "HigherOrderFunction"
            or expression.rex_call_operator() != FUNCTION
        ):
            return None
        values, function = expression.rex_call_operands()
        if values.variant_name() != "Column" or function.variant_name() != "Lambda":
            return None
        lambda_ = function.to_variant()
        parameters = lambda_.params()
        if len(parameters) != 1:
            return None
        return cls(values.to_variant().name(), parameters[0], Expr(lambda_.body()))

    def tree(self) -> Tree:
        """The predicate as its connectives join its parts, three-valued."""
        return self._tree(Part(self.predicate))

    def field(self, part: Part) -> FieldRead | None:
        """The field that the part's expression reads; None where it is anything else.

        `CASE WHEN e IS NOT NULL THEN get_field(e, 'label') END` -> `label`, masked
        `get_field(e, 'box', 'width')`                           -> `box`, `width`, not masked
        `CAST(get_field(e, 'label') AS Utf8View)`                -> `label`, cast
        `e`                                                      -> no name at all, masked
        """
        expression = part.expression
        variant = expression.variant_name()
        if variant == "Cast":
            inner = self.field(replace(part, expression=expression.rex_call_operands()[0]))
            kind = cast_type(expression)
            if inner is None or kind is None:
                return None
            return replace(inner, casts=(*inner.casts, kind))
        if self._is_variable(expression):
            return FieldRead((), masked=True)
        if variant == "BinaryExpr" and expression.rex_call_operator() == "OR":
            alone = self._disjuncts(part)
            return self.field(alone[0]) if len(alone) == 1 else None
        read = self._masked(expression) if variant == "Case" else self._plain(expression)
        if read is not None and part.guarded:
            return replace(read, masked=True)
        return read

    # -- connectives ----------------------------------------------------------------------

    def _tree(self, part: Part) -> Tree:
        alternatives = self._disjuncts(part)
        if len(alternatives) > 1:
            return Any(self._flattened(alternatives, Any))
        if alternatives[0] is not part:
            return self._tree(alternatives[0])
        joined = self._conjuncts(part)
        if len(joined) > 1:
            return All(self._flattened(joined, All))
        if joined[0] is not part:
            return self._tree(joined[0])
        inner = _tested(part.expression)
        return part if inner is None else self._tree(replace(part, expression=inner, tested=True))

    def _flattened(self, parts: list[Part], kind: type[All | Any]) -> tuple[Tree, ...]:
        trees = (self._tree(part) for part in parts)
        return tuple(
            inner
            for tree in trees
            for inner in (
                tree.parts if isinstance(tree, All | Any) and type(tree) is kind else [tree]
            )
        )

    def _conjuncts(self, part: Part) -> list[Part]:
        """The operands of the part's ANDs.

        `(e IS NOT NULL OR NULL) AND (e IS NULL OR p)` is `p`, guarded: the first is NULL on
        a NULL element, the second TRUE. `e IS NOT NULL` guards all that is joined with it.
        """
        parts = _split(part, conjuncts)
        if len(parts) == 1:
            return [part]
        present = [self._is_null_test(one.expression, "IsNotNull") for one in parts]
        if any(present):
            return [
                one if here else replace(one, guarded=True)
                for one, here in zip(parts, present, strict=True)
            ]
        if not any(self._is_unknown_if_null(one) for one in parts):
            return parts
        return self._guarded(
            parts, self._is_unknown_if_null, lambda expression: self._unless(expression, "OR")
        )

    def _disjuncts(self, part: Part) -> list[Part]:
        """The operands of the part's ORs.

        `(e IS NULL AND NULL) OR (e IS NOT NULL AND p)` is `p`, guarded: the first is NULL on
        a NULL element, the second FALSE.
        """
        parts = _split(part, disjuncts)
        if len(parts) == 1:
            return [part]
        if not any(self._is_null_if_null(one) for one in parts):
            return parts
        return self._guarded(
            parts, self._is_null_if_null, lambda expression: self._unless(expression, "AND")
        )

    def _guarded(
        self,
        parts: list[Part],
        guards: Callable[[Part], bool],
        guarded_by: Callable[[Expr], Expr | None],
    ) -> list[Part]:
        """The parts without the guards, which make guarded parts of those meant for them."""
        found = False
        kept: list[Part] = []
        for part in parts:
            if guards(part):
                continue
            inner = guarded_by(part.expression)
            found = found or inner is not None
            kept.append(part if inner is None else replace(part, expression=inner, guarded=True))
        return kept if found else parts

    def _unless(self, expression: Expr, operator: str) -> Expr | None:
        """`p` of `e IS NULL OR p`, or of `e IS NOT NULL AND p`; None for others."""
        split, join, test = (
            (disjuncts, or_, "IsNull") if operator == "OR" else (conjuncts, and_, "IsNotNull")
        )
        operands = split(expression)
        others = [one for one in operands if not self._is_null_test(one, test)]
        return reduce(join, others) if 0 < len(others) < len(operands) else None

    def _is_unknown_if_null(self, part: Part) -> bool:
        """`e IS NOT NULL OR NULL`."""
        return self._is_pair(disjuncts(part.expression), "IsNotNull")

    def _is_null_if_null(self, part: Part) -> bool:
        """`e IS NULL AND NULL`."""
        return self._is_pair(conjuncts(part.expression), "IsNull")

    def _is_pair(self, operands: list[Expr], test: str) -> bool:
        return len(operands) == 2 and any(
            self._is_null_test(one, test) and is_null_literal(other)
            for one, other in (operands, operands[::-1])
        )

    def _is_null_test(self, expression: Expr, test: str) -> bool:
        return expression.variant_name() == test and self._is_variable(
            expression.rex_call_operands()[0]
        )

    # -- reads ----------------------------------------------------------------------------

    def _is_variable(self, expression: Expr) -> bool:
        return (
            expression.variant_name() == "LambdaVariable"
            and expression.to_variant().name() == self.variable
        )

    def _masked(self, expression: Expr) -> FieldRead | None:
        """`CASE WHEN s IS NOT NULL THEN get_field(s, 'name') END`, `s` a struct."""
        case = expression.to_variant()
        branches, otherwise = case.when_then_expr(), case.else_expr()
        if case.expr() is not None or len(branches) != 1:
            return None
        if otherwise is not None and not is_null_literal(Expr(otherwise)):
            return None
        when, then = (Expr(side) for side in branches[0])
        if when.variant_name() != "IsNotNull":
            return None
        inside = _get_field(then)
        struct = when.rex_call_operands()[0]
        if inside is None or struct.canonical_name() != inside[0].canonical_name():
            return None
        path = self._path(struct)
        return None if path is None else FieldRead((*path, *inside[1]), len(inside[1]) == 1)

    def _path(self, struct: Expr) -> tuple[str, ...] | None:
        """Where a struct is that masks its fields."""
        if self._is_variable(struct):
            return ()
        read = self.field(Part(struct))
        return read.path if read is not None and read.masked and not read.casts else None

    def _plain(self, expression: Expr) -> FieldRead | None:
        """`get_field(e, 'name', …)`."""
        inside = _get_field(expression)
        if inside is None or not self._is_variable(inside[0]):
            return None
        return FieldRead(inside[1], masked=False)


def is_null_literal(expression: Expr) -> bool:
    """Whether the expression is the constant NULL, of any type."""
    return expression.variant_name() == "Literal" and not expression.python_value().is_valid


def _split(part: Part, split: Callable[[Expr], list[Expr]]) -> list[Part]:
    return [replace(part, expression=one) for one in split(part.expression)]


def _tested(expression: Expr) -> Expr | None:
    """`p` of `p IS TRUE`, which may be written `p IS NOT DISTINCT FROM TRUE`."""
    if expression.variant_name() == "IsTrue":
        return expression.rex_call_operands()[0]
    if (
        expression.variant_name() == "BinaryExpr"
        and expression.rex_call_operator() == "IS NOT DISTINCT FROM"
    ):
        left, right = expression.rex_call_operands()
        if right.variant_name() == "Literal" and right.python_value().as_py() is True:
            return left
    return None


def _get_field(expression: Expr) -> tuple[Expr, tuple[str, ...]] | None:
    """The struct and the names in `get_field(struct, 'name', …)`."""
    if (
        expression.variant_name() != "ScalarFunction"
        or expression.rex_call_operator() != FIELD_FUNCTION
    ):
        return None
    struct, *names = expression.rex_call_operands()
    if any(name.variant_name() != "Literal" for name in names):
        return None
    path = tuple(name.python_value().as_py() for name in names)
    return (struct, path) if all(isinstance(name, str) for name in path) else None
