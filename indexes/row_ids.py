"""Stable row ids: where the rows with given ids are in one version of a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from . import manifest_messages
from .row_set import RowSet

Ids = npt.NDArray[np.uint64]

# A run costs as much, cut out of the bitmaps, as so many ids looked up one by one.
_IDS_PER_RUN: Final = 128


def decode_sequence(data: bytes) -> Ids:
    """The row ids of a fragment's rows, in their order, from a RowIdSequence message.

    Raises `ValueError` where `data` is none.
    """
    message = manifest_messages.parse("RowIdSequence", data)
    parts = [_segment(segment) for segment in message.segments]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)


def _segment(segment: Any) -> Ids:
    if segment.HasField("range"):
        return np.arange(segment.range.start, segment.range.end, dtype=np.uint64)
    if segment.HasField("range_with_holes"):
        holed = segment.range_with_holes
        ids = np.arange(holed.start, holed.end, dtype=np.uint64)
        return np.delete(ids, (_encoded(holed.holes) - np.uint64(holed.start)).astype(np.int64))
    if segment.HasField("range_with_bitmap"):
        masked = segment.range_with_bitmap
        ids = np.arange(masked.start, masked.end, dtype=np.uint64)
        bits = np.unpackbits(np.frombuffer(masked.bitmap, dtype=np.uint8), bitorder="little")
        return ids[bits[: len(ids)].astype(bool)]
    for kind in ("sorted_array", "array"):
        if segment.HasField(kind):
            return _encoded(getattr(segment, kind))
    raise ValueError("a segment of row ids in an unknown encoding")


def _encoded(array: Any) -> Ids:
    if array.HasField("u16_array"):
        offsets = np.frombuffer(array.u16_array.offsets, dtype="<u2")
        return offsets.astype(np.uint64) + np.uint64(array.u16_array.base)
    if array.HasField("u32_array"):
        offsets = np.frombuffer(array.u32_array.offsets, dtype="<u4")
        return offsets.astype(np.uint64) + np.uint64(array.u32_array.base)
    return np.frombuffer(array.u64_array.values, dtype="<u8").astype(np.uint64)


class RowIdMap:
    """From row ids to row addresses, kept as runs that ascend by one in both.

    Made of pairs of ids and addresses of live rows; each id has one address.
    """

    def __init__(self, pairs: Iterable[tuple[Ids, Ids]]) -> None:
        runs = [_runs(ids, addresses) for ids, addresses in pairs if len(ids)]
        if not runs:
            runs = [(np.empty(0, np.uint64),) * 3]
        starts, lengths, addresses = (np.concatenate(part) for part in zip(*runs, strict=True))
        order = np.argsort(starts, kind="stable")
        self._starts: Ids = starts[order]
        self._lengths: Ids = lengths[order]
        self._addresses: Ids = addresses[order]

    @property
    def nbytes(self) -> int:
        """The bytes that the map takes."""
        return self._starts.nbytes + self._lengths.nbytes + self._addresses.nbytes

    def addresses_of(self, row_ids: RowSet) -> RowSet:
        """Where the live ones among `row_ids` are. Whole entries stand for all their ids."""
        runs = len(self._starts)
        if runs == 0 or not row_ids:
            return RowSet.EMPTY
        if row_ids.whole_fragments or runs * _IDS_PER_RUN < len(row_ids):
            return self._cut_runs(row_ids)
        ids = row_ids.addresses()
        run = np.searchsorted(self._starts, ids, side="right").astype(np.int64) - 1
        first = np.maximum(run, 0)
        into = ids - self._starts[first]
        known = (run >= 0) & (into < self._lengths[first])
        return RowSet.from_addresses(self._addresses[first[known]] + into[known])

    def _cut_runs(self, row_ids: RowSet) -> RowSet:
        parts: list[RowSet] = []
        for start, length, address in zip(
            self._starts.tolist(), self._lengths.tolist(), self._addresses.tolist(), strict=True
        ):
            # Neither ids nor addresses of a run cross a multiple of 2^32: see `_runs`.
            high, low = start >> 32, start & 0xFFFFFFFF
            ids = row_ids.bitmap(high)
            if not ids.intersect(BitMap(range(low, low + length))):
                continue
            here = ids & BitMap(range(low, low + length))
            moved = here.shift((address & 0xFFFFFFFF) - low)
            parts.append(RowSet.from_bitmaps({address >> 32: moved}))
        return RowSet.union(parts)


def _runs(ids: Ids, addresses: Ids) -> tuple[Ids, Ids, Ids]:
    """The first id, the length and the first address of each run."""
    one = np.uint64(1)
    breaks = (ids[1:] != ids[:-1] + one) | (addresses[1:] != addresses[:-1] + one)
    breaks |= (ids[1:] & np.uint64(0xFFFFFFFF)) == 0
    at = np.concatenate([[0], np.flatnonzero(breaks) + 1])
    lengths = np.diff(np.append(at, len(ids))).astype(np.uint64)
    return ids[at], lengths, addresses[at]
