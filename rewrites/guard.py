"""Whether a rebuilt plan is the plan it was rebuilt from.

The rebuild is done twice: once with the replacements, to be run, and once with the
original subtrees, to be compared. Where the second optimizes to DataFusion's own plan,
the nodes between have the same meaning in both.
"""

from __future__ import annotations

import re
from itertools import count

from datafusion import DataFrame
from datafusion.plan import LogicalPlan

_GENERATED = re.compile(r"__(?:correlated_sq|scalar_sq|common_expr)_\d+")


def same_plan(optimized: LogicalPlan, rebuilt: DataFrame) -> bool:
    """Whether the rebuilt plan is `optimized` or optimizes to it, but for generated names.

    Compares all that a node holds, null equality of joins included, which the printed
    form of a plan leaves out.
    """
    if rebuilt.logical_plan() == optimized:
        return True
    again = rebuilt.optimized_logical_plan()
    return again == optimized or _renumbered(again) == _renumbered(optimized)


def _renumbered(plan: LogicalPlan) -> str:
    """The plan's whole structure as text, its generated names numbered as they come."""
    numbers: dict[str, str] = {}
    fresh = count(1)

    def rename(match: re.Match[str]) -> str:
        name = match.group()
        return numbers.setdefault(name, f"{name.rstrip('0123456789')}{next(fresh)}")

    return _GENERATED.sub(rename, repr(plan))
