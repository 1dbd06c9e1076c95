"""Stable row ids: where the rows with given ids are in one version of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from . import manifest_messages
from .row_set import RowSet

Ids = npt.NDArray[np.uint64]

_LOW: Final = 0xFFFFFFFF
# A run costs as much, cut out of the bitmaps, as so many ids looked up one by one; and
# looking up costs as much as so many ids even when there is only one.
_IDS_PER_RUN: Final = 64
_IDS_FOR_NOTHING: Final = 2048
_MOST_CUTS: Final = 4096
_CUT_BYTES: Final = 250


def decode_sequence(data: bytes, rows: int) -> Ids:
    """The row ids of a fragment's rows, in their order, from a RowIdSequence message.

    Raises `ValueError` where `data` is none of that many rows.
    """
    message = manifest_messages.parse("RowIdSequence", data)
    parts = [_segment(segment) for segment in message.segments]
    ids = np.concatenate([np.empty(0, dtype=np.uint64), *parts])
    if len(ids) != rows:
        raise ValueError(f"{len(ids)} row ids for {rows} rows")
    return ids


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


@dataclass(frozen=True, slots=True)
class Runs:
    """Stretches of rows whose ids and addresses both ascend by one; no stretch crosses a
    multiple of 2^32 in either.

    `starts` holds the first ids, `lengths` the numbers of rows, `addresses` the first rows'
    addresses.
    """

    starts: Ids
    lengths: Ids
    addresses: Ids

    @classmethod
    def of_rows(cls, ids: Ids, addresses: Ids) -> Runs:
        """The runs of rows with these ids at these addresses, of one fragment, ascending."""
        if len(ids) == 0:
            return cls(ids, ids, ids)
        one = np.uint64(1)
        breaks = (ids[1:] != ids[:-1] + one) | (addresses[1:] != addresses[:-1] + one)
        breaks |= (ids[1:] & np.uint64(_LOW)) == 0
        at = np.concatenate([[0], np.flatnonzero(breaks) + 1])
        return cls(ids[at], np.diff(np.append(at, len(ids))).astype(np.uint64), addresses[at])

    @classmethod
    def of_fragment(cls, sequence: bytes, fragment_id: int, rows: int) -> Runs:
        """The runs of a fragment of `rows` rows, none of them deleted.

        Raises `ValueError` where `sequence` is no RowIdSequence of that many rows.
        """
        message = manifest_messages.parse("RowIdSequence", sequence)
        if len(message.segments) == 1 and message.segments[0].HasField("range"):
            # The common case, of rows that never moved: no need to write out their ids.
            whole = message.segments[0].range
            if whole.end - whole.start == rows and whole.start >> 32 == (whole.end - 1) >> 32:
                numbers = (whole.start, rows, fragment_id << 32)
                return cls(*(np.array([n], dtype=np.uint64) for n in numbers))
        ids = decode_sequence(sequence, rows)
        return cls.of_rows(ids, np.arange(rows, dtype=np.uint64) + np.uint64(fragment_id << 32))


class RowIdMap:
    """From row ids to row addresses, of live rows; each id has one address."""

    def __init__(self, runs: Sequence[Runs]) -> None:
        none = np.empty(0, dtype=np.uint64)
        starts = np.concatenate([none, *(run.starts for run in runs)])
        order = np.argsort(starts, kind="stable")
        self._starts: Ids = starts[order]
        self._lengths: Ids = np.concatenate([none, *(run.lengths for run in runs)])[order]
        self._addresses: Ids = np.concatenate([none, *(run.addresses for run in runs)])[order]
        self._cuts: list[_Cut] | None = None

    @property
    def nbytes(self) -> int:
        """The bytes that the map takes."""
        return 3 * self._starts.nbytes + _CUT_BYTES * min(len(self._starts), _MOST_CUTS)

    def addresses_of(self, row_ids: RowSet) -> RowSet:
        """Where the live ones among `row_ids` are. Whole entries stand for all their ids."""
        runs = len(self._starts)
        if runs == 0 or not row_ids:
            return RowSet.EMPTY
        if row_ids.whole_fragments or (
            runs <= _MOST_CUTS and runs * _IDS_PER_RUN < len(row_ids) + _IDS_FOR_NOTHING
        ):
            return self._cut_out(row_ids)
        addresses, known = self.locate(row_ids.addresses())
        return RowSet.from_addresses(addresses[known])

    def locate(self, ids: Ids) -> tuple[Ids, npt.NDArray[np.bool_]]:
        """The address of each of `ids`, and which of them are known: the others have none."""
        if len(self._starts) == 0:
            return np.zeros(len(ids), dtype=np.uint64), np.zeros(len(ids), dtype=np.bool_)
        run = np.searchsorted(self._starts, ids, side="right").astype(np.int64) - 1
        first = np.maximum(run, 0)
        into = ids - self._starts[first]
        return self._addresses[first] + into, (run >= 0) & (into < self._lengths[first])

    def _cut_out(self, row_ids: RowSet) -> RowSet:
        if self._cuts is None:
            rows = zip(
                self._starts.tolist(), self._lengths.tolist(), self._addresses.tolist(), strict=True
            )
            self._cuts = [_Cut.of_run(*row) for row in rows]
        held = {high: row_ids.bitmap(high) for high in row_ids.fragment_ids}
        parts: dict[int, list[BitMap]] = {}
        for cut in self._cuts:
            ids = held.get(cut.high)
            if ids is None:
                continue
            here = ids & cut.ids
            if here:
                parts.setdefault(cut.fragment_id, []).append(
                    here.shift(cut.shift) if cut.shift else here
                )
        return RowSet.from_bitmaps({f: BitMap.union(*bitmaps) for f, bitmaps in parts.items()})


@dataclass(frozen=True, slots=True)
class _Cut:
    """A run as bitmap work: the ids of the run, and how far its rows' offsets are from them."""

    high: int
    ids: BitMap
    fragment_id: int
    shift: int

    @classmethod
    def of_run(cls, start: int, length: int, address: int) -> _Cut:
        low = start & _LOW
        return cls(
            high=start >> 32,
            ids=BitMap(range(low, low + length)),
            fragment_id=address >> 32,
            shift=(address & _LOW) - low,
        )
