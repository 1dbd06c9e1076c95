"""A condition on one field of an element and constants, before it is bound to a key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

import pyarrow as pa
from datafusion.expr import Expr

from .any_element_form import All, ElementPredicate, FieldRead, Part, Tree, is_null_literal

Operator: TypeAlias = Literal["IN", "<", "<=", ">", ">=", "STARTS WITH", "IS NULL", "IS NOT NULL"]

_TURNED: Final[dict[str, Operator]] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_STRAIGHT: Final[dict[str, Operator]] = {"<": "<", "<=": "<=", ">": ">", ">=": ">="}
_VALUES: Final[dict[pa.DataType, str]] = {
    pa.string(): "value_string",
    pa.int8(): "value_i8",
    pa.int16(): "value_i16",
    pa.int32(): "value_i32",
    pa.int64(): "value_i64",
    pa.float64(): "value_f64",
}
"""What a literal of a type that lists are often of gives its value by."""
_ESCAPE: Final = "\\"
_WILDCARDS: Final = "%_"


@dataclass(frozen=True, slots=True, eq=False)
class FieldCondition:
    """`field operator values`: any of the values for IN, one for a comparison or a prefix.

    The values are of the type that the field is cast to, and none is NULL. The condition is
    TRUE wherever the part of the predicate is from which it was read; `whole` where it is
    TRUE on nothing else, and `null_determined` where that part is UNKNOWN exactly where the
    field is NULL, or never for IS NULL. A `guarded` part is NULL on a NULL element.
    """

    field: FieldRead
    operator: Operator
    values: pa.Array
    whole: bool = True
    null_determined: bool = True
    guarded: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Conjunction:
    """Conditions joined by AND; None stands for a part that is no condition on a field."""

    operands: tuple[Condition, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Disjunction:
    """Conditions joined by OR; None stands for a part that is no condition on a field."""

    operands: tuple[Condition, ...]


Condition: TypeAlias = FieldCondition | Conjunction | Disjunction | None


def read_conditions(form: ElementPredicate) -> Condition:
    """The predicate inside the lambda as conditions on fields.

    `'car' = label`                   -> `label IN ('car')`
    `label = 'car' OR label = 'dog'`  -> `label IN ('car', 'dog')`
    `label LIKE 'ca%'`                -> `label STARTS WITH 'ca'`
    `NOT flag`                        -> `flag IN (FALSE)`
    `label <> 'car'`                  -> None
    """
    return _of_tree(form, form.tree())


def _of_tree(form: ElementPredicate, tree: Tree) -> Condition:
    if isinstance(tree, Part):
        read = _of_part(form, tree)
        if read is None:
            return None
        return replace(
            read,
            guarded=tree.guarded,
            null_determined=read.null_determined and not tree.tested,
        )
    operands = tuple(_of_tree(form, part) for part in tree.parts)
    if isinstance(tree, All):
        return Conjunction(operands)
    return _one_of(operands) or Disjunction(operands)


def _one_of(operands: Sequence[Condition]) -> FieldCondition | None:
    """`field IN (…)` for an OR of such conditions on the same field."""
    conditions = [one for one in operands if isinstance(one, FieldCondition)]
    first = conditions[0] if conditions else None
    if first is None or len(conditions) < len(operands):
        return None
    if any(
        (one.operator, one.field, one.guarded, one.values.type)
        != ("IN", first.field, first.guarded, first.values.type)
        for one in conditions
    ):
        return None
    return replace(
        first,
        values=pa.concat_arrays([one.values for one in conditions]),
        whole=all(one.whole for one in conditions)
        # The zeros are all that a list of floats may not hold, see `_of_list`.
        or any(one.whole and _holds_zero(one.values) for one in conditions),
        null_determined=all(one.null_determined for one in conditions),
    )


def _of_part(form: ElementPredicate, part: Part) -> FieldCondition | None:
    """The condition of a part that is no connective."""
    expression = part.expression
    variant = expression.variant_name()
    if variant == "BinaryExpr" and expression.rex_call_operator() != "OR":
        return _of_comparison(form, part)
    if variant == "InList":
        return _of_list(form, part)
    if variant == "Like":
        return _of_pattern(form, part)
    if variant in ("IsNull", "IsUnknown", "IsNotNull", "IsFalse", "Not"):
        field = form.field(_operand(part))
        if field is None:
            return None
        if variant in ("IsNull", "IsUnknown"):
            return _of_null(field, null_determined=variant == "IsNull")
        if variant == "IsNotNull":
            return replace(_of_null(field, null_determined=False), operator="IS NOT NULL")
        return FieldCondition(field, "IN", pa.array([False]), null_determined=variant == "Not")
    field = form.field(part)
    return None if field is None else FieldCondition(field, "IN", pa.array([True]))


def _of_comparison(form: ElementPredicate, part: Part) -> FieldCondition | None:
    operator = part.expression.rex_call_operator()
    left, right = part.expression.rex_call_operands()
    turned = left.variant_name() == "Literal"
    if turned:
        left, right = right, left
    if right.variant_name() != "Literal":
        return None
    field = form.field(replace(part, expression=left))
    if field is None:
        return None
    distinct = operator == "IS NOT DISTINCT FROM"
    if is_null_literal(right):
        return _of_null(field, null_determined=False) if distinct else None
    values = pa.array([right.python_value()])
    if distinct or operator == "=":
        return FieldCondition(field, "IN", values, null_determined=not distinct)
    ordered = (_TURNED if turned else _STRAIGHT).get(operator)
    return None if ordered is None else FieldCondition(field, ordered, values)


def _of_list(form: ElementPredicate, part: Part) -> FieldCondition | None:
    in_list = part.expression.to_variant()
    field = form.field(replace(part, expression=Expr(in_list.expr())))
    if in_list.negated() or field is None:
        return None
    listed = _constants([Expr(one) for one in in_list.list()])
    if listed is None:
        return None
    values = listed.drop_null()
    # A longer list of floats is compared by bits: there, -0.0 is not 0.0.
    return FieldCondition(
        field,
        "IN",
        values,
        whole=not _holds_zero(values),
        null_determined=len(values) == len(listed),
    )


def _constants(expressions: Sequence[Expr]) -> pa.Array | None:
    """The values of literals, all of one type; None where one is no literal."""
    if any(one.variant_name() != "Literal" for one in expressions):
        return None
    kind = expressions[0].python_value().type
    take = _VALUES.get(kind)
    if take is None:
        return pa.array([one.python_value() for one in expressions], kind)
    # Of thousands of literals, without making an Arrow scalar of each.
    return pa.array([getattr(one.to_variant(), take)() for one in expressions], kind)


def _holds_zero(values: pa.Array) -> bool:
    return pa.types.is_floating(values.type) and 0.0 in values.to_pylist()


def _of_pattern(form: ElementPredicate, part: Part) -> FieldCondition | None:
    like = part.expression.to_variant()
    field, pattern = form.field(_operand(part)), Expr(like.pattern())
    if (
        part.expression.rex_call_operator() != "like"
        or like.escape_char() not in (None, _ESCAPE)
        or field is None
        or pattern.variant_name() != "Literal"
        or is_null_literal(pattern)
    ):
        return None
    prefix, whole = _prefix(pattern.python_value().as_py())
    return FieldCondition(
        field, "STARTS WITH", pa.array([prefix]), whole=whole, null_determined=whole
    )


def _prefix(pattern: str) -> tuple[str, bool]:
    """What all texts like the pattern begin with, and whether all that begin so are like it.

    >>> _prefix("abc%"), _prefix("a_c%"), _prefix("50\\\\%%")
    (('abc', True), ('a', False), ('50%', True))
    """
    prefix: list[str] = []
    at = 0
    while at < len(pattern) and pattern[at] not in _WILDCARDS:
        if pattern[at] == _ESCAPE:
            at += 1
            if at == len(pattern) or pattern[at] not in _WILDCARDS + _ESCAPE:
                return "".join(prefix), False
        prefix.append(pattern[at])
        at += 1
    return "".join(prefix), pattern[at:] == "%"


def _of_null(field: FieldRead, *, null_determined: bool) -> FieldCondition:
    return FieldCondition(field, "IS NULL", pa.nulls(0), null_determined=null_determined)


def _operand(part: Part) -> Part:
    return replace(part, expression=part.expression.rex_call_operands()[0])
