"""Digests of rows: equal for the same entries in any order, different for any others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from datafusion_lance.indexes.row_digests import RowDigests, hashes, mixed

VALUES = st.lists(st.none() | st.binary(max_size=40), max_size=20)


@given(VALUES, VALUES)
def test_hashes_are_of_the_values_alone(
    left: list[bytes | None], right: list[bytes | None]
) -> None:
    both = hashes(pa.array(left + right, pa.binary())).tolist()
    sliced = hashes(pa.array(left + right, pa.binary()).slice(len(left))).tolist()

    assert sliced == both[len(left) :]
    for i, a in enumerate(left + right):
        for j, b in enumerate(left + right):
            assert (both[i] == both[j]) == (a == b)


def test_values_that_look_alike() -> None:
    values = [None, b"", b"\0", b"\0\0", b"\0a", b"a\0", b"ab", b"ba", b"\x01", b"\xff" * 100]

    assert len(set(hashes(pa.array(values, pa.binary())).tolist())) == len(values)
    assert len(set(mixed(np.arange(100_000, dtype=np.uint64)).tolist())) == 100_000


def test_rows_differ_by_what_was_added() -> None:
    one, other = RowDigests({0: 3, 7: 2}), RowDigests({0: 3, 7: 2})
    rows = np.array([0, 0, 2, 7 << 32], dtype=np.uint64)
    entries = hashes(pa.array([b"a", b"b", b"a", b"c"], pa.binary()))

    one.add(rows, entries)
    other.add(rows[::-1], entries[::-1])
    live = np.array([0, 1, 2, 7 << 32, 7 << 32 | 1], dtype=np.uint64)
    assert one.differing(other, live).tolist() == []
    other.add(rows[2:3], entries[2:3])

    assert one.differing(other, live).tolist() == [2]
    assert one.differing(other, live[:2]).tolist() == []


def test_rows_that_there_are_not_are_told() -> None:
    astray = np.array([3, 5 << 32, 1], dtype=np.uint64)

    assert RowDigests({0: 3}).add(astray, mixed(astray)).tolist() == [3, 5 << 32]
