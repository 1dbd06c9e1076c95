"""Queries of MinHash distances, against the signatures that pylance stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lance.file import LanceFileReader
from lance.indices import IndexConfig

from datafusion_lance.indexes.evaluation import evaluate
from datafusion_lance.indexes.manifest import LanceIndex
from datafusion_lance.indexes.query import And, Is, Nearest, Not, Or, Query, WithinDistance
from datafusion_lance.indexes.row_set import RowSet
from datafusion_lance.indexes.search_stats import SearchStats
from datafusion_lance.indexes.snapshot import Snapshot

from ..minhash_tables import base_texts, texts
from .answers import only_index, snapshot_of
from .effort import one_in

ROWS = 240
PARAMETERS = {"num_hashes": 32, "num_bands": 8, "shingle_size": 2}
Differences = dict[int, int]
"""By row address, in how many positions a signature differs; rows without one are left out."""


@dataclass(frozen=True, repr=False)
class Stored:
    """A table and the signatures in its index, by row address; some rows have none."""

    snapshot: Snapshot
    index: LanceIndex
    signatures: dict[int, npt.NDArray[np.uint16]]

    @property
    def covered(self) -> frozenset[int]:
        return self.snapshot.covered_fragments(self.index)

    @property
    def live(self) -> list[int]:
        return self.snapshot.live_rows(self.covered).addresses().tolist()

    def differences(self, text: str | None) -> Differences:
        """From the signature of a row with that text; of none, where no such row has one."""
        column = self.snapshot.dataset.to_table(columns=["u"], with_row_address=True)
        same = [
            self.signatures[row]
            for row, other in zip(
                column["_rowaddr"].to_pylist(), column["u"].to_pylist(), strict=True
            )
            if other == text and row in self.signatures
        ]
        if not same:
            return {}
        return {
            row: int(np.count_nonzero(signature != same[0]))
            for row, signature in self.signatures.items()
        }


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    folder = tmp_path_factory.mktemp("distances") / "t"
    column = [*base_texts(), *texts(ROWS - 6, 9)]
    rows = pa.table({"u": pa.array(column, pa.string()), "i": range(ROWS)})
    dataset = lance.write_dataset(rows, folder, max_rows_per_file=50)
    dataset.create_scalar_index("u", IndexConfig("minhashlsh", parameters=dict(PARAMETERS)))
    lance.dataset(folder).delete("i % 19 = 7")
    lance.write_dataset(rows.slice(0, 20), folder, mode="append")
    snapshot = snapshot_of(lance.dataset(folder))
    index = only_index(snapshot, "u")
    (segment,) = index.segments
    file = LanceFileReader(f"{folder}/_indices/{segment.uuid}/signatures.lance")
    kept = file.read_all().to_table()
    signatures = dict(
        zip(kept["_rowid"].to_pylist(), np.array(kept["signature"].to_pylist()), strict=True)
    )
    live = set(snapshot.live_rows(snapshot.covered_fragments(index)).addresses().tolist())
    return Stored(snapshot, index, {row: s for row, s in signatures.items() if row in live})


def answer(stored: Stored, query: Query) -> list[int]:
    found = evaluate(query, stored.snapshot, stored.covered, SearchStats())
    assert found.exact
    return found.true.addresses().tolist()


Shape = tuple[Any, ...]
_bounds = st.tuples(
    st.just("within"),
    st.sampled_from([*base_texts()[:2], None, " ... "]),
    st.integers(-1, 33),
    st.integers(-1, 33),
)
_shapes: st.SearchStrategy[Shape] = st.recursive(
    _bounds,
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner),
        st.tuples(st.sampled_from(["and", "or"]), st.lists(inner, min_size=2, max_size=3)),
        st.tuples(st.just("is"), inner, st.sampled_from([True, False, None])),
    ),
    max_leaves=6,
)


def _query(shape: Shape, index: LanceIndex) -> Query:
    match shape:
        case ("within", text, low, high):
            return WithinDistance(index, "u", text, low, high)
        case ("not", inner):
            return Not(_query(inner, index))
        case ("and" | "or" as word, children):
            made = tuple(_query(child, index) for child in children)
            return And(made) if word == "and" else Or(made)
        case (_, inner, value):
            return Is(_query(inner, index), value)
    raise AssertionError(shape)


def _value(shape: Shape, row: int, differences: dict[str | None, Differences]) -> bool | None:
    """What the shape is on a row: SQL's three-valued logic, row by row."""
    match shape:
        case ("within", text, low, high):
            different = differences[text].get(row)
            return None if different is None else low <= different <= high
        case ("not", inner):
            value = _value(inner, row, differences)
            return None if value is None else not value
        case ("and" | "or" as word, children):
            values = [_value(child, row, differences) for child in children]
            settling = word == "or"
            return settling if settling in values else None if None in values else not settling
        case (_, inner, value):
            return _value(inner, row, differences) is value
    raise AssertionError(shape)


