"""`minhash_pairs` and `minhash_clusters`: the near duplicates of a whole table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from ..indexes.manifest import LanceIndex
from ..indexes.minhash_lsh.clusters import CLUSTERS_SCHEMA
from ..indexes.minhash_lsh.details import KIND
from ..indexes.minhash_lsh.duplicates import MAX_BUCKET, Duplicates, report_for
from ..indexes.minhash_lsh.duplicates_report import DuplicatesReport
from ..indexes.minhash_lsh.pairs import PAIRS_SCHEMA
from ..indexes.minhash_lsh.table_duplicates import UnindexedColumn, clusters, pairs
from .function_call import FunctionCall, check_text_column
from .function_scan import FunctionScan
from .minhash_arguments import CLUSTERS, PAIRS, literals, text_of
from .minhash_binding import bound_index, covered_by, without_index
from .registry import RegisteredTable
from .row_counts import without_columns
from .scan_label import fragments_in


@dataclass(frozen=True, slots=True)
class DuplicatesFunction:
    """One of the two functions: its name, what it gives, and what computes that.

    Where `gives_pairs`, the pairs that are folded away are missing in the result.
    """

    name: str
    schema: pa.Schema
    compute: Callable[..., Duplicates]
    gives_pairs: bool

    def bound(self, call: FunctionCall) -> DuplicatesScan:
        """The scan of a call `(table, column, max_distance[, max_bucket])`.

        Raises InvalidArgumentError for arguments that are out of their ranges, and
        UnusableIndexError where the column has no index but such as cannot be used.
        """
        given = literals(
            self.name, call.arguments, ("table", "column", "max_distance"), ("max_bucket",)
        )
        column = text_of("column", given["column"])
        table = call.table(text_of("table", given["table"]))
        check_text_column(table, column)
        index, parameters = bound_index(table, column, call.use_indexes)
        max_distance = given["max_distance"]
        if isinstance(max_distance, Decimal):
            max_distance = float(max_distance)
        max_bucket = MAX_BUCKET if given["max_bucket"] is None else given["max_bucket"]
        report = report_for(parameters.num_hashes, parameters.num_bands, max_distance, max_bucket)
        indexed = index if call.use_indexes else None
        notes = ()
        if index is None and call.use_indexes:
            notes = (without_index(table, column, f"{self.name} signs every row"),)
        return DuplicatesScan(
            self,
            table,
            column,
            indexed or UnindexedColumn(column, parameters),
            max_distance,
            max_bucket,
            report,
            notes,
        )


DUPLICATES: Final = (
    DuplicatesFunction(PAIRS, PAIRS_SCHEMA, pairs, gives_pairs=True),
    DuplicatesFunction(CLUSTERS, CLUSTERS_SCHEMA, clusters, gives_pairs=False),
)


class DuplicatesScan(FunctionScan):
    """Pairs or clusters as they are computed, anew in each run; `report` is of the last one."""

    def __init__(
        self,
        function: DuplicatesFunction,
        table: RegisteredTable,
        column: str,
        indexed: LanceIndex | UnindexedColumn,
        max_distance: Any,
        max_bucket: Any,
        report: DuplicatesReport,
        notes: tuple[str, ...],
    ) -> None:
        super().__init__(table, function.schema)
        self.function = function
        self.column = column
        self.indexed = indexed
        self.max_distance = max_distance
        self.max_bucket = max_bucket
        self.report = report
        self.notes = notes

    @property
    def entries(self) -> tuple[tuple[str, str], ...] | None:
        if isinstance(self.indexed, UnindexedColumn):
            return None
        report = self.report
        exact = report.bound_is_complete and report.pairs_skipped == 0
        if self.function.gives_pairs:
            exact = exact and report.pairs_folded == 0
        entries = {
            "index": self.indexed.name,
            "kind": KIND,
            "query": f"{self.function.name}({self.column}, {self.max_distance})",
            "answer": "exact" if exact else "approximate",
        }
        uncovered = self.table.shown_fragments - covered_by(self.indexed, self.table)
        if uncovered:
            entries["uncovered_fragments"] = fragments_in(uncovered)
        return tuple(entries.items())

    @property
    def measures(self) -> tuple[tuple[str, str], ...]:
        report = self.report
        counts = {
            "documents": report.documents,
            "different_signatures": report.signatures,
            "signature_pairs_compared": report.compared,
            "large_buckets": report.large_bucket_count,
            "pairs_folded": report.pairs_folded,
            "pairs_skipped": report.pairs_skipped,
        }
        return tuple((name, str(count)) for name, count in counts.items())

    def again(self) -> DuplicatesScan:
        return DuplicatesScan(
            self.function,
            self.table,
            self.column,
            self.indexed,
            self.max_distance,
            self.max_bucket,
            self.report,
            self.notes,
        )

    def rows(self, schema: pa.Schema, batch_size: int | None) -> Iterator[pa.RecordBatch]:
        found = self.function.compute(
            self.indexed,
            self.table.snapshot,
            self.max_distance,
            max_bucket=self.max_bucket,
            stats=self.stats,
        )
        self.report = found.report
        try:
            for batch in found.batches:
                yield batch.select(schema.names) if len(schema) else without_columns(batch.num_rows)
        finally:
            found.batches.close()
