"""Batches that have rows but no columns: what `COUNT(*)` needs of a table."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

# DataFusion makes an array of each batch's length to count it, so a batch is bounded; below
# 100,000 rows the cost of handing over a batch shows.
ROWS_A_BATCH = 1 << 17


def without_columns(rows: int, schema: pa.Schema | None = None) -> pa.RecordBatch:
    """One batch of `rows` rows and no columns."""
    structs = pa.StructArray.from_buffers(pa.struct([]), rows, [None])
    batch = pa.RecordBatch.from_struct_array(structs)
    return batch if schema is None else batch.replace_schema_metadata(schema.metadata)


def counted(rows: int) -> Iterator[pa.RecordBatch]:
    """`rows` rows without columns, in batches of bounded length; none for no rows."""
    while rows > 0:
        yield without_columns(min(rows, ROWS_A_BATCH))
        rows -= ROWS_A_BATCH
