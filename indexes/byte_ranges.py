"""Ranges of bytes of one file, put together into few requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

Item = TypeVar("Item")
Value = TypeVar("Value")
Range = tuple[int, int]
"""An offset and a size."""

AT_ONCE: Final = 16
"""So many requests are under way at once."""

# What an object store sends in the time of one more request among others, or less.
_GAP: Final = 1 << 17
# More than that comes faster in several requests at once.
_LARGEST: Final = 1 << 22


def merged(ranges: Sequence[Range]) -> list[Range]:
    """Ranges that cover all of `ranges`, which ascend; near ones are one.

    >>> merged([(0, 10), (20, 10), (1_000_000, 5)])
    [(0, 30), (1000000, 5)]
    """
    found: list[Range] = []
    for offset, size in ranges:
        if found:
            start, length = found[-1]
            end = max(start + length, offset + size)
            if offset - start - length <= _GAP and end - start <= _LARGEST:
                found[-1] = (start, end - start)
                continue
        found.append((offset, size))
    return found


def pieces(offset: int, size: int) -> list[Range]:
    """One long range in pieces that are read at once.

    >>> pieces(5, 10)
    [(5, 10)]
    """
    return [
        (at, min(_LARGEST, offset + size - at)) for at in range(offset, offset + size, _LARGEST)
    ]


def at_once(
    read: Callable[[Item], Value], items: Sequence[Item], threads: int = AT_ONCE
) -> Iterator[Value]:
    """What `read` gives for each item, in order; at most so many are read at the same time."""
    threads = min(threads, AT_ONCE, len(items))
    if threads < 2:
        yield from map(read, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(read, items)
