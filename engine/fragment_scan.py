"""Reads some fragments of a Lance dataset through Lance's own scanner."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import lance
import pyarrow as pa

from .fetch_cost import rows_a_read
from .lance_filter import split_filter
from .predicate_kernels import keep
from .pushed_filter import Predicate, columns_of
from .row_counts import counted, without_columns

ROW_ID = "_rowid"

_DEFAULT_BATCH_ROWS = 8192

# Lance reads ahead of the consumer by this much in each scan; its default is 2 GiB, with which
# 1.8 GB of vectors were in memory all at once, and no faster.
_READ_AHEAD_BYTES = 32 << 20


def scan_fragments(
    dataset: lance.LanceDataset,
    fragments: Sequence[lance.LanceFragment],
    schema: pa.Schema,
    predicate: Predicate | None,
    batch_size: int | None,
    zone_mapped: Callable[[], frozenset[str]],
) -> Iterator[pa.RecordBatch]:
    """The rows of `fragments` on which `predicate` is TRUE, as batches of `schema`.

    `schema` names the columns to read, `_rowid` among them for the row ids; one without fields
    gives batches that have rows but no columns. `zone_mapped` names the columns with a zone
    map (see `split_filter`).
    """
    if not fragments:
        return
    if len(schema) == 0 and predicate is None:
        yield from counted(sum(fragment.count_rows() for fragment in fragments))
        return
    stored = dataset.schema.append(pa.field(ROW_ID, pa.uint64()))
    split = split_filter(predicate, stored, zone_mapped)
    columns = read_columns(schema, split.rest)
    if not columns:
        if split.rest is None or keep(split.rest, without_columns(1)) is True:
            scanner = dataset.scanner(filter=split.sql, fragments=list(fragments))
            yield from counted(scanner.count_rows())
        return
    types = [stored.field(name).type for name in columns]
    rows = rows_a_read(types, batch_size or _DEFAULT_BATCH_ROWS)
    scanner = open_scan(dataset, fragments, columns, rows, sql=split.sql)
    for batch in scanner.to_reader():
        passing = kept_rows(batch, split.rest)
        if passing.num_rows:
            yield shaped(passing, schema)


def read_columns(schema: pa.Schema, predicate: Predicate | None) -> list[str]:
    """The columns to read for those of `schema` and a predicate on the batches."""
    columns = dict.fromkeys(schema.names)
    if predicate is not None:
        columns.update(dict.fromkeys(columns_of(predicate)))
    return list(columns)


def open_scan(
    dataset: lance.LanceDataset,
    fragments: Sequence[lance.LanceFragment] | None,
    columns: Sequence[str],
    batch_rows: int,
    *,
    sql: str | None = None,
    row_ids: bytes | None = None,
) -> lance.LanceScanner:
    """Lance's scanner over `fragments` (None: all), in their order, blobs as their bytes.

    `sql` filters in Lance's dialect; `row_ids` is a serialized set of the rows to read.
    """
    stored = [name for name in columns if name != ROW_ID]
    return dataset.scanner(
        # In a list, `*` means every column.
        columns={name: f"`{name}`" for name in stored} if "*" in stored else stored,
        with_row_id=ROW_ID in columns,
        filter=sql,
        fragments=None if fragments is None else list(fragments),
        batch_size=batch_rows,
        io_buffer_size=_READ_AHEAD_BYTES,
        scan_in_order=True,
        blob_handling="all_binary",
        row_addr_allowlist=row_ids,
    )


def kept_rows(batch: pa.RecordBatch, predicate: Predicate | None) -> pa.RecordBatch:
    """The rows of `batch` on which `predicate` is TRUE."""
    if predicate is None:
        return batch
    kept = keep(predicate, batch)
    if isinstance(kept, bool):
        return batch if kept else batch.slice(0, 0)
    return batch.filter(kept)


def shaped(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns that `schema` names, in its order and types."""
    if len(schema) == 0:
        return without_columns(batch.num_rows)
    if batch.schema.equals(schema, check_metadata=True):
        return batch
    columns = [batch.column(batch.schema.get_field_index(name)) for name in schema.names]
    typed = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(typed, schema=schema)
