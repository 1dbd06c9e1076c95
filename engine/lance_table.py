"""A Lance dataset as a DataFusion table.

DataFusion takes any `pyarrow.dataset.Dataset` as a table. When it makes a physical plan it calls
`scanner(columns=, filter=)` for the schema and `get_fragments(filter)` for the partitions; when
a partition runs, `fragment.scanner(schema, columns=, filter=, batch_size=)` and its
`to_batches()`, from any thread. The filter is the table's to apply: DataFusion has dropped it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa
import pyarrow.dataset

from ..indexes.manifest import read_indexes
from .blob_columns import table_schema
from .fragment_scan import ROW_ID, scan_fragments
from .pushed_filter import HandedOver, PushedFilter
from .row_fetch import RowReader

if TYPE_CHECKING:
    from ..indexes.snapshot import Snapshot

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
        schema = table_schema(dataset)
        if row_id:
            schema = schema.append(pa.field(ROW_ID, pa.uint64()))
        self.full_schema = schema

    @property
    def schema(self) -> pa.Schema:
        self._touched()
        return self.full_schema

    @cached_property
    def shown_fragments(self) -> frozenset[int]:
        """The ids of the fragments whose rows the table shows."""
        return frozenset(
            fragment.fragment_id for group in self.fragment_groups for fragment in group
        )

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
        filter: PushedFilter = None,
        batch_size: int | None = None,
        **_ignored: Any,
    ) -> PartitionScan:
        """The whole table's scan: no data is read before its `to_batches()` is iterated."""
        self._touched()
        fragments = tuple(fragment for group in self.fragment_groups for fragment in group)
        return PartitionScan(self, fragments, columns, HandedOver(filter), batch_size)

    def get_fragments(self, filter: PushedFilter = None) -> list[TablePartition]:
        """The partitions: groups of fragments of about equal row counts, in order."""
        self._touched()
        handed = HandedOver(filter)
        return [TablePartition(self, group, handed) for group in self.fragment_groups]

    def count_rows(self, filter: PushedFilter = None, **_ignored: Any) -> int:
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

    # Two threads may both compute one of these; both get the same: a version never changes.
    @cached_property
    def fragment_groups(self) -> list[tuple[lance.LanceFragment, ...]]:
        wanted = self.fragment_ids
        return grouped_by_rows(
            [
                fragment
                for fragment in self.lance_dataset.get_fragments()
                if wanted is None or fragment.fragment_id in wanted
            ]
        )

    @cached_property
    def groups_of_cores(self) -> list[frozenset[int]]:
        """The ids of the fragments in one group for each core, of about equal row counts.

        Fewer partitions, for what most often reads few rows: all of them in a single one.
        """
        fragments = [fragment for group in self.fragment_groups for fragment in group]
        return [
            frozenset(fragment.fragment_id for fragment in group)
            for group in grouped_by_rows(fragments, for_each_core=1)
        ]

    @cached_property
    def row_reader(self) -> RowReader:
        """Reads rows of the table by address; the table needs its `snapshot` for it."""
        if self.snapshot is None:
            raise RuntimeError("a table without snapshot cannot read rows by address")
        return RowReader(self.snapshot)

    @cached_property
    def zone_mapped(self) -> frozenset[str]:
        """The columns with a zone map among the dataset's indexes."""
        indexes = read_indexes(self.lance_dataset)
        ids = {at for index in indexes if "ZoneMap" in index.kind for at in index.field_ids}
        fields = self.lance_dataset.lance_schema.fields()
        return frozenset(field.name() for field in fields if field.id() in ids)


class TablePartition:
    """One partition of a table: some of its fragments."""

    def __init__(
        self,
        table: LanceTable,
        fragments: tuple[lance.LanceFragment, ...],
        handed: HandedOver,
    ) -> None:
        self._table = table
        self._fragments = fragments
        self._handed = handed

    def scanner(
        self,
        schema: pa.Schema | None = None,
        columns: Sequence[str] | None = None,
        filter: PushedFilter = None,
        batch_size: int | None = None,
    ) -> PartitionScan:
        """Reads the partition; `schema`, DataFusion's idea of the table's, is the table's own."""
        handed = self._handed.again(filter)
        return PartitionScan(self._table, self._fragments, columns, handed, batch_size)


class PartitionScan:
    """One read of some fragments; each `to_batches()` starts anew."""

    def __init__(
        self,
        table: LanceTable,
        fragments: tuple[lance.LanceFragment, ...],
        columns: Sequence[str] | None,
        handed: HandedOver,
        batch_size: int | None,
    ) -> None:
        self._table = table
        self._fragments = fragments
        self._handed = handed
        self._batch_size = batch_size
        self.dataset_schema = table.full_schema
        self.projected_schema = projected(table.full_schema, columns)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Batches as they are read; closing the iterator ends the read."""
        return scan_fragments(
            self._table.lance_dataset,
            self._fragments,
            self.projected_schema,
            self._handed.predicate,
            self._batch_size,
            lambda: self._table.zone_mapped,
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
    fragments: Sequence[lance.LanceFragment], for_each_core: int = 2, cores: int | None = None
) -> list[tuple[lance.LanceFragment, ...]]:
    """Consecutive fragments in groups of about equal row counts, at most so many for each core.

    At least one group, which is empty if there are no fragments: DataFusion has no use for a
    table without partitions.
    """
    rows = [fragment.physical_rows for fragment in fragments]
    total = sum(rows)
    most = min(for_each_core * (cores or os.cpu_count() or 1), total // _LEAST_ROWS_A_PARTITION)
    share = total / max(1, most)
    groups: list[list[lance.LanceFragment]] = [[]]
    in_group = 0
    for fragment, its_rows in zip(fragments, rows, strict=True):
        if in_group >= share:
            groups.append([])
            in_group = 0
        groups[-1].append(fragment)
        in_group += its_rows
    return [tuple(group) for group in groups]
