"""What was found in the plans that ran last: statements come again."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Final

from datafusion import SessionContext
from datafusion.plan import LogicalPlan

from .analysis import Analysis
from .environment import SearchableTable

_KEPT: Final = 64
_FUNCTIONS: Final = re.compile(r"UDF \{ inner: ")
_SETTLED: Final = "volatility: Immutable"
_UNSEEN: Final = ("<subquery>", "PythonFunction")

Tables = tuple[SearchableTable, ...]
"""The tables behind the scans of a plan, in their order."""


@dataclass(frozen=True, slots=True)
class _Known:
    plan: LogicalPlan
    tables: Tables
    analysis: Analysis


class PlanMemory:
    """The analyses of the plans that came last in a session, while it stays as it is.

    An analysis serves an equal plan (all nodes and expressions are, the functions included)
    over the same table objects, which a plan does not tell. How a plan is optimized depends on
    the session's configuration and on what is registered, too: for another state of it there
    is another memory. Plans over other tables than Lance's, and those of functions that may
    give another value the next time, are not kept. Threads may share it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = {}

    def get(self, plan: LogicalPlan, tables: Callable[[], Tables | None]) -> Analysis | None:
        """What is known of a plan over `tables`, None where they are unknown or nothing is."""
        with self._lock:
            known = self._known.get(plan.display_indent())
        if known is None or known.plan != plan:
            return None
        return known.analysis if _are_same(known.tables, tables()) else None

    def put(
        self, plan: LogicalPlan, tables: Callable[[], Tables | None], analysis: Analysis
    ) -> None:
        """Keeps an analysis, in the place of the oldest one."""
        if not (analysis.reads_lance_alone and is_settled(plan)):
            return
        read = tables()
        if read is None:
            return
        text = plan.display_indent()
        with self._lock:
            self._known.pop(text, None)
            self._known[text] = _Known(plan, read, analysis)
            if len(self._known) > _KEPT:
                del self._known[next(iter(self._known))]


def tables_behind(
    plan: LogicalPlan,
    context: SessionContext,
    watch: Callable[[], AbstractContextManager[list[SearchableTable]]],
) -> Tables | None:
    """The Lance tables behind the scans of a plan; None if there is another one.

    A name does not tell: a view, and a DataFrame that was built earlier, may read a table that
    has since lost its name to another. So each scan is optimized alone, to see which is asked.
    """
    tables: list[SearchableTable] = []
    for scan in _scans(plan):
        with watch() as asked, suppress(Exception):
            # A recursive query's own work table cannot be planned by itself.
            context.create_dataframe_from_logical_plan(scan).optimized_logical_plan()
        if not asked:
            return None
        tables.append(asked[0])
    return tuple(tables)


def _scans(plan: LogicalPlan) -> Iterator[LogicalPlan]:
    inputs = plan.inputs()
    if not inputs and plan.display().startswith("TableScan:"):
        yield plan
    for below in inputs:
        yield from _scans(below)


def _are_same(known: Tables, read: Tables | None) -> bool:
    if read is None or len(known) != len(read):
        return False
    return all(one is other for one, other in zip(known, read, strict=True))


def is_settled(plan: LogicalPlan) -> bool:
    """Whether every function of the plan is DataFusion's own and gives the same each time."""
    text = repr(plan)
    if any(part in text for part in _UNSEEN):
        return False
    return len(_FUNCTIONS.findall(text)) == text.count(_SETTLED)
