"""What was found in the plans that ran last: statements come again."""

from __future__ import annotations

import re
import threading
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

from datafusion.plan import LogicalPlan

from .analysis import Analysis

_KEPT: Final = 64
_FUNCTIONS: Final = re.compile(r"UDF \{ inner: ")
_SETTLED: Final = "volatility: Immutable"
_UNSEEN: Final = ("<subquery>", "PythonFunction")


@dataclass(frozen=True, slots=True)
class _Known:
    plan: LogicalPlan
    tables: tuple[object, ...]
    state: Hashable
    analysis: Analysis


class PlanMemory:
    """The analyses of the plans that came last. Threads may share it.

    An analysis serves an equal plan (all nodes and expressions are, the functions included)
    over the same table objects, which a plan does not tell, in a session of the same state:
    its configuration and what is registered decide how a plan is optimized. Plans over other
    tables than Lance's, and those of functions that may give another value the next time, are
    not kept.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = {}

    def get(self, plan: LogicalPlan, tables: Sequence[object], state: Hashable) -> Analysis | None:
        """What is known of a plan; None where nothing is."""
        with self._lock:
            known = self._known.get(plan.display_indent())
        if known is None or known.state != state or len(known.tables) != len(tables):
            return None
        same = all(one is other for one, other in zip(tables, known.tables, strict=True))
        return known.analysis if same and known.plan == plan else None

    def put(
        self, plan: LogicalPlan, tables: Sequence[object], state: Hashable, analysis: Analysis
    ) -> None:
        """Keeps an analysis, in the place of the oldest one."""
        if not (analysis.reads_lance_alone and _is_settled(plan)):
            return
        text = plan.display_indent()
        with self._lock:
            self._known.pop(text, None)
            self._known[text] = _Known(plan, tuple(tables), state, analysis)
            if len(self._known) > _KEPT:
                del self._known[next(iter(self._known))]


def _is_settled(plan: LogicalPlan) -> bool:
    """Whether every function of the plan is DataFusion's own and gives the same each time."""
    text = repr(plan)
    if any(part in text for part in _UNSEEN):
        return False
    return len(_FUNCTIONS.findall(text)) == text.count(_SETTLED)
