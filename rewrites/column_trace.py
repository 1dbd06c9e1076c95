"""From which scan a column comes, and what becomes of the scan's rows on the way up.

Taking rows away from a scan has to leave alone the rows above it that are asked for. Suppose
that a predicate over the columns of one scan is TRUE on each of those. Then rows of the scan on
which it is not TRUE may be taken away below

- filters, projections, sorts, and joins that only pair rows up;
- an outer join that gives NULLs for the scan's missing rows, if the predicate is not TRUE on
  those NULLs either: what the join then gives too much of, the predicate takes away;
- groups and window partitions of the predicate's columns, which stay whole or go;

but not below a LIMIT, or where other groups or partitions would lose a part of their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from datafusion.expr import Expr
from datafusion.plan import LogicalPlan

from .aliases import unaliased
from .spine import Path

_LIMIT = "it is above a LIMIT"

_WITH_BOTH_SIDES = ("Inner", "Left", "Right", "Full")
_MAY_MISS_LEFT = ("Right", "Full")
_MAY_MISS_RIGHT = ("Left", "Full")


@dataclass(frozen=True, slots=True)
class Trace:
    """A column, traced to the scan at `path` (as in `FoundScan`), where its name is `name`.

    `may_miss` says that a join on the way gives NULLs where it has no row of the scan.
    `barrier` says why rows must not be taken away from the scan; None if they may.
    """

    path: Path
    name: str
    may_miss: bool = False
    barrier: str | None = None


def trace(plan: LogicalPlan, path: Path, column: str) -> Trace | None:
    """The column of that qualified name in the plan's output; None where it cannot be traced.

    `path` is that of the plan itself.
    """
    names = _names(plan)
    if names.count(column) != 1:
        return None
    return _trace(plan, path, names.index(column), _Way())


@dataclass(frozen=True, slots=True)
class _Way:
    """What lies between the plan where a trace began and a node."""

    may_miss: bool = False
    barrier: str | None = None

    def blocked(self, barrier: str) -> _Way:
        return replace(self, barrier=self.barrier or barrier)


def _trace(plan: LogicalPlan, path: Path, position: int, way: _Way) -> Trace | None:
    """The same of the column at a position of the plan's output."""
    node, inputs = plan.to_variant(), plan.inputs()
    kind = type(node).__name__
    below = (*path, 0)
    if kind == "TableScan":
        limited = way if node.fetch() is None else way.blocked(_LIMIT)
        return Trace(path, node.projection()[position][1], way.may_miss, limited.barrier)
    if kind == "Filter":
        if type(inputs[0].to_variant()).__name__ == "TableScan":
            below = path
        return _trace(inputs[0], below, position, way)
    if kind == "SubqueryAlias":
        return _trace(inputs[0], below, position, way)
    if kind == "Sort":
        limited = way if node.get_fetch_val() is None else way.blocked(_LIMIT)
        return _trace(inputs[0], below, position, limited)
    if kind == "Limit":
        return _trace(inputs[0], below, position, way.blocked(_LIMIT))
    if kind == "Projection":
        return _below_expression(Expr(node.projections()[position]), inputs[0], below, way)
    if kind == "WindowExpr":
        return _below_window(node, inputs[0], below, position, way)
    if kind == "Aggregate":
        return _below_groups(plan, inputs[0], below, position, way)
    if kind == "Join":
        return _below_join(node, inputs, path, position, way)
    return None


def _below_expression(expression: Expr, plan: LogicalPlan, path: Path, way: _Way) -> Trace | None:
    """The column that an expression over the plan's output is, under whatever alias."""
    expression = unaliased(expression)
    if expression.variant_name() != "Column":
        return None
    names, column = _names(plan), expression.to_variant().qualified_name()
    return _trace(plan, path, names.index(column), way) if names.count(column) == 1 else None


def _below_window(
    node: Any, plan: LogicalPlan, path: Path, position: int, way: _Way
) -> Trace | None:
    names = _names(plan)
    if position >= len(names):
        return None
    partitions = [
        [Expr(key).canonical_name() for key in node.get_partition_exprs(call)]
        for call in node.get_window_expr()
    ]
    if not all(names[position] in keys for keys in partitions):
        way = way.blocked("it is above a window that is not partitioned by its column")
    return _trace(plan, path, position, way)


def _below_groups(
    groups: LogicalPlan, plan: LogicalPlan, path: Path, position: int, way: _Way
) -> Trace | None:
    node = groups.to_variant()
    keys = [Expr(key) for key in node.group_by_exprs()]
    if any(key.variant_name() == "GroupingSet" for key in keys):
        return None
    if position < len(keys):
        return _below_expression(keys[position], plan, path, way)
    call = unaliased(Expr(node.aggregate_exprs()[position - len(keys)]))
    grouped = [unaliased(key).canonical_name() for key in keys]
    if call.variant_name() != "AggregateFunction":
        return None
    # The first value of a key is the key: DISTINCT ON is planned so. Only a plan as a whole
    # shows whether the function is DataFusion's own.
    if call.to_variant().aggregate_type() != "first_value" or "FILTER" in call.canonical_name():
        return None
    if 'name: "first_value"' in repr(groups):
        return None
    value = unaliased(call.rex_call_operands()[0])
    return _below_expression(value, plan, path, way) if value.canonical_name() in grouped else None


def _below_join(
    node: Any, inputs: Sequence[LogicalPlan], path: Path, position: int, way: _Way
) -> Trace | None:
    kind = str(node.join_type())
    left, right = inputs
    on_the_left = len(_names(left))
    if kind in _WITH_BOTH_SIDES:
        from_left = position < on_the_left
    elif kind.startswith("Left"):
        from_left = True
        if position >= on_the_left:  # the mark
            return None
    else:
        from_left = False
        if position >= len(_names(right)):
            return None
    if kind in (_MAY_MISS_LEFT if from_left else _MAY_MISS_RIGHT):
        way = replace(way, may_miss=True)
    if from_left:
        return _trace(left, (*path, 0), position, way)
    first = on_the_left if kind in _WITH_BOTH_SIDES else 0
    return _trace(right, (*path, 1), position - first, way)


def _names(plan: LogicalPlan) -> list[str]:
    """The qualified names of the plan's output columns."""
    node = plan.to_variant()
    while not hasattr(node, "schema"):
        plan = plan.inputs()[0]
        node = plan.to_variant()
    return node.schema().field_names()
