"""Row sets: the algebra against Python's sets, and the RowAddrTreeMap they are read from."""

from __future__ import annotations

import struct
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from datafusion_lance.indexes.row_set import OFFSETS_PER_FRAGMENT, RowSet

from .effort import one_in

_LAST = OFFSETS_PER_FRAGMENT - 1
_FRAGMENTS = [0, 1, 7, 2**32 - 1]

_offsets = st.one_of(st.integers(0, 20), st.sampled_from([65_535, 65_536, 2**31, _LAST - 1, _LAST]))
_addresses = st.sets(
    st.tuples(st.sampled_from(_FRAGMENTS), _offsets).map(lambda row: row[0] << 32 | row[1]),
    max_size=30,
)
_whole = st.frozensets(st.sampled_from(_FRAGMENTS), max_size=2)


def _row_set(addresses: set[int]) -> RowSet:
    return RowSet.from_addresses(np.array(sorted(addresses), dtype=np.uint64))


def _listed(rows: RowSet) -> set[int]:
    return set(rows.addresses().tolist())


@given(_addresses, _addresses)
def test_algebra_is_that_of_sets(a: set[int], b: set[int]) -> None:
    x, y = _row_set(a), _row_set(b)
    assert _listed(x & y) == a & b
    assert _listed(x | y) == a | b
    assert _listed(x - y) == a - b
    assert (x == y) == (a == b)
    assert len(x) == len(a)
    assert bool(x) == bool(a)


@given(st.lists(_addresses, min_size=1, max_size=5))
def test_many_at_once_are_one_after_another(sets: list[set[int]]) -> None:
    rows = [_row_set(addresses) for addresses in sets]
    assert _listed(RowSet.union(rows)) == set().union(*sets)
    assert _listed(RowSet.intersection(rows)) == reduce(set.intersection, sets)


@given(_addresses)
def test_what_is_in_it(addresses: set[int]) -> None:
    rows = _row_set(addresses)
    assert rows.addresses().dtype == np.uint64
    assert rows.addresses().tolist() == sorted(addresses)
    assert rows.fragment_ids == tuple(sorted({address >> 32 for address in addresses}))
    for fragment in _FRAGMENTS:
        offsets = sorted(a & 0xFFFFFFFF for a in addresses if a >> 32 == fragment)
        assert rows.offsets(fragment).tolist() == offsets
        assert rows.offsets(fragment).dtype == np.uint32
        assert list(rows.bitmap(fragment)) == offsets
    assert _listed(rows.restrict([0, 7])) == {a for a in addresses if a >> 32 in (0, 7)}


@one_in(10)
@given(_addresses, _whole, _addresses, _whole)
def test_whole_fragments_are_sets_like_any(
    a: set[int], whole_a: frozenset[int], b: set[int], whole_b: frozenset[int]
) -> None:
    x = _row_set(a) | RowSet.from_bitmaps({}, whole_a)
    y = _row_set(b) | RowSet.from_bitmaps({}, whole_b)
    for address in a | b | {f << 32 | o for f in whole_a | whole_b for o in (3, _LAST)}:
        in_x = address in a or address >> 32 in whole_a
        in_y = address in b or address >> 32 in whole_b
        one = _row_set({address})
        assert bool(one & x) == in_x
        assert bool(one & (x & y)) == (in_x and in_y)
        assert bool(one & (x | y)) == (in_x or in_y)
        assert bool(one & (x - y)) == (in_x and not in_y)
    assert len(x) == len(whole_a) * 2**32 + len({r for r in a if r >> 32 not in whole_a})
    assert (x - y) | (x & y) == x


def test_a_whole_fragment_resolves_against_the_live_rows() -> None:
    whole = RowSet.from_bitmaps({}, [3])
    live = RowSet.from_bitmaps({3: BitMap([0, 2]), 4: BitMap([1])})
    assert whole & live == RowSet.from_bitmaps({3: BitMap([0, 2])})
    assert live - whole == RowSet.from_bitmaps({4: BitMap([1])})
    assert whole.whole_fragments == frozenset({3})
    with pytest.raises(ValueError, match="fragment 3 is held whole"):
        whole.offsets(3)


def test_all_offsets_of_a_fragment_are_the_whole_fragment() -> None:
    some = RowSet.from_bitmaps({3: BitMap([1, _LAST])})
    whole = RowSet.from_bitmaps({}, [3])
    assert (whole - some) | some == whole
    assert len(whole - some) == 2**32 - 2
    assert len(whole.bitmap(3)) == 2**32


def test_empty() -> None:
    assert not RowSet.EMPTY
    assert RowSet.from_bitmaps({1: BitMap()}) == RowSet.EMPTY
    assert RowSet.EMPTY.addresses().tolist() == []
    assert RowSet.from_addresses(np.array([], dtype=np.uint64)) == RowSet.EMPTY
    with pytest.raises(ValueError, match="no row sets"):
        RowSet.intersection([])


def test_addresses_may_repeat_and_need_no_order() -> None:
    addresses = np.array([1 << 32 | 5, 3, 1 << 32 | 5, 1], dtype=np.uint64)
    assert RowSet.from_addresses(addresses).addresses().tolist() == [1, 3, 1 << 32 | 5]


# -- RowAddrTreeMap -----------------------------------------------------------------------


def _tree_map(entries: list[tuple[int, bytes]]) -> bytes:
    parts = [struct.pack("<I", len(entries))]
    parts += [struct.pack("<II", fragment, len(data)) + data for fragment, data in entries]
    return b"".join(parts)


@given(_addresses, _whole)
def test_a_row_addr_tree_map_is_read(addresses: set[int], whole: frozenset[int]) -> None:
    bitmaps: dict[int, BitMap] = {}
    for address in addresses:
        bitmaps.setdefault(address >> 32, BitMap()).add(address & 0xFFFFFFFF)
    entries = [(f, bitmap.serialize()) for f, bitmap in bitmaps.items() if f not in whole]
    entries += [(fragment, b"") for fragment in whole]
    read = RowSet.from_row_addr_tree_map(_tree_map(entries))
    assert read == RowSet.from_bitmaps(bitmaps, whole)


_ONE = BitMap([1, 2]).serialize()


@pytest.mark.parametrize(
    ("data", "check"),
    [
        (b"", "shorter than its count"),
        (_tree_map([(0, _ONE)])[:-1], "ends inside a bitmap"),
        (_tree_map([(0, _ONE)])[:9], "ends inside an entry"),
        (_tree_map([(0, _ONE)]) + b"x", "bytes after its last entry"),
        (_tree_map([(0, _ONE), (0, _ONE)]), "two entries for fragment 0"),
        (_tree_map([(0, b""), (0, _ONE)]), "two entries for fragment 0"),
        (_tree_map([(0, b"\xff" * len(_ONE))]), "deserialize"),
    ],
)
def test_anything_else_is_refused(data: bytes, check: str) -> None:
    with pytest.raises(ValueError, match=check):
        RowSet.from_row_addr_tree_map(data)


@given(st.binary(max_size=60))
def test_no_bytes_crash_the_decoder(data: bytes) -> None:
    try:
        rows = RowSet.from_row_addr_tree_map(data)
    except (ValueError, IndexError):
        return
    assert len(rows) >= 0
