"""A Lance dataset as a DataFusion table.

DataFusion takes any `pyarrow.dataset.Dataset` as a table. When it makes a physical plan it calls
`scanner(columns=, filter=)` for the schema and `get_fragments(filter)` for the partitions; when
a partition runs, `fragment.scanner(schema, columns=, filter=, batch_size=)` and its
`to_batches()`, from any thread. The filter is the table's to apply: DataFusion has dropped it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset

from .fragment_scan import scan_fragments
from .pushed_filter import Predicate, predicate_of

if TYPE_CHECKING:
    from ..indexes.snapshot import Snapshot

ROW_ID = "_rowid"

# Setting up one Lance scan costs about a millisecond: a partition should be worth it.
_LEAST_ROWS_A_PARTITION = 32_768


class LanceTable(pyarrow.dataset.Dataset):
    """One version of a Lance dataset, readable by DataFusion (and by pyarrow).

    `row_id` adds the column `_rowid` (uint64, Lance's row ids) at the end. `fragment_ids`
    restricts the table to some of the dataset's fragments. The schema is the dataset's.
    Filters mean what they mean in DataFusion: NaN equals NaN and is above every number, -0.0
    equals 0.0, `IN` on floats compares bits, `NULL IN (...)` is NULL.
    """

    def __init__(
        self,
        dataset: lance.LanceDataset,
        *,
        row_id: bool = False,
        fragment_ids: frozenset[int] | None = None,
    ) -> None:
        self.lance_dataset = dataset
        self.row_id = row_id
        self.fragment_ids = fragment_ids
        self.snapshot: Snapshot | None = None
        schema = dataset.schema
        if row_id:
            schema = schema.append(pa.field(ROW_ID, pa.uint64()))
        self._schema = schema
        self._groups: list[tuple[lance.LanceFragment, ...]] | None = None

    @property
    def schema(self) -> pa.Schema:
        self._touched()
        return self._schema

    def restricted(self, fragment_ids: frozenset[int]) -> LanceTable:
        """The same table with only those of its fragments that `fragment_ids` names."""
        if self.fragment_ids is not None:
            fragment_ids &= self.fragment_ids
        table = LanceTable(self.lance_dataset, row_id=self.row_id, fragment_ids=fragment_ids)
        table.snapshot = self.snapshot
        return table

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | pa.Scalar | bool | None = None,
        batch_size: int | None = None,
        **_ignored: Any,
    ) -> PartitionScan:
        """The whole table's scan: no data is read before its `to_batches()` is iterated."""
        self._touched()
        fragments = tuple(fragment for group in self._fragment_groups() for fragment in group)
        return self._partition(fragments, filter).scanner(
            columns=columns, filter=filter, batch_size=batch_size
        )

    def get_fragments(
        self, filter: pc.Expression | pa.Scalar | bool | None = None
    ) -> list[TablePartition]:
        """The partitions: groups of fragments of about equal row counts, in order."""
        self._touched()
        return [self._partition(group, filter) for group in self._fragment_groups()]

    def count_rows(self, filter: pc.Expression | None = None, **_ignored: Any) -> int:
        """The number of rows that pass `filter`; without one, from the metadata alone."""
        return self.scanner(columns=[], filter=filter).count_rows()

    def to_batches(self, **scan: Any) -> Iterator[pa.RecordBatch]:
        return self.scanner(**scan).to_batches()

    def to_table(self, **scan: Any) -> pa.Table:
        return self.scanner(**scan).to_table()

    def head(self, num_rows: int, **scan: Any) -> pa.Table:
        return self.scanner(**scan).head(num_rows)

    def __repr__(self) -> str:
        return f"LanceTable({self.lance_dataset.uri!r}, version={self.lance_dataset.version})"

    def _touched(self) -> None:
        """Called whenever DataFusion looks at the table while it plans."""

    def _partition(
        self,
        fragments: tuple[lance.LanceFragment, ...],
        filter: pc.Expression | pa.Scalar | bool | None,
    ) -> TablePartition:
        return TablePartition(self.lance_dataset, self._schema, fragments, filter)

    def _fragment_groups(self) -> list[tuple[lance.LanceFragment, ...]]:
        # Two threads may both compute it; both get the same, since a version never changes.
        if self._groups is None:
            wanted = self.fragment_ids
            fragments = [
                fragment
                for fragment in self.lance_dataset.get_fragments()
                if wanted is None or fragment.fragment_id in wanted
            ]
            self._groups = grouped_by_rows(fragments)
        return self._groups


class TablePartition:
    """One partition of a table: some of its fragments."""

    def __init__(
        self,
        dataset: lance.LanceDataset,
        schema: pa.Schema,
        fragments: tuple[lance.LanceFragment, ...],
        filter: pc.Expression | pa.Scalar | bool | None,
    ) -> None:
        self._dataset = dataset
        self._schema = schema
        self._fragments = fragments
        self._filter = filter
        self._predicate = predicate_of(filter)

    def scanner(
        self,
        schema: pa.Schema | None = None,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | pa.Scalar | bool | None = None,
        batch_size: int | None = None,
    ) -> PartitionScan:
        """Reads the partition; `schema`, DataFusion's idea of the table's, is the table's own."""
        predicate = self._predicate if filter is self._filter else predicate_of(filter)
        return PartitionScan(
            self._dataset, self._schema, self._fragments, columns, predicate, batch_size
        )


class PartitionScan:
    """One read of some fragments; each `to_batches()` starts anew."""

    def __init__(
        self,
        dataset: lance.LanceDataset,
        schema: pa.Schema,
        fragments: tuple[lance.LanceFragment, ...],
        columns: Sequence[str] | None,
        predicate: Predicate | None,
        batch_size: int | None,
    ) -> None:
        self._dataset = dataset
        self._fragments = fragments
        self._predicate = predicate
        self._batch_size = batch_size
        self.dataset_schema = schema
        self.projected_schema = projected(schema, columns)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Batches as they are read; closing the iterator ends the read."""
        return scan_fragments(
            self._dataset,
            self._fragments,
            self.projected_schema,
            self._predicate,
            self._batch_size,
        )

    def to_table(self) -> pa.Table:
        return pa.Table.from_batches(self.to_batches(), self.projected_schema)

    def count_rows(self) -> int:
        return sum(batch.num_rows for batch in self.to_batches())

    def head(self, num_rows: int) -> pa.Table:
        batches: list[pa.RecordBatch] = []
        missing = num_rows
        for batch in self.to_batches():
            batches.append(batch.slice(0, missing))
            missing -= batches[-1].num_rows
            if missing == 0:
                break
        return pa.Table.from_batches(batches, self.projected_schema)


def projected(schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    """The fields of `columns` in their order; all of them for None."""
    if columns is None:
        return schema
    return pa.schema([schema.field(name) for name in columns], metadata=schema.metadata)


def grouped_by_rows(
    fragments: Sequence[lance.LanceFragment],
) -> list[tuple[lance.LanceFragment, ...]]:
    """Consecutive fragments in groups of about equal row counts, at most two for each core.

    At least one group, which is empty if there are no fragments: DataFusion has no use for a
    table without partitions.
    """
    rows = [fragment.physical_rows for fragment in fragments]
    total = sum(rows)
    most = min(len(fragments), 2 * (os.cpu_count() or 1), total // _LEAST_ROWS_A_PARTITION)
    count = max(1, most)
    groups: list[list[lance.LanceFragment]] = [[] for _ in range(count)]
    seen = 0
    for fragment, its_rows in zip(fragments, rows, strict=True):
        # The group in whose share of the rows the fragment's middle lies.
        middle = seen + its_rows / 2
        groups[min(count - 1, int(middle * count / total)) if total else 0].append(fragment)
        seen += its_rows
    return [tuple(group) for group in groups if group] or [()]
