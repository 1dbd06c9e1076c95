"""Timing of several contenders side by side, in one run."""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds of repeated runs of one thing."""

    runs: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.runs)

    @property
    def spread(self) -> tuple[float, float]:
        """The 10th and the 90th percentile."""
        low, high = np.percentile(self.runs, [10, 90])
        return float(low), float(high)


TURN = 4
"""How often a contender runs in one turn, after one run that is not counted: the one before
it has had the processor's caches to itself."""


def interleaved(
    contenders: Mapping[str, Callable[[], object]], runs: int, seconds_each: float = 3.0
) -> dict[str, Timing]:
    """Times each contender `runs` times in turns of `TURN`, each round starting with another one.

    One that has used up `seconds_each` sits out the later rounds, after two turns at least.
    """
    names = list(contenders)
    times: dict[str, list[float]] = {name: [] for name in names}
    for contender in contenders.values():
        contender()  # caches are warm for all
    for turn in range(-(-runs // TURN)):
        start = turn % len(names)
        for name in names[start:] + names[:start]:
            if turn >= 2 and sum(times[name]) > seconds_each * 1000:
                continue
            contenders[name]()
            for _ in range(TURN):
                began = time.perf_counter()
                contenders[name]()
                times[name].append((time.perf_counter() - began) * 1000)
    return {name: Timing(tuple(measured)) for name, measured in times.items()}


def print_ratios(title: str, timings: Mapping[str, Timing], ours: str) -> None:
    """A row for each contender: median, spread, and what part of its time ours takes."""
    print(f"\n{title}")
    width = max(map(len, timings))
    print(f"  {'':{width}}  {'median ms':>10}  {'10 % … 90 %':>18}  {'runs':>4}  ours / this")
    for name, timing in timings.items():
        low, high = timing.spread
        ratio = "" if name == ours else f"{timings[ours].median / timing.median:11.2f}"
        print(
            f"  {name:{width}}  {timing.median:10.2f}  {low:7.2f} … {high:8.2f}"
            f"  {len(timing.runs):4}  {ratio}"
        )


PACKAGES = ("datafusion", "pylance", "duckdb", "polars")


def print_versions(packages: Sequence[str] = PACKAGES) -> None:
    """One line: what is compared."""
    print(
        f"Python {platform.python_version()}", *(f"{p} {v}" for p, v in versions(packages).items())
    )


def versions(packages: Sequence[str] = PACKAGES) -> dict[str, str]:
    """The versions of the packages that are compared."""
    return {name: version(name) for name in packages}


def write_report(
    path: Path | None,
    timings: Mapping[str, Mapping[str, Timing]],
    packages: Sequence[str] = PACKAGES,
) -> None:
    """Every single timing, in milliseconds, by case and contender, as JSON; None for no file."""
    if path is None:
        return
    cases = {
        title: {name: timing.runs for name, timing in case.items()}
        for title, case in timings.items()
    }
    report = {"versions": versions(packages), "milliseconds": cases}
    path.write_text(json.dumps(report, indent=1), encoding="utf-8")


def command_line(description: str, *, runs: int) -> argparse.ArgumentParser:
    """The options of every benchmark: `--runs`, by default as given, and `--json`."""
    arguments = argparse.ArgumentParser(description=description)
    arguments.add_argument("--runs", type=int, default=runs)
    arguments.add_argument("--json", type=Path, help="write every single timing to this file")
    return arguments
