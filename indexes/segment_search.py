"""Asking the segments of an index: one after the other, or those in an object store at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from .byte_ranges import at_once
from .search_stats import SearchStats

Part = TypeVar("Part")
Value = TypeVar("Value")


def asked(
    parts: Sequence[Part],
    ask: Callable[[Part, SearchStats], Value],
    stats: SearchStats,
    *,
    are_local: bool,
) -> list[Value]:
    """What `ask` gives for each part, in order; counts into `stats`.

    Local files are read faster than another thread begins; of others each read is waited for.
    """
    if are_local:
        return [ask(part, stats) for part in parts]

    def counted(part: Part) -> Value:
        own = SearchStats()
        value = ask(part, own)
        stats.add(own)
        return value

    return list(at_once(counted, parts))
