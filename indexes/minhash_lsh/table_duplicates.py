"""The near duplicates of a version of a table: `minhash_pairs` and `minhash_clusters` over it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..manifest import LanceIndex
from ..search_stats import SearchStats
from .clusters import CLUSTERS_SCHEMA, cluster_batches
from .details import parameters_of
from .documents import Documents
from .duplicates import MAX_BUCKET, Duplicates, report_for
from .duplicates_report import DuplicatesReport
from .pairs import PAIRS_SCHEMA, pair_batches
from .parameters import MinHashParameters
from .table_documents import indexed_documents, scanned_documents

if TYPE_CHECKING:
    from ..snapshot import Snapshot

Compute = Callable[[Documents, int, DuplicatesReport], Generator[pa.RecordBatch, None, None]]


@dataclass(frozen=True, slots=True)
class UnindexedColumn:
    """A text column that no index is used for, and how to sign it."""

    column: str
    parameters: MinHashParameters


def pairs(
    indexed: LanceIndex | UnindexedColumn,
    snapshot: Snapshot,
    max_distance: Any,
    *,
    max_bucket: Any = MAX_BUCKET,
    stats: SearchStats | None = None,
) -> Duplicates:
    """`minhash_pairs` of all rows of a version of a table.

    `indexed` is a MinHash index, or a column with parameters.
    Fragments that the index does not answer for are scanned and their texts signed. Row ids are
    the ones that the table gives in `_rowid`. No file is read before the first batch is asked for.

    Raises `InvalidArgumentError` as `minhash_pairs` does, and `UnusableIndexError` where the index
    cannot be used; reading the batches raises `CorruptIndexError` for a damaged file.
    """
    return _duplicates(
        PAIRS_SCHEMA, pair_batches, indexed, snapshot, max_distance, max_bucket, stats
    )


def clusters(
    indexed: LanceIndex | UnindexedColumn,
    snapshot: Snapshot,
    max_distance: Any,
    *,
    max_bucket: Any = MAX_BUCKET,
    stats: SearchStats | None = None,
) -> Duplicates:
    """`minhash_clusters` of all rows of a version of a table; the rest is as in `pairs`."""
    return _duplicates(
        CLUSTERS_SCHEMA, cluster_batches, indexed, snapshot, max_distance, max_bucket, stats
    )


def _duplicates(
    schema: pa.Schema,
    compute: Compute,
    indexed: LanceIndex | UnindexedColumn,
    snapshot: Snapshot,
    max_distance: Any,
    max_bucket: Any,
    stats: SearchStats | None,
) -> Duplicates:
    if isinstance(indexed, UnindexedColumn):
        parameters = indexed.parameters
    else:
        parameters = parameters_of(indexed)
    report = report_for(parameters.num_hashes, parameters.num_bands, max_distance, max_bucket)

    def batches() -> Generator[pa.RecordBatch, None, None]:
        if isinstance(indexed, UnindexedColumn):
            documents = scanned_documents(indexed.column, snapshot, parameters)
        else:
            documents = indexed_documents(indexed, snapshot, parameters, stats or SearchStats())
        yield from compute(documents, max_bucket, report)

    return Duplicates(schema, batches(), report)
