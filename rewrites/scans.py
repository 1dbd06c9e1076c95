"""The scans of a plan, and the filters that stand right above them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from datafusion.expr import Expr
from datafusion.plan import LogicalPlan

from .spine import Path
from .top_k import TopK


@dataclass(frozen=True, slots=True)
class FoundScan:
    """A TableScan; `path` leads to the Filter above it where there is one, else to the scan.

    `predicate` is that filter's; `pushed` are the filters that the scan itself applies. `top`
    is the Sort that keeps the first of all rows that pass, where there is one.
    """

    path: Path
    plan: LogicalPlan
    scan: LogicalPlan
    reference: tuple[str | None, str | None, str]
    projection: tuple[str, ...]
    predicate: Expr | None
    pushed: tuple[Expr, ...]
    top: TopK | None = None


def find_scans(plan: LogicalPlan, path: Path = (), top: TopK | None = None) -> Iterator[FoundScan]:
    """Every TableScan below `plan`, subqueries inside expressions left out.

    `top` is a Sort above the plan that keeps the first of all its rows.
    """
    node = plan.to_variant()
    kind = type(node).__name__
    if kind == "TableScan":
        yield _found(path, plan, plan, node, None, top)
        return
    inputs = plan.inputs()
    if kind == "Filter":
        scan = inputs[0].to_variant()
        if type(scan).__name__ == "TableScan":
            yield _found(path, plan, inputs[0], scan, Expr(node.predicate()), top)
            return
    top = _top_below(plan, node, kind, top)
    for i, child in enumerate(inputs):
        yield from find_scans(child, (*path, i), top)


def _top_below(plan: LogicalPlan, node: Any, kind: str, top: TopK | None) -> TopK | None:
    if kind == "Sort":
        return None if node.get_fetch_val() is None else TopK(plan)
    if kind in ("Projection", "SubqueryAlias") and top is not None:
        return top.over(plan)
    return None


def _found(
    path: Path,
    plan: LogicalPlan,
    scan: LogicalPlan,
    node: Any,
    predicate: Expr | None,
    top: TopK | None,
) -> FoundScan:
    return FoundScan(
        path,
        plan,
        scan,
        node.fqn(),
        tuple(name for _, name in node.projection()),
        predicate,
        tuple(Expr(pushed) for pushed in node.filters()),
        top,
    )
