"""When columns are kept whole: after reads that cost as much, and within a share of the cache."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from datafusion_lance.engine.kept_columns import KeptColumns
from datafusion_lance.indexes.cache import ReaderCache

TABLE = pa.table({"n": [1, None, 3, 4, 5], "f": [0.5, 1.5, 2.5, 3.5, 4.5], "s": list("abcde")})
N, F, S = TABLE.schema
EVER = 1e3  # seconds, more than any read costs


class Reads:
    """Reads of whole columns, counted."""

    def __init__(self) -> None:
        self.made: list[tuple[str, ...]] = []

    def __call__(self, columns: Sequence[str]) -> pa.Table:
        self.made.append(tuple(columns))
        return TABLE.select(list(columns))


def columns_of(cache: ReaderCache, reads: Reads, version: str = "v") -> KeptColumns:
    return KeptColumns(cache, version, TABLE.num_rows, reads)


def test_a_column_is_kept_once_reads_have_cost_as_much() -> None:
    reads = Reads()
    columns = columns_of(ReaderCache(1 << 20), reads)
    assert columns.get([N]) is None
    columns.spent([N], 1e-12)
    assert columns.get([N]) is None
    columns.spent([N], EVER)
    for _ in range(2):
        kept = columns.get([N])
        assert kept is not None
        assert kept.to_pydict() == {"n": [1, None, 3, 4, 5]}
    assert reads.made == [("n",)]


def test_columns_that_are_there_are_not_read_again() -> None:
    reads = Reads()
    columns = columns_of(ReaderCache(1 << 20), reads)
    columns.spent([N], EVER)
    columns.get([N])
    columns.spent([N, F], EVER)
    kept = columns.get([N, F])
    assert kept is not None
    assert kept.to_pydict() == TABLE.select(["n", "f"]).to_pydict()
    assert reads.made == [("n",), ("f",)]
    assert columns.get([F]) is not None
    assert len(reads.made) == 2


def test_what_the_cache_dropped_has_to_pay_again() -> None:
    reads, cache = Reads(), ReaderCache(1 << 20)
    columns = columns_of(cache, reads)
    columns.spent([N], EVER)
    assert columns.get([N]) is not None
    cache.put("other", object(), cache.byte_limit)
    assert columns.get([N]) is None
    columns.spent([N], EVER)
    assert columns.get([N]) is not None


def test_versions_do_not_share() -> None:
    cache = ReaderCache(1 << 20)
    first, second = columns_of(cache, Reads()), columns_of(cache, Reads(), "w")
    first.spent([N], EVER)
    assert first.get([N]) is not None
    assert second.get([N]) is None


@pytest.mark.parametrize(
    ("fields", "limit"),
    [
        ([S], 1 << 20),
        ([N, S], 1 << 20),
        ([pa.field("v", pa.list_(pa.float32(), 2))], 1 << 20),
        ([pa.field("d", pa.dictionary(pa.int8(), pa.string()))], 1 << 20),
        ([], 1 << 20),
        ([N], 2 * 5 * 8 - 1),
        ([N, F], 2 * 5 * 16 - 1),
        ([N], 0),
    ],
)
def test_what_is_not_kept(fields: list[pa.Field], limit: int) -> None:
    columns = columns_of(ReaderCache(limit), Reads())
    columns.spent(fields, EVER)
    assert columns.get(fields) is None


def test_a_column_of_half_the_cache_is_kept() -> None:
    columns = columns_of(ReaderCache(2 * 5 * 8), Reads())
    columns.spent([N], EVER)
    assert columns.get([N]) is not None
