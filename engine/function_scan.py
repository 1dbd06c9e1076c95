"""What a table function of this package gives: a DataFusion table that is made when it runs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset

from .fetch_stats import ScanStats
from .fragment_scan import kept_rows, read_columns, shaped
from .lance_table import projected
from .pushed_filter import HandedOver, Literal, PushedFilter
from .registry import RegisteredTable
from .scan_identity import stand_in, touched


class FunctionScan(pyarrow.dataset.Dataset):
    """The rows of a call, in one partition; planning makes none of them.

    A filter that DataFusion hands over is applied to the rows of the call, which are the same
    with it and without it. `error` is what the last run raised, None where it raised nothing.
    `notes` are for EXPLAIN.
    """

    notes: tuple[str, ...] = ()

    def __init__(self, table: RegisteredTable, schema: pa.Schema) -> None:
        self.table = table
        self.stats = ScanStats()
        self.error: Exception | None = None
        self._schema = schema

    @property
    def schema(self) -> pa.Schema:
        touched(self)
        return self._schema

    @property
    @abstractmethod
    def entries(self) -> tuple[tuple[str, str], ...] | None:
        """What EXPLAIN says of the call, by key; None where no index takes part."""

    @property
    def measures(self) -> tuple[tuple[str, str], ...]:
        """What the last run did beside what `stats` counts, by key."""
        return ()

    @abstractmethod
    def rows(self, schema: pa.Schema, batch_size: int | None) -> Iterator[pa.RecordBatch]:
        """All rows of the call, in its order; of their columns those of `schema`.

        A schema without fields gives batches that have rows but no columns.
        """

    @abstractmethod
    def again(self) -> FunctionScan:
        """The same call, not run yet."""

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        filter: PushedFilter = None,
        batch_size: int | None = None,
        **_ignored: Any,
    ) -> FunctionRun:
        touched(self)
        return FunctionRun(self, columns, HandedOver(filter), batch_size)

    def get_fragments(self, filter: PushedFilter = None) -> list[Any]:
        touched(self)
        other = stand_in(self)
        if other is not None:
            return other.get_fragments(filter)
        return [_Partition(self, HandedOver(filter))]


class _Partition:
    """The whole of a call, as DataFusion asks for it."""

    def __init__(self, scan: FunctionScan, handed: HandedOver) -> None:
        self._scan = scan
        self._handed = handed

    def scanner(
        self,
        schema: pa.Schema | None = None,
        columns: Sequence[str] | None = None,
        filter: PushedFilter = None,
        batch_size: int | None = None,
    ) -> FunctionRun:
        return FunctionRun(self._scan, columns, self._handed.again(filter), batch_size)


class FunctionRun:
    """One run of a call."""

    def __init__(
        self,
        scan: FunctionScan,
        columns: Sequence[str] | None,
        handed: HandedOver,
        batch_size: int | None,
    ) -> None:
        self._scan = scan
        self._handed = handed
        self._batch_size = batch_size
        self.dataset_schema = scan._schema
        self.projected_schema = projected(scan._schema, columns)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Batches as they are made; closing the iterator ends the run."""
        scan = self._scan
        scan.error = None
        try:
            for batch in self._passing():
                if batch.num_rows:
                    scan.stats.returned(batch.num_rows)
                    yield batch
        except Exception as error:
            scan.error = error
            raise

    def _passing(self) -> Iterator[pa.RecordBatch]:
        predicate = self._handed.predicate
        if isinstance(predicate, Literal):
            # FALSE or NULL: a filter that is TRUE is none.
            return
        names = read_columns(self.projected_schema, predicate)
        read = projected(self._scan._schema, names)
        for batch in self._scan.rows(read, self._batch_size):
            yield shaped(kept_rows(batch, predicate), self.projected_schema)

    def to_table(self) -> pa.Table:
        return pa.Table.from_batches(self.to_batches(), self.projected_schema)
