"""The two files of a BTree over binary values: names, schemas and metadata."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

PAGE_DATA: Final = "page_data.lance"
PAGE_LOOKUP: Final = "page_lookup.lance"

BATCH_SIZE: Final = b"batch_size"
RANGE_PARTITIONED: Final = b"range_partitioned"

PAGE_ROWS: Final = 4096
"""Entries in a page, as pylance writes them."""

PAGE_DATA_SCHEMA: Final = pa.schema(
    [
        pa.field("values", pa.binary(), nullable=True),
        pa.field("ids", pa.uint64(), nullable=False),
    ]
)
"""One row for each element, sorted by `values`, NULLs first."""

PAGE_LOOKUP_SCHEMA: Final = pa.schema(
    [
        pa.field("min", pa.binary(), nullable=True),
        pa.field("max", pa.binary(), nullable=True),
        pa.field("null_count", pa.uint32(), nullable=False),
        pa.field("page_idx", pa.uint32(), nullable=False),
    ],
    metadata={BATCH_SIZE: str(PAGE_ROWS).encode(), RANGE_PARTITIONED: b"false"},
)
"""One row for each page. The least value of a page that holds a NULL is NULL."""
