"""Contenders that take turns, also such as run in a process of their own and time themselves."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from measure import TURN, Timing

SECONDS_EACH = 3.0


class Contender(Protocol):
    """Something that answers one question."""

    def answer(self) -> Any:
        """Runs once; gives the answer in Arrow, or a number."""
        ...

    def milliseconds(self) -> float:
        """Runs once; gives how long that took."""
        ...


@dataclass(frozen=True, slots=True)
class Here:
    """A contender in this process."""

    answer: Callable[[], Any]

    def milliseconds(self) -> float:
        return clocked(self.answer)


def clocked(run: Callable[[], Any]) -> float:
    """The milliseconds of one run."""
    began = time.perf_counter()
    run()
    return (time.perf_counter() - began) * 1000


def in_turns(
    contenders: Mapping[str, Contender], runs: int, seconds_each: float = SECONDS_EACH
) -> dict[str, Timing]:
    """As `measure.interleaved`: times each `runs` times, in turns, the first run of each not."""
    names = list(contenders)
    times: dict[str, list[float]] = {name: [] for name in names}
    for contender in contenders.values():
        contender.milliseconds()  # caches are warm for all
    for turn in range(-(-runs // TURN)):
        start = turn % len(names)
        for name in names[start:] + names[:start]:
            if turn >= 2 and sum(times[name]) > seconds_each * 1000:
                continue
            contenders[name].milliseconds()
            times[name] += [contenders[name].milliseconds() for _ in range(TURN)]
    return {name: Timing(tuple(measured)) for name, measured in times.items()}
