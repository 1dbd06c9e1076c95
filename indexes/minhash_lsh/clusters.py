"""`minhash_clusters`: the near duplicates of a table as groups of rows."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from .components import Components
from .documents import Documents
from .duplicates import BATCH_ROWS, MAX_BUCKET, Duplicates, entries_at_once, report_for
from .duplicates_report import DuplicatesReport
from .identical import identical
from .near_pairs import NearPairs
from .ranges import runs, slices, within

CLUSTERS_SCHEMA: Final = pa.schema(
    [
        pa.field("row_id", pa.uint64(), nullable=False),
        pa.field("cluster_id", pa.uint64(), nullable=False),
    ]
)


def minhash_clusters(
    documents: Documents, max_distance: Any, *, max_bucket: Any = MAX_BUCKET
) -> Duplicates:
    """The connected components of the graph whose edges are the pairs of `minhash_pairs`.

    The columns are `row_id` and `cluster_id` (uint64), the smallest row id of the component, and
    never NULL; rows are ordered by both. Only rows that have a duplicate are given, so that an
    anti join with this result finds the others, and `row_id <> cluster_id` those that can go.
    Two rows of a component may be further apart than `max_distance`: a chain of pairs joins them.

    What pairs are found, and what becomes of texts that occur very often, is as `minhash_pairs`
    says; but rows with identical signatures are always in one component, at no cost, and pairs
    within a component that is known already are not compared. Nothing is given before all pairs
    were looked at. Holds about 20 bytes a row, and less than 100 MiB besides.

    Raises `InvalidArgumentError` unless 0 <= max_distance <= 1 and max_bucket >= 2.
    """
    report = report_for(documents.num_hashes, documents.num_bands, max_distance, max_bucket)
    return Duplicates(CLUSTERS_SCHEMA, cluster_batches(documents, max_bucket, report), report)


def cluster_batches(
    documents: Documents, max_bucket: int, report: DuplicatesReport
) -> Generator[pa.RecordBatch, None, None]:
    """The batches of `minhash_clusters`, whose arguments were checked; fills the report."""
    at_once = entries_at_once(documents)
    groups = identical(documents, at_once)
    report.documents = groups.documents
    report.signatures = groups.signatures
    components = Components(len(documents))
    components.join(np.repeat(groups.firsts, groups.sizes), groups.in_order)
    for near in NearPairs(documents, groups, max_bucket, at_once, report, components.joined):
        components.join(near.left, near.right)
    del groups
    labels = components.labels()
    order = np.argsort(labels, kind="stable")
    starts, sizes = runs(labels[order])
    several = sizes > 1
    starts, sizes = starts[several], sizes[several]
    row_ids = documents.row_ids[order[within(starts, sizes)]]
    del labels, order
    if len(row_ids) == 0:
        return
    smallest = np.minimum.reduceat(row_ids, np.cumsum(sizes) - sizes)
    cluster_ids = np.repeat(smallest, sizes)
    sequence = np.lexsort((row_ids, cluster_ids))
    for here in slices(len(sequence), BATCH_ROWS):
        rows = sequence[here]
        columns = [pa.array(row_ids[rows]), pa.array(cluster_ids[rows])]
        report.rows_given += len(rows)
        yield pa.RecordBatch.from_arrays(columns, schema=CLUSTERS_SCHEMA)