@one_in(3)
@given(shape=_shapes)
def test_bounds_are_three_valued(stored: Stored, shape: Shape) -> None:
    differences = {text: stored.differences(text) for text in (*base_texts()[:2], None, " ... ")}
    wanted = [row for row in stored.live if _value(shape, row, differences) is True]
    assert answer(stored, _query(shape, stored.index)) == wanted


class _Even:
    """Lets every second row of a fragment through."""

    def passing(self, rows: RowSet) -> RowSet:
        addresses = rows.addresses()
        return RowSet.from_addresses(addresses[addresses % np.uint64(2) == 0])


@one_in(3)
@given(
    text=st.sampled_from([*base_texts()[:3], None, " ... "]),
    count=st.integers(1, 260),
    ties=st.booleans(),
    nulls=st.booleans(),
    bound=st.none() | st.tuples(st.integers(0, 32), st.integers(0, 32)),
    filtered=st.booleans(),
)
def test_the_nearest(
    stored: Stored,
    text: str | None,
    count: int,
    ties: bool,
    nulls: bool,
    bound: tuple[int, int] | None,
    filtered: bool,
) -> None:
    condition = (
        None if bound is None else WithinDistance(stored.index, "u", base_texts()[0], *bound)
    )
    passing = _Even() if filtered else None
    query = Nearest(stored.index, "u", text, count, ties, nulls, condition, passing)
    found = answer(stored, query)
    away, conditioned = stored.differences(text), stored.differences(base_texts()[0])
    among = [
        row
        for row in stored.live
        if (bound is None or (row in conditioned and bound[0] <= conditioned[row] <= bound[1]))
        and (not filtered or row % 2 == 0)
    ]
    assert set(found) <= set(among)
    last = -1 if nulls else 99
    order = sorted(among, key=lambda row: away.get(row, last))
    wanted = [away.get(row, last) for row in order[:count]]
    assert sorted(away.get(row, last) for row in found)[:count] == wanted
    if ties and wanted:
        assert {row for row in among if away.get(row, last) <= wanted[-1]} <= set(found)


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0, 8, "minhash_distance(u, 'it''s') <= 8/32"),
        (3, 3, "minhash_distance(u, 'it''s') = 3/32"),
        (30, 32, "minhash_distance(u, 'it''s') >= 30/32"),
        (3, 8, "minhash_distance(u, 'it''s') BETWEEN 3/32 AND 8/32"),
        (0, -1, "minhash_distance(u, 'it''s') < 0"),
    ],
)
def test_how_a_bound_prints(stored: Stored, low: int, high: int, text: str) -> None:
    assert str(WithinDistance(stored.index, "u", "it's", low, high)) == text


def test_how_the_nearest_print(stored: Stored) -> None:
    index = stored.index
    near, far = WithinDistance(index, "u", None, 0, 3), WithinDistance(index, "u", "a", 32, 32)
    plain = Nearest(index, "u", "a b", 10, ties=False, nulls=False)
    assert str(plain) == "nearest(u, 'a b', 10)"
    filtered = Nearest(index, "u", None, 10, False, False, And((near, far)))
    assert str(filtered) == (
        "nearest(u, NULL, 10, where (minhash_distance(u, NULL) <= 3/32 AND "
        "minhash_distance(u, 'a') = 32/32))"
    )


def test_what_is_known_without_reading(stored: Stored) -> None:
    bound = WithinDistance(stored.index, "u", "a", 0, 3)
    assert (bound.exact, bound.null_known, bound.indexes) == (True, True, {stored.index})
    nearest = Nearest(stored.index, "u", "a", 3, ties=False, nulls=False)
    assert (nearest.exact, nearest.null_known, nearest.indexes) == (True, False, {stored.index})


def test_bounds_on_one_distance_are_one_search(stored: Stored) -> None:
    near, far = (WithinDistance(stored.index, "u", base_texts()[0], *b) for b in ((0, 30), (9, 32)))
    compared: list[int] = []
    for query in (near, And((near, far)), And((near, Not(far), far))):
        stats = SearchStats()
        evaluate(query, stored.snapshot, stored.covered, stats)
        compared.append(stats.signatures_compared)
    assert compared == [compared[0], compared[0], 2 * compared[0]]
