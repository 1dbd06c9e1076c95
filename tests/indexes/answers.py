"""Index answers and, to compare with, what each row of the table says itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import lance
import pyarrow as pa

from datafusion_lance.indexes.cache import ReaderCache
from datafusion_lance.indexes.evaluation import evaluate
from datafusion_lance.indexes.manifest import LanceIndex
from datafusion_lance.indexes.query import HasAll, HasAny, Is, Query
from datafusion_lance.indexes.search_stats import SearchStats
from datafusion_lance.indexes.snapshot import Snapshot

Labels = list[object] | None


def snapshot_of(dataset: lance.LanceDataset) -> Snapshot:
    """A snapshot with a cache of its own."""
    return Snapshot(dataset, ReaderCache(1 << 26))


def only_index(snapshot: Snapshot, column: str = "tags") -> LanceIndex:
    """The one index on a column."""
    (index,) = snapshot.indexes_on(column)
    return index


def has_any(
    snapshot: Snapshot, labels: Sequence[object], *, match_null: bool = False, column: str = "tags"
) -> HasAny:
    """`array_has_any` over the column's index."""
    index = only_index(snapshot, column)
    kind = snapshot.dataset.schema.field(column).type.value_type
    return HasAny(index, column, pa.array(labels, kind), match_null)


def has_all(
    snapshot: Snapshot, labels: Sequence[object], *, match_null: bool = False, column: str = "tags"
) -> HasAll:
    """`array_has_all` over the column's index."""
    index = only_index(snapshot, column)
    kind = snapshot.dataset.schema.field(column).type.value_type
    return HasAll(index, column, pa.array(labels, kind), match_null)


def covered(snapshot: Snapshot, query: Query) -> frozenset[int]:
    """The fragments that every index of the query covers."""
    fragments = frozenset(snapshot.fragment_ids)
    for index in query.indexes:
        fragments &= snapshot.covered_fragments(index)
    return fragments


def true_rows(snapshot: Snapshot, query: Query, stats: SearchStats | None = None) -> set[int]:
    """The addresses of the rows that the indexes say TRUE for, in what they cover."""
    answer = evaluate(query, snapshot, covered(snapshot, query), stats or SearchStats())
    return set(answer.true.addresses().tolist())


def three_values(snapshot: Snapshot, query: Query) -> dict[int, bool | None]:
    """What the indexes say for every row that they cover."""
    values: dict[int, bool | None] = {}
    for value in (True, False, None):
        values.update(dict.fromkeys(true_rows(snapshot, Is(query, value)), value))
    return values


def lists_by_address(dataset: lance.LanceDataset, column: str = "tags") -> dict[int, Labels]:
    """Every live row's list, by row address, scanned without any index."""
    table = dataset.to_table(columns=[column], with_row_address=True)
    addresses = table.column("_rowaddr").to_pylist()
    return dict(zip(addresses, table.column(column).to_pylist(), strict=True))


def expected(
    dataset: lance.LanceDataset,
    fragments: frozenset[int],
    value: Callable[[list[object]], bool],
) -> dict[int, bool | None]:
    """What each row of the fragments says: NULL where its list is, else `value` of it."""
    return {
        address: None if labels is None else value(labels)
        for address, labels in lists_by_address(dataset).items()
        if address >> 32 in fragments
    }
