"""Numbers of whole arrays of ranges, one after the other, in blocks of bounded size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]


def blocks(counts: Numbers, at_once: int) -> Iterator[tuple[Numbers, Numbers]]:
    """Every pair (i, k) with `k < counts[i]`, in order, in blocks of `at_once` pairs.

    >>> [(i.tolist(), k.tolist()) for i, k in blocks(np.array([2, 0, 3]), 4)]
    [([0, 0, 2, 2], [0, 1, 0, 1]), ([2], [2])]
    """
    ends = np.cumsum(counts, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    for start in range(0, total, at_once):
        stop = min(start + at_once, total)
        first = int(np.searchsorted(ends, start, side="right"))
        last = int(np.searchsorted(ends, stop, side="left"))
        upto = np.minimum(ends[first : last + 1], stop)
        owners = np.repeat(np.arange(first, last + 1), np.diff(upto, prepend=start))
        yield owners, np.arange(start, stop) - (ends[owners] - counts[owners])


def runs(keys: npt.NDArray[np.integer]) -> tuple[Numbers, Numbers]:
    """Starts and lengths of the runs of equal values in an array."""
    if len(keys) == 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    starts = np.concatenate([[0], np.flatnonzero(keys[1:] != keys[:-1]) + 1])
    return starts, np.diff(starts, append=len(keys))


def within(starts: Numbers, lengths: Numbers) -> Numbers:
    """The positions of all runs given by their starts and lengths, one run after the other."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - (ends - lengths), lengths)


def slices(length: int, at_once: int) -> Iterator[slice]:
    """Slices of at most `at_once` that cover an array of `length`."""
    return (slice(start, min(start + at_once, length)) for start in range(0, length, at_once))
