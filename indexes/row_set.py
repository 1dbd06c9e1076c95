"""Sets of rows: one roaring bitmap of row offsets for each fragment.

The shape is that of Lance's RowAddrTreeMap, so that a posting read from an index file
becomes a `RowSet` without touching its rows one by one.
"""

from __future__ import annotations

import array
import struct
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

OFFSETS_PER_FRAGMENT: Final = 1 << 32
"""How many row offsets a fragment can have; a whole-fragment entry holds all of them."""

_COUNT: Final = struct.Struct("<I")
_ENTRY: Final = struct.Struct("<II")


class RowSet:
    """An immutable set of row addresses, `fragment << 32 | offset`.

    A *whole-fragment entry* stands for all 2^32 offsets of a fragment without storing
    them. It takes part in the algebra as the set that it is; intersecting it with the
    live rows of the table turns it into the rows that exist. Bitmaps handed in or out are
    shared, not copied: do not change them.

    The same class holds stable row ids, whose upper and lower 32 bits take the places of
    fragment and offset.
    """

    __slots__ = ("_bitmaps", "_whole")

    EMPTY: ClassVar[RowSet]

    _bitmaps: dict[int, BitMap]
    _whole: frozenset[int]

    def __init__(self) -> None:
        self._bitmaps = {}
        self._whole = frozenset()

    # -- making one -------------------------------------------------------------------

    @classmethod
    def _of(cls, bitmaps: dict[int, BitMap], whole: Iterable[int] = ()) -> RowSet:
        made = cls()
        made._bitmaps = bitmaps
        made._whole = frozenset(whole)
        return made

    @classmethod
    def from_bitmaps(
        cls, bitmaps: Mapping[int, BitMap], whole_fragments: Iterable[int] = ()
    ) -> RowSet:
        """The rows of `bitmaps` (offsets by fragment id) and all of `whole_fragments`."""
        whole = frozenset(whole_fragments)
        kept = {
            fragment: bitmap
            for fragment, bitmap in bitmaps.items()
            if bitmap and fragment not in whole
        }
        full = [f for f, bitmap in kept.items() if len(bitmap) == OFFSETS_PER_FRAGMENT]
        for fragment in full:
            del kept[fragment]
        return cls._of(kept, whole.union(full))

    @classmethod
    def from_addresses(cls, addresses: npt.NDArray[np.uint64]) -> RowSet:
        """The rows at `addresses`, in any order and with repetitions."""
        if len(addresses) == 0:
            return cls.EMPTY
        ordered = np.asarray(addresses, dtype=np.uint64)
        if np.any(ordered[1:] < ordered[:-1]):
            ordered = np.sort(ordered)
        fragments = (ordered >> np.uint64(32)).astype(np.uint32)
        offsets = ordered.astype(np.uint32)
        starts = np.flatnonzero(fragments[1:] != fragments[:-1]) + 1
        bounds = [0, *starts.tolist(), len(ordered)]
        return cls._of(
            {int(fragments[low]): bitmap_of(offsets[low:high]) for low, high in pairwise(bounds)}
        )

    @classmethod
    def from_row_addr_tree_map(cls, data: bytes) -> RowSet:
        """Decode the portable form of a RowAddrTreeMap.

        A u32 count, then for each entry a u32 fragment id, a u32 byte length and that
        many bytes of a roaring bitmap; length 0 stands for the whole fragment. All
        integers are little-endian. Raises `ValueError` where `data` is anything else.
        """
        if len(data) < _COUNT.size:
            raise ValueError("a row set shorter than its count")
        (count,) = _COUNT.unpack_from(data, 0)
        at = _COUNT.size
        bitmaps: dict[int, BitMap] = {}
        whole: list[int] = []
        for _ in range(count):
            if at + _ENTRY.size > len(data):
                raise ValueError("a row set that ends inside an entry")
            fragment, size = _ENTRY.unpack_from(data, at)
            at += _ENTRY.size
            if fragment in bitmaps or fragment in whole:
                raise ValueError(f"a row set with two entries for fragment {fragment}")
            if size == 0:
                whole.append(fragment)
                continue
            if at + size > len(data):
                raise ValueError("a row set that ends inside a bitmap")
            bitmap = BitMap.deserialize(data[at : at + size])
            at += size
            if bitmap:
                bitmaps[fragment] = bitmap
        if at != len(data):
            raise ValueError("a row set with bytes after its last entry")
        return cls._of(bitmaps, whole)

    # -- algebra ----------------------------------------------------------------------

    def __and__(self, other: RowSet) -> RowSet:
        mine, theirs = self._bitmaps, other._bitmaps
        both: dict[int, BitMap] = {}
        for fragment in mine.keys() & theirs.keys():
            bitmap = mine[fragment] & theirs[fragment]
            if bitmap:
                both[fragment] = bitmap
        if self._whole or other._whole:
            both.update((f, theirs[f]) for f in self._whole & theirs.keys())
            both.update((f, mine[f]) for f in other._whole & mine.keys())
        return RowSet._of(both, self._whole & other._whole)

    def __or__(self, other: RowSet) -> RowSet:
        return RowSet.union((self, other))

    def __sub__(self, other: RowSet) -> RowSet:
        theirs = other._bitmaps
        left: dict[int, BitMap] = {}
        for fragment, bitmap in self._bitmaps.items():
            if fragment in other._whole:
                continue
            gone = theirs.get(fragment)
            kept = bitmap if gone is None else bitmap - gone
            if kept:
                left[fragment] = kept
        whole: list[int] = []
        for fragment in self._whole - other._whole:
            if fragment in theirs:
                left[fragment] = theirs[fragment].flip(0, OFFSETS_PER_FRAGMENT)
            else:
                whole.append(fragment)
        return RowSet._of(left, whole)

    @staticmethod
    def union(sets: Iterable[RowSet]) -> RowSet:
        """All rows of any of `sets`, many at once for one pass over each fragment."""
        whole: set[int] = set()
        parts: dict[int, list[BitMap]] = {}
        for rows in sets:
            whole |= rows._whole
            for fragment, bitmap in rows._bitmaps.items():
                parts.setdefault(fragment, []).append(bitmap)
        joined = {
            fragment: bitmaps[0] if len(bitmaps) == 1 else BitMap.union(*bitmaps)
            for fragment, bitmaps in parts.items()
            if fragment not in whole
        }
        return RowSet.from_bitmaps(joined, whole)

    @staticmethod
    def intersection(sets: Iterable[RowSet]) -> RowSet:
        """The rows in every one of `sets`, of which there is at least one."""
        ordered = sorted(sets, key=len)
        if not ordered:
            raise ValueError("the intersection of no row sets is not defined")
        rows = ordered[0]
        for other in ordered[1:]:
            if not rows:
                return RowSet.EMPTY
            rows = rows & other
        return rows

    def restrict(self, fragment_ids: Iterable[int]) -> RowSet:
        """The rows in the given fragments."""
        wanted = fragment_ids if isinstance(fragment_ids, frozenset) else frozenset(fragment_ids)
        if self._bitmaps.keys() <= wanted and self._whole <= wanted:
            return self
        return RowSet._of(
            {f: bitmap for f, bitmap in self._bitmaps.items() if f in wanted},
            self._whole & wanted,
        )

    # -- what is in it ----------------------------------------------------------------

    def __len__(self) -> int:
        return sum(map(len, self._bitmaps.values())) + OFFSETS_PER_FRAGMENT * len(self._whole)

    def __bool__(self) -> bool:
        return bool(self._bitmaps) or bool(self._whole)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RowSet):
            return NotImplemented
        return self._whole == other._whole and self._bitmaps == other._bitmaps

    def __hash__(self) -> int:
        return hash((self._whole, tuple((f, len(self._bitmaps[f])) for f in sorted(self._bitmaps))))

    def __repr__(self) -> str:
        entries = [f"{f}: {len(self._bitmaps[f])} rows" for f in sorted(self._bitmaps)]
        entries += [f"{f}: whole" for f in sorted(self._whole)]
        return f"RowSet({', '.join(entries)})"

    @property
    def fragment_ids(self) -> tuple[int, ...]:
        """The fragments that have a row in the set, ascending."""
        return tuple(sorted(self._bitmaps.keys() | self._whole))

    @property
    def whole_fragments(self) -> frozenset[int]:
        """The fragments of which every offset, existing or not, is in the set."""
        return self._whole

    def bitmap(self, fragment_id: int) -> BitMap:
        """The row offsets in one fragment; empty where there are none."""
        if fragment_id in self._whole:
            return BitMap().flip(0, OFFSETS_PER_FRAGMENT)
        return self._bitmaps.get(fragment_id) or BitMap()

    def offsets(self, fragment_id: int) -> npt.NDArray[np.uint32]:
        """The row offsets in one fragment, ascending.

        Raises `ValueError` for a whole-fragment entry: intersect with live rows first.
        """
        if fragment_id in self._whole:
            raise ValueError(
                f"fragment {fragment_id} is held whole: intersect with live rows first"
            )
        bitmap = self._bitmaps.get(fragment_id)
        if bitmap is None:
            return np.empty(0, dtype=np.uint32)
        return np.frombuffer(bitmap.to_array(), dtype=np.uint32)

    def addresses(self) -> npt.NDArray[np.uint64]:
        """All row addresses, ascending. Raises as `offsets` does."""
        parts = [
            self.offsets(fragment).astype(np.uint64) | np.uint64(fragment << 32)
            for fragment in self.fragment_ids
        ]
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)

    def __iter__(self) -> Iterator[tuple[int, BitMap]]:
        """The fragments, ascending, each with its row offsets."""
        return ((fragment, self.bitmap(fragment)) for fragment in self.fragment_ids)


RowSet.EMPTY = RowSet()


def bitmap_of(offsets: npt.NDArray[np.uint32]) -> BitMap:
    """The bitmap of ascending offsets without repetitions or with them."""
    # pyroaring takes an array.array in one call and any other sequence item by item.
    return BitMap(array.array("I", np.ascontiguousarray(offsets).tobytes()))
