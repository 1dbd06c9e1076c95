"""Rebuilds the nodes between a plan's root and subtrees that are replaced.

DataFusion's Python side has no constructors of plan nodes; its DataFrame API builds them.
Subtrees without a replacement are taken as they are, and expressions are passed along
untouched. What a rebuilt plan means is not trusted: `guard` compares it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from datafusion import DataFrame, SessionContext
from datafusion.expr import Expr, SortExpr
from datafusion.plan import LogicalPlan

from .names import quoted, requoted

Path = tuple[int, ...]
"""Where a node stands in its plan: which input to take at each node from the root."""

Replacements = Mapping[Path, DataFrame]


class NotRebuildableError(Exception):
    """The DataFrame API has no way to build a node; the message names it."""


def rebuild(plan: LogicalPlan, replacements: Replacements, context: SessionContext) -> DataFrame:
    """The plan with the subtrees at `replacements` replaced, as a DataFrame of `context`.

    Raises NotRebuildableError for nodes that the DataFrame API cannot build.
    """
    return _Spine(replacements, context).build(plan, ())


class _Spine:
    def __init__(self, replacements: Replacements, context: SessionContext) -> None:
        self._replacements = replacements
        self._context = context
        self._above = {path[:depth] for path in replacements for depth in range(len(path) + 1)}

    def build(self, plan: LogicalPlan, path: Path) -> DataFrame:
        if path in self._replacements:
            return self._replacements[path]
        if path not in self._above:
            return self._context.create_dataframe_from_logical_plan(plan)
        node = plan.to_variant()
        builder = _BUILDERS.get(type(node).__name__)
        if builder is None:
            raise NotRebuildableError(type(node).__name__)
        inputs = [self.build(child, (*path, i)) for i, child in enumerate(plan.inputs())]
        return builder(node, inputs)


def _projection(node: Any, inputs: list[DataFrame]) -> DataFrame:
    return inputs[0].select(*map(Expr, node.projections()))


def _filter(node: Any, inputs: list[DataFrame]) -> DataFrame:
    return inputs[0].filter(Expr(node.predicate()))


def _aggregate(node: Any, inputs: list[DataFrame]) -> DataFrame:
    keys = [Expr(key) for key in node.group_by_exprs()]
    if any(key.variant_name() == "GroupingSet" for key in keys):
        raise NotRebuildableError("Aggregate over grouping sets")
    return inputs[0].aggregate(keys, [Expr(call) for call in node.aggregate_exprs()])


def _window(node: Any, inputs: list[DataFrame]) -> DataFrame:
    return inputs[0].window(*map(Expr, node.get_window_expr()))


def _sort(node: Any, inputs: list[DataFrame]) -> DataFrame:
    ordered = inputs[0].sort(*map(_sort_key, node.sort_exprs()))
    fetch = node.get_fetch_val()
    return ordered if fetch is None else ordered.limit(fetch)


def _sort_key(key: Any) -> SortExpr:
    return SortExpr(Expr(key.expr()), key.ascending(), key.nulls_first())


def _limit(node: Any, inputs: list[DataFrame]) -> DataFrame:
    skip, fetch = _row_count(node.skip()), _row_count(node.fetch())
    if fetch is None:
        raise NotRebuildableError("Limit without a fetch")
    return inputs[0].limit(fetch, skip or 0)


def _row_count(expression: Any) -> int | None:
    if expression is None:
        return None
    literal = Expr(expression)
    if literal.variant_name() != "Literal":
        raise NotRebuildableError("Limit by an expression")
    return literal.python_value().as_py()


def _alias(node: Any, inputs: list[DataFrame]) -> DataFrame:
    return inputs[0].alias(requoted(node.alias()))


def _union(node: Any, inputs: list[DataFrame]) -> DataFrame:
    first, *rest = inputs
    for other in rest:
        first = first.union(other)
    return first


_How = Literal["inner", "left", "right", "full", "semi", "anti"]

_HOW: dict[str, _How] = {
    "Inner": "inner",
    "Left": "left",
    "Right": "right",
    "Full": "full",
    "LeftSemi": "semi",
    "LeftAnti": "anti",
    "RightSemi": "semi",
    "RightAnti": "anti",
}


def _join(node: Any, inputs: list[DataFrame]) -> DataFrame:
    kind = str(node.join_type())
    if kind not in _HOW:
        raise NotRebuildableError(f"{kind} Join")
    left, right = inputs
    equal = _null_equal if node.null_equals_null() else _equal
    conditions = [equal(left, right, Expr(a), Expr(b)) for a, b in node.on()]
    extra = node.filter()
    if extra is not None:
        conditions.append(Expr(extra))
    if not conditions and kind != "Inner":
        conditions.append(Expr.literal(True))
    if kind.startswith("Right") and kind != "Right":
        left, right = right, left
    return left.join_on(right, *conditions, how=_HOW[kind])


def _equal(_left: DataFrame, _right: DataFrame, a: Expr, b: Expr) -> Expr:
    return a == b


def _null_equal(left: DataFrame, right: DataFrame, a: Expr, b: Expr) -> Expr:
    """`a IS NOT DISTINCT FROM b`, which only DataFusion's parser can make."""
    both = left.join_on(right)
    return both.parse_sql_expr(f"{_reference(a)} IS NOT DISTINCT FROM {_reference(b)}")


def _reference(expression: Expr) -> str:
    if expression.variant_name() != "Column":
        raise NotRebuildableError("null-equal Join on an expression")
    variant = expression.to_variant()
    relation = variant.relation()
    name = quoted((variant.name(),))
    return name if relation is None else f"{requoted(relation)}.{name}"


_BUILDERS: dict[str, Callable[..., DataFrame]] = {
    "Projection": _projection,
    "Filter": _filter,
    "Aggregate": _aggregate,
    "WindowExpr": _window,
    "Sort": _sort,
    "Limit": _limit,
    "SubqueryAlias": _alias,
    "Union": _union,
    "Join": _join,
}
