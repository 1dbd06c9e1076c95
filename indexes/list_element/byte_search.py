"""Searching sorted byte strings for thousands of bounds at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Positions = npt.NDArray[np.int64]

_WORD: Final = 8
_KEEP: Final = np.array(
    [((1 << (8 * n)) - 1) << (8 * (_WORD - n)) for n in range(_WORD + 1)], dtype=np.uint64
)
"""Masks that keep the first n bytes of a big-endian word."""


class ByteStrings(Sequence[bytes]):
    """The values of a binary array without NULL, as bytes and as words; immutable.

    Values compare as unsigned bytes, and a value sorts before every longer one that it
    begins: `numpy`'s own byte strings would drop zeros at the end.
    """

    __slots__ = ("_bounds", "_data", "_offsets", "_words")

    def __init__(self, offsets: Positions, data: bytes) -> None:
        """Takes the offsets of the values in `data`, which has 8 bytes more at its end."""
        self._offsets = offsets
        self._bounds = memoryview(cast("Any", offsets))
        self._data = data
        self._words: npt.NDArray[Any] = np.ndarray(
            (len(data) - _WORD + 1,), dtype=">u8", buffer=data, strides=(1,)
        )

    @classmethod
    def of(cls, *parts: pa.BinaryArray) -> ByteStrings:
        """A copy of the values of `parts`, one after the other."""
        offsets, data, size = [np.zeros(1, dtype=np.int64)], [], 0
        for part in parts:
            _, offset_buffer, data_buffer = part.buffers()
            if len(part) == 0:
                continue
            every = np.frombuffer(offset_buffer, dtype=np.int32)
            own = every[part.offset : part.offset + len(part) + 1].astype(np.int64)
            offsets.append(own[1:] - own[0] + size)
            size += int(own[-1] - own[0])
            if data_buffer is not None:
                data.append(memoryview(data_buffer)[own[0] : own[-1]])
        return cls(np.concatenate(offsets), b"".join([*data, bytes(_WORD)]))

    @classmethod
    def of_bytes(cls, values: Sequence[bytes]) -> ByteStrings:
        """A copy of `values`."""
        ends = np.cumsum([0, *map(len, values)], dtype=np.int64)
        return cls(ends, b"".join([*values, bytes(_WORD)]))

    @classmethod
    def joined(cls, parts: Sequence[ByteStrings]) -> ByteStrings:
        """The values of `parts`, one after the other; each has memory of its own."""
        ends = np.cumsum([0, *(int(part._offsets[-1]) for part in parts)])
        offsets = [part._offsets[1:] + end for part, end in zip(parts, ends[:-1], strict=True)]
        data = b"".join([*(part._data[:-_WORD] for part in parts), bytes(_WORD)])
        return cls(np.concatenate([np.zeros(1, dtype=np.int64), *offsets]), data)

    def part(self, begin: int, end: int) -> ByteStrings:
        """The values from `begin` to `end`, which share this one's memory."""
        return ByteStrings(self._offsets[begin : end + 1], self._data)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, at: Any) -> Any:
        return self._data[self._bounds[at] : self._bounds[at + 1]]

    @property
    def nbytes(self) -> int:
        """The bytes that the values take in memory."""
        return len(self._data) + self._offsets.nbytes


def lower_bounds(
    values: ByteStrings, bounds: ByteStrings, begin: Positions, end: Positions
) -> Positions:
    """For each bound the first position from `begin` on whose value is not less than it.

    `end` where there is none before it. The values from `begin` to `end` ascend. For a few
    bounds `bisect` is faster.
    """
    low, high = begin.copy(), end.copy()
    open_ = np.flatnonzero(low < high)
    while len(open_):
        middle = (low[open_] + high[open_]) // 2
        less = _less(values, middle, bounds, open_)
        low[open_[less]] = middle[less] + 1
        high[open_[~less]] = middle[~less]
        open_ = open_[low[open_] < high[open_]]
    return low


def _less(
    left: ByteStrings, left_at: Positions, right: ByteStrings, right_at: Positions
) -> npt.NDArray[np.bool_]:
    """Whether the values of `left` are less than those of `right`, pair by pair."""
    left_begin, right_begin = left._offsets[left_at], right._offsets[right_at]
    left_size = left._offsets[left_at + 1] - left_begin
    right_size = right._offsets[right_at + 1] - right_begin
    # What is equal as far as the shorter one goes is decided by the lengths.
    less = left_size < right_size
    undecided = np.arange(len(less))
    done = 0
    while len(undecided):
        a = _word(left, left_begin[undecided], left_size[undecided], done)
        b = _word(right, right_begin[undecided], right_size[undecided], done)
        differs = a != b
        less[undecided[differs]] = a[differs] < b[differs]
        done += _WORD
        shorter = np.minimum(left_size[undecided], right_size[undecided])
        undecided = undecided[~differs & (shorter > done)]
    return less


def _word(values: ByteStrings, begin: Positions, size: Positions, at: int) -> npt.NDArray[Any]:
    """Eight bytes of each value from `at` on, zeros for those that it does not have."""
    kept = np.clip(size - at, 0, _WORD)
    words = values._words[begin + np.where(kept > 0, at, 0)].astype(np.uint64)
    return words & _KEEP[kept]
