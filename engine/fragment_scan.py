"""Reads some fragments of a Lance dataset through Lance's own scanner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import lance
import pyarrow as pa

from .predicate_kernels import keep
from .pushed_filter import Predicate, columns_of
from .row_counts import counted, without_columns

ROW_ID = "_rowid"


def scan_fragments(
    dataset: lance.LanceDataset,
    fragments: Sequence[lance.LanceFragment],
    schema: pa.Schema,
    predicate: Predicate | None,
    batch_size: int | None,
) -> Iterator[pa.RecordBatch]:
    """The rows of `fragments` on which `predicate` is TRUE, as batches of `schema`.

    `schema` names the columns to read, `_rowid` among them for the row ids; one without fields
    gives batches that have rows but no columns. At most `batch_size` rows a batch.
    """
    if not fragments:
        return
    if len(schema) == 0 and predicate is None:
        yield from counted(sum(fragment.count_rows() for fragment in fragments))
        return
    read = list(schema.names)
    if predicate is not None:
        read += [name for name in columns_of(predicate) if name not in read]
    scanner = dataset.scanner(
        columns=[name for name in read if name != ROW_ID],
        with_row_id=ROW_ID in read or not read,
        fragments=list(fragments),
        batch_size=batch_size,
        blob_handling="all_binary",
    )
    for batch in scanner.to_reader():
        passing = kept_rows(batch, predicate)
        if passing.num_rows:
            yield shaped(passing, schema)


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
    columns = [batch.column(batch.schema.get_field_index(name)) for name in schema.names]
    typed = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(typed, schema=schema)
