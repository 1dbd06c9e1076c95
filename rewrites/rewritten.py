"""What a rewrite gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from datafusion.plan import LogicalPlan

from .environment import SearchableTable


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What to run in place of a plan.

    `plan` is None where the plan is to run as it was. `index_scans` are the index scans in
    the plan by the names of their tables. `bound` are stand-ins for tables, to be put in
    their place while `plan` is planned. `notes` say why predicates are not served.
    """

    plan: LogicalPlan | None = None
    index_scans: Mapping[str, Any] = field(default_factory=dict)
    bound: Mapping[SearchableTable, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
