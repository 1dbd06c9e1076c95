"""A DataFusion table that holds the rows which a query finds in the indexes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset

from ..indexes.evaluation import evaluate
from ..indexes.query import Nearest, Query, leaves
from ..indexes.row_set import RowSet
from ..indexes.snapshot import Snapshot
from .fetch_stats import ScanStats
from .lance_table import LanceTable, projected
from .pushed_filter import HandedOver, Literal, Predicate, PushedFilter
from .row_counts import counted

# What one take reads; below, a second partition only adds its overhead.
_ONE_PARTITION_ROWS = 8192


class IndexScan(pyarrow.dataset.Dataset):
    """The rows of `covered` fragments on which `query` is TRUE (or may be: `query.exact`).

    Planning reads no file: the partitions are groups of the covered fragments. The first
    partition to run searches the indexes, on whatever thread that is; the others wait for its
    answer. Few rows are all read by the first partition, in one go; of many each partition
    reads those in its own fragments. A version of a table never changes, so running a plan
    again uses the answer again. An error of the search is raised in every partition.

    A query for the nearest rows has cut off others, which would have taken the place of those
    that a filter handed over drops; then all covered rows are read. With `foreseen` the query
    has itself looked at every filter that is handed over.
    """

    def __init__(
        self,
        table: LanceTable,
        snapshot: Snapshot,
        query: Query,
        covered: frozenset[int],
        *,
        foreseen: bool = False,
    ) -> None:
        self.table = table
        self.snapshot = snapshot
        self.query = query
        self.covered = covered
        self.stats = ScanStats()
        self._may_be_filtered = foreseen or next(leaves(query, Nearest), None) is None
        # The table's schema without its looking: whoever watches the table is not to see this.
        self._schema = table.full_schema
        self._lock = threading.Lock()
        self._found: RowSet | None = None
        self._error: Exception | None = None

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        filter: PushedFilter = None,
        batch_size: int | None = None,
        **_ignored: Any,
    ) -> IndexPartitionScan:
        """All rows in one partition; nothing is read before they are iterated."""
        return IndexPartitionScan(self, 0, None, columns, HandedOver(filter), batch_size)

    def get_fragments(self, filter: PushedFilter = None) -> list[IndexPartition]:
        """The partitions: groups of covered fragments."""
        handed = HandedOver(filter)
        return [
            IndexPartition(self, number, group & self.covered, handed)
            for number, group in enumerate(self.table.groups_of_cores)
        ]

    @property
    def error(self) -> Exception | None:
        """What the search raised; None where it found its rows or has not run."""
        return self._error

    def found(self) -> RowSet:
        """The rows, searched for once; every later call gets the same rows or error."""
        with self._lock:
            if self._error is not None:
                raise self._error
            if self._found is None:
                self.stats.metered(self.table.row_reader.meter)
                try:
                    answer = evaluate(self.query, self.snapshot, self.covered, self.stats)
                except Exception as error:
                    self._error = error
                    raise
                self._found = answer.true
                self.stats.measure()
            return self._found

    def found_before(self, predicate: Predicate | None) -> RowSet:
        """The rows from which those are taken that pass a filter that was handed over."""
        if predicate is None or self._may_be_filtered:
            return self.found()
        return self.snapshot.live_rows(self.covered)

    def __repr__(self) -> str:
        return f"IndexScan({self.table!r}, {self.query})"


class IndexPartition:
    """The found rows of some fragments (None: all), as DataFusion asks for them."""

    def __init__(
        self,
        scan: IndexScan,
        number: int,
        fragment_ids: frozenset[int] | None,
        handed: HandedOver,
    ) -> None:
        self._scan = scan
        self._number = number
        self._fragment_ids = fragment_ids
        self._handed = handed

    def scanner(
        self,
        schema: pa.Schema | None = None,
        columns: Sequence[str] | None = None,
        filter: PushedFilter = None,
        batch_size: int | None = None,
    ) -> IndexPartitionScan:
        handed = self._handed.again(filter)
        return IndexPartitionScan(
            self._scan, self._number, self._fragment_ids, columns, handed, batch_size
        )


class IndexPartitionScan:
    """One run of one partition."""

    def __init__(
        self,
        scan: IndexScan,
        number: int,
        fragment_ids: frozenset[int] | None,
        columns: Sequence[str] | None,
        handed: HandedOver,
        batch_size: int | None,
    ) -> None:
        self._scan = scan
        self._number = number
        self._fragment_ids = fragment_ids
        self._handed = handed
        self._batch_size = batch_size
        self.projected_schema = projected(scan.schema, columns)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Batches as they are read; closing the iterator ends the reading."""
        for batch in self._read():
            self._scan.stats.returned(batch.num_rows)
            yield batch

    def _read(self) -> Iterator[pa.RecordBatch]:
        scan, schema, predicate = self._scan, self.projected_schema, self._handed.predicate
        if isinstance(predicate, Literal):
            # FALSE or NULL: a filter that is TRUE is none.
            return
        rows = scan.found_before(predicate)
        if not rows:
            return
        if len(schema) == 0 and predicate is None:
            if self._number == 0:
                started = time.perf_counter()
                yield from counted(len(rows))
                scan.stats.fetched("count", 0, 0, time.perf_counter() - started)
            return
        if len(rows) <= _ONE_PARTITION_ROWS:
            if self._number > 0:
                return
        elif self._fragment_ids is not None:
            rows = rows.restrict(self._fragment_ids)
        reader = scan.table.row_reader
        # A filter that was handed over may have taken the search's place.
        scan.stats.metered(reader.meter)
        yield from reader.fetch(rows, schema, predicate, self._batch_size, scan.stats.fetched)

    def to_table(self) -> pa.Table:
        return pa.Table.from_batches(self.to_batches(), self.projected_schema)
