"""What a rewrite gives."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from datafusion.plan import LogicalPlan


@dataclass(frozen=True, slots=True)
class StandIn:
    """A provider that stands in for a table while a plan is planned.

    `key` tells for which of the table's scans, as the environment's `scan_key` does; None is
    for all of them. `printed` are those scans as the optimized plan prints them.
    """

    table: Hashable
    key: Hashable | None
    provider: Any = field(compare=False)
    printed: frozenset[str] = field(default=frozenset(), compare=False)


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What to run in place of a plan.

    `plan` is None where the plan is to run as it was. `index_scans` are the index scans in
    the plan by the names of their tables. `bound` are stand-ins for tables, to be put in
    their place while just this plan is planned. `served` is the number of scans that they serve.
    `notes` say why predicates are not served.
    """

    plan: LogicalPlan | None = None
    index_scans: Mapping[str, Any] = field(default_factory=dict)
    bound: tuple[StandIn, ...] = ()
    served: int = 0
    notes: tuple[str, ...] = ()
