"""A number for each row, made of what an index or the table says of it, in any order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Hashes = npt.NDArray[np.uint64]

_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX: Final = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))
_NULL: Final = np.uint64(0x2545F4914F6CDD1D)
_WORD: Final = 8
_KEEP: Final = np.array([(1 << (8 * n)) - 1 for n in range(_WORD + 1)], dtype=np.uint64)
"""Masks that keep the first n bytes of a little-endian word."""
_ROW_BITS: Final = np.uint64(32)
_OFFSET: Final = np.uint64(0xFFFFFFFF)


def mixed(numbers: Hashes) -> Hashes:
    """Each number spread over 64 bits, as SplitMix64 ends; different ones stay different."""
    out = numbers + _MULTIPLIER
    for shift, factor in _MIX:
        out = (out ^ (out >> np.uint64(shift))) * np.uint64(factor)
    return out


def hashes(values: pa.Array) -> Hashes:
    """64 bits for each binary value, one number for NULL.

    The length and then each word of eight bytes are mixed in; the last word ends in zeros.
    """
    out = np.zeros(len(values), dtype=np.uint64)
    if len(values) == 0:
        return out
    _, offset_buffer, data_buffer = values.buffers()
    every = np.frombuffer(offset_buffer, dtype=np.int32)[values.offset :][: len(values) + 1]
    offsets = every.astype(np.int64)
    starts, lengths = offsets[:-1] - offsets[0], np.diff(offsets)
    out = mixed(lengths.astype(np.uint64))
    # Eight bytes from any address on, of a copy with a word to spare.
    data = np.zeros(int(offsets[-1] - offsets[0]) + _WORD, dtype=np.uint8)
    if data_buffer is not None:
        used = np.frombuffer(data_buffer, dtype=np.uint8)[offsets[0] : offsets[-1]]
        data[: len(used)] = used
    words = np.ndarray((len(data) - _WORD + 1,), dtype="<u8", buffer=data, strides=(1,))
    rows, at = np.flatnonzero(lengths), 0
    while len(rows):
        left = lengths[rows] - at
        word = words[starts[rows] + at] & _KEEP[np.minimum(left, _WORD)]
        out[rows] = mixed(out[rows] ^ word)
        rows, at = rows[left > _WORD], at + _WORD
    if values.null_count:
        out[values.is_null().to_numpy(zero_copy_only=False)] = _NULL
    return out


class RowDigests:
    """For each row of some fragments the sum of the hashes of its entries; starts at none."""

    def __init__(self, physical_rows: Mapping[int, int]) -> None:
        """`physical_rows` maps each fragment to its number of rows, deleted ones too."""
        self._sums = {
            fragment: np.zeros(rows, dtype=np.uint64) for fragment, rows in physical_rows.items()
        }

    def add(self, addresses: npt.NDArray[np.uint64], entries: Hashes) -> npt.NDArray[np.uint64]:
        """Adds an entry to the row at each address; returns those where there is no row."""
        astray: list[npt.NDArray[np.uint64]] = []
        fragments = addresses >> _ROW_BITS
        for fragment in np.unique(fragments).tolist():
            here = np.flatnonzero(fragments == fragment)
            sums = self._sums.get(fragment, np.zeros(0, dtype=np.uint64))
            offsets = (addresses[here] & _OFFSET).astype(np.int64)
            inside = offsets < len(sums)
            np.add.at(sums, offsets[inside], entries[here[inside]])
            astray.append(addresses[here[~inside]])
        return np.concatenate(astray) if astray else np.zeros(0, dtype=np.uint64)

    def differing(self, other: RowDigests, live: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """The addresses among `live`, ascending, on which the two differ."""
        fragments = live >> _ROW_BITS
        found: list[npt.NDArray[np.uint64]] = []
        for fragment in np.unique(fragments).tolist():
            here = live[fragments == fragment]
            offsets = (here & _OFFSET).astype(np.int64)
            mine, theirs = self._sums[fragment][offsets], other._sums[fragment][offsets]
            found.append(here[mine != theirs])
        return np.concatenate(found) if found else np.zeros(0, dtype=np.uint64)
