"""A Sort that keeps the first rows, where every row of a scan reaches it as one row."""

from __future__ import annotations

from dataclasses import dataclass

from datafusion.expr import Expr
from datafusion.plan import LogicalPlan


@dataclass(frozen=True, slots=True)
class Renaming:
    """The Projections and SubqueryAliases between a node and a scan, from the top down."""

    nodes: tuple[LogicalPlan, ...] = ()

    def expression(self, name: str) -> tuple[Expr, Renaming] | None:
        """What the column of that name is in the first Projection, and what that is over.

        None where there is no Projection, or where the name stands for two of its columns.
        """
        for depth, plan in enumerate(self.nodes):
            node = plan.to_variant()
            if type(node).__name__ == "Projection":
                outputs = [one for one in map(Expr, node.projections()) if _name(one) == name]
                lower = Renaming(self.nodes[depth + 1 :])
                return (outputs[0], lower) if len(outputs) == 1 else None
        return None

    @property
    def has_projections(self) -> bool:
        return any(type(plan.to_variant()).__name__ == "Projection" for plan in self.nodes)


@dataclass(frozen=True, slots=True)
class TopK:
    """A Sort with a limit, and the nodes between it and the scan or the Filter right above it.

    None of them drops, adds or multiplies rows.
    """

    sort: LogicalPlan
    below: tuple[LogicalPlan, ...] = ()

    def over(self, node: LogicalPlan) -> TopK:
        """The same Sort with one more node below it."""
        return TopK(self.sort, (*self.below, node))


def _name(output: Expr) -> str:
    variant = output.variant_name()
    if variant == "Column":
        return output.to_variant().name()
    return output.to_variant().alias() if variant == "Alias" else output.schema_name()
