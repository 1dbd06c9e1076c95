"""What a run of the benchmarks found: cases with their goals, as tables and as JSON."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from measure import Timing

Caches = Literal["warm", "cold"]


@dataclass(frozen=True, slots=True)
class Goal:
    """What part of a peer's time ours may take; of the fastest peer's, where none is named."""

    most: float
    peer: str | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """Timings of the contenders in one question."""

    group: str
    title: str
    timings: Mapping[str, Timing]
    ours: str
    goal: Goal | None = None
    caches: Caches = "warm"

    @property
    def best_peer(self) -> str:
        """The fastest of the others."""
        peers = (name for name in self.timings if name != self.ours)
        return min(peers, key=lambda name: self.timings[name].median)

    def ratio(self, peer: str) -> float:
        """What part of the peer's time ours takes, by medians."""
        return self.timings[self.ours].median / self.timings[peer].median

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None where there is none, or its peer did not run."""
        if self.goal is None or (self.goal.peer or self.best_peer) not in self.timings:
            return None
        return self.ratio(self.goal.peer or self.best_peer) <= self.goal.most

    def as_json(self) -> dict[str, Any]:
        """Every run's milliseconds, the goal, and what came of it."""
        return {
            "group": self.group,
            "title": self.title,
            "caches": self.caches,
            "ours": self.ours,
            "best_peer": self.best_peer,
            "ratio": self.ratio(self.best_peer),
            "goal": None if self.goal is None else asdict(self.goal),
            "met": self.met,
            "milliseconds": {name: timing.runs for name, timing in self.timings.items()},
        }


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table; the first column is text, the others are aligned to the right."""
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    print(f"\n{title}")
    for line in lines:
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        print("  " + "  ".join(cells).rstrip())


def print_summary(cases: Sequence[Case]) -> None:
    """A row for each case: ours, the best peer, the ratio and the goal."""
    header = ("", "ours ms", "10 % … 90 %", "best peer", "its ms", "10 % … 90 %", "ratio", "goal")
    for caches in ("warm", "cold"):
        rows = [_summary(case) for case in cases if case.caches == caches]
        if rows:
            print_table(f"ours / best peer, caches {caches}", (*header, ""), rows)


def _summary(case: Case) -> tuple[str, ...]:
    goal = "" if case.goal is None else f"≤ {number(case.goal.most)}"
    if case.goal is not None and case.goal.peer is not None:
        goal += f" of {case.goal.peer}"
        if case.goal.peer in case.timings and case.goal.peer != case.best_peer:
            goal += f" ({number(case.ratio(case.goal.peer))})"
    verdict = {None: "", True: "met", False: "MISSED"}[case.met]
    peer = case.best_peer
    return (
        f"{case.group}: {case.title}",
        *_milliseconds(case.timings[case.ours]),
        peer,
        *_milliseconds(case.timings[peer]),
        number(case.ratio(peer)),
        goal,
        verdict,
    )


def _milliseconds(timing: Timing) -> tuple[str, str]:
    low, high = timing.spread
    return number(timing.median), f"{number(low)} … {number(high)}"


def number(value: float) -> str:
    """Three digits, or all before the point.

    >>> number(0.01234), number(1.5), number(1234.5)
    ('0.0123', '1.50', '1,234')
    """
    if value >= 100:
        return f"{value:,.0f}"
    digits = 4 if value < 0.1 else 3 if value < 1 else 2 if value < 10 else 1
    return f"{value:.{digits}f}"


def machine() -> dict[str, Any]:
    """What the benchmarks ran on."""
    info = Path("/proc/cpuinfo")
    models = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    named = [line.partition(":")[2].strip() for line in models if line.startswith("model name")]
    return {
        "cpu": named[0] if named else platform.processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.system(),
        "python": platform.python_version(),
    }
