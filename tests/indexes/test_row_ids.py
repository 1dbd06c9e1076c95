"""Row ids: sequences as pylance encodes them, and where the rows with given ids are."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lance.fragment import RowIdSequence

from datafusion_lance.indexes.row_ids import RowIdMap, Runs, decode_sequence
from datafusion_lance.indexes.row_set import RowSet

from .effort import one_in

_ids = st.one_of(
    st.sets(st.integers(0, 300), max_size=200).map(sorted),
    st.sets(st.integers(2**32 - 20, 2**32 + 20), max_size=30).map(sorted),
    st.sets(st.integers(0, 2**63), max_size=30).map(sorted),
    st.sets(st.one_of(st.integers(0, 100), st.integers(70_000, 80_000)), max_size=60).map(list),
    st.builds(lambda a, n: list(range(a, a + n)), st.integers(0, 2**33), st.integers(0, 3000)),
)


def _encoded(ids: list[int]) -> bytes:
    inline = json.loads(RowIdSequence(ids).to_inline_metadata().json())
    return bytes(inline["Inline"] if "Inline" in inline else inline["inline"])


@given(_ids)
def test_sequences_are_read_as_pylance_writes_them(ids: list[int]) -> None:
    assert decode_sequence(_encoded(ids), len(ids)).tolist() == ids


@pytest.mark.parametrize(
    ("data", "check"), [(_encoded([1, 2]), "2 row ids for 3 rows"), (b"\xff", "no RowIdSequence")]
)
def test_anything_else_is_refused(data: bytes, check: str) -> None:
    with pytest.raises(ValueError, match=check):
        decode_sequence(data, 3)
    with pytest.raises(ValueError, match=check):
        Runs.of_fragment(data, 0, 3)


@one_in(3)
@given(
    st.lists(st.integers(0, 60).map(lambda i: i * 2**30), min_size=1, max_size=40, unique=True),
    st.integers(1, 4),
    st.data(),
)
def test_ids_are_found_where_their_rows_are(
    bases: list[int], width: int, data: st.DataObject
) -> None:
    ids = [base + i for base in bases for i in range(width)]
    pieces = np.array_split(np.array(ids, dtype=np.uint64), 3)
    addresses = [
        np.arange(len(piece), dtype=np.uint64) + np.uint64(fragment << 32)
        for fragment, piece in enumerate(pieces)
    ]
    where = {
        i: a
        for piece, at in zip(pieces, addresses, strict=True)
        for i, a in zip(piece.tolist(), at.tolist(), strict=True)
    }
    runs = [Runs.of_rows(piece, at) for piece, at in zip(pieces, addresses, strict=True)]
    asked = data.draw(st.sets(st.one_of(st.sampled_from(ids), st.integers(0, 2**36))))
    rows = RowSet.from_addresses(np.array(sorted(asked), dtype=np.uint64))
    found = sorted(where[i] for i in asked if i in where)
    made = RowIdMap(runs)
    assert made.addresses_of(rows).addresses().tolist() == found


@one_in(3)
@given(st.sets(st.integers(0, 12_000)), st.sampled_from([1, 3, 2000]))
def test_many_ids_and_few_are_found_alike(asked: set[int], step: int) -> None:
    """Long runs are cut out of the bitmaps, short ones looked up one by one."""
    ids = np.concatenate([np.arange(at, 12_000, step, dtype=np.uint64) for at in range(step)])
    addresses = np.arange(len(ids), dtype=np.uint64)
    where = dict(zip(ids.tolist(), addresses.tolist(), strict=True))
    made = RowIdMap([Runs.of_rows(ids, addresses)])
    rows = RowSet.from_addresses(np.array(sorted(asked), dtype=np.uint64))
    found = sorted(where[i] for i in asked if i in where)
    assert made.addresses_of(rows).addresses().tolist() == found


def test_no_rows() -> None:
    made = RowIdMap([])
    assert made.addresses_of(RowSet.from_bitmaps({}, [0])) == RowSet.EMPTY


def test_a_run_that_never_moved_is_one_run() -> None:
    runs = Runs.of_fragment(_encoded(list(range(10, 1_000_010))), 4, 1_000_000)
    assert (runs.starts.tolist(), runs.lengths.tolist()) == ([10], [1_000_000])
    assert runs.addresses.tolist() == [4 << 32]
