"""First runs: each in a process of its own, from opening the table to the last row.

The process has its modules imported before the clock starts; files are in the page cache or
not, as the runs before have left them.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from measure import Timing
from turns import clocked

Opener = Callable[[], Callable[[], Any]]
"""Opens a table and gives what asks it. A process that runs it must be able to import it."""


def first_runs(openers: Mapping[str, Opener], runs: int) -> dict[str, Timing]:
    """Times opening and asking, `runs` times each, in turns."""
    times: dict[str, list[float]] = {name: [] for name in openers}
    for _ in range(runs):
        for name, opener in openers.items():
            times[name].append(first_run(opener))
    return {name: Timing(tuple(measured)) for name, measured in times.items()}


def first_run(opener: Opener) -> float:
    """Milliseconds of one, in a fresh process."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as executor:
        return executor.submit(_opened_and_asked, opener).result()


def _opened_and_asked(opener: Opener) -> float:
    return clocked(lambda: opener()())
