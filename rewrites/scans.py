"""The scans of a plan, and the filters that stand right above them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from datafusion.expr import Expr
from datafusion.plan import LogicalPlan

from .spine import Path


@dataclass(frozen=True, slots=True)
class FoundScan:
    """A TableScan; `path` leads to the Filter above it where there is one, else to the scan.

    `predicate` is that filter's; `pushed` are the filters that the scan itself applies.
    """

    path: Path
    plan: LogicalPlan
    scan: LogicalPlan
    reference: tuple[str | None, str | None, str]
    projection: tuple[str, ...]
    predicate: Expr | None
    pushed: tuple[Expr, ...]


def find_scans(plan: LogicalPlan, path: Path = ()) -> Iterator[FoundScan]:
    """Every TableScan below `plan`, subqueries inside expressions left out."""
    node = plan.to_variant()
    kind = type(node).__name__
    if kind == "TableScan":
        yield _found(path, plan, plan, node, None)
        return
    inputs = plan.inputs()
    if kind == "Filter":
        scan = inputs[0].to_variant()
        if type(scan).__name__ == "TableScan":
            yield _found(path, plan, inputs[0], scan, Expr(node.predicate()))
            return
    for i, child in enumerate(inputs):
        yield from find_scans(child, (*path, i))


def _found(
    path: Path, plan: LogicalPlan, scan: LogicalPlan, node: Any, predicate: Expr | None
) -> FoundScan:
    return FoundScan(
        path,
        plan,
        scan,
        node.fqn(),
        tuple(name for _, name in node.projection()),
        predicate,
        tuple(Expr(pushed) for pushed in node.filters()),
    )
