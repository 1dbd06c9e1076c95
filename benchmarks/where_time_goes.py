"""Where a statement's time goes, from its text to its last batch.

The steps are the session's own: `sql` plans, `execution` rewrites, and running that is DataFusion
with the index's search and the fetching of rows in it, which count their own time (EXPLAIN
ANALYZE prints it). What the search and the fetch do not take of a run is DataFusion's: the
physical plan, its tasks, and batches on their way. Partitions fetch at the same time, so that
their time together may be more than the run's.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import median
from typing import Any

from datafusion_lance.engine import LanceSessionContext
from report import number, print_table
from statements import Statement

REWRITING = 0.5
"""The most milliseconds that rewriting a simple statement may take."""


@dataclass(frozen=True, slots=True)
class Phases:
    """Milliseconds of the parts of one statement."""

    planning: float
    rewriting: float
    search: float
    fetch: float
    datafusion: float
    whole: float


def phases(session: LanceSessionContext, statement: str) -> Phases:
    """Those of one run."""
    began = time.perf_counter()
    frame = session.sql(statement)
    planned = time.perf_counter()
    execution = session.execution(frame, runs_unchanged=True)
    rewritten = time.perf_counter()
    with execution.activate():
        execution.dataframe.to_arrow_table()
    done = time.perf_counter()
    stats: list[Any] = [scan.stats for scan in (*execution.searches, *execution.called)]
    search = sum(one.search_seconds for one in stats)
    fetch = sum(one.fetch_seconds for one in stats)
    seconds = (
        planned - began,
        rewritten - planned,
        search,
        fetch,
        max(done - rewritten - search - fetch, 0.0),
        done - began,
    )
    return Phases(*(second * 1000 for second in seconds))


def medians(path: Path, statements: Mapping[str, Statement], runs: int) -> dict[str, Phases]:
    """The median of each part, over `runs` runs after one that warms the caches."""
    found = {}
    for name, statement in statements.items():
        session = LanceSessionContext()
        session.register_lance("images", path)
        measured = [phases(session, statement(run)) for run in range(runs + 1)][1:]
        found[name] = Phases(
            *(median(getattr(one, field.name) for one in measured) for field in fields(Phases))
        )
    return found


def print_phases(found: Mapping[str, Phases]) -> None:
    """A row for each statement, and whether rewriting is quick enough."""
    names = [field.name for field in fields(Phases)]
    rows = [
        (
            name,
            *(number(getattr(one, field)) for field in names),
            "" if one.rewriting <= REWRITING else f"rewriting > {REWRITING} ms",
        )
        for name, one in found.items()
    ]
    print_table("where time goes, medians in ms, caches warm", ("", *names, ""), rows)
