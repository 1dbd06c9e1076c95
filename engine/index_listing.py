"""The indexes of Lance tables as rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
from datafusion import SessionContext

from ..indexes.description import describe_indexes
from ..rewrites.names import quoted
from .registry import RegisteredTable, find_table

SCHEMA: Final = pa.schema(
    [
        pa.field("table", pa.string(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("column", pa.string()),
        pa.field("keys", pa.list_(pa.field("item", pa.string(), nullable=False)), nullable=False),
        pa.field("parameters", pa.map_(pa.string(), pa.string()), nullable=False),
        pa.field("segments", pa.uint64(), nullable=False),
        pa.field("covered_fragments", pa.uint64(), nullable=False),
        pa.field("uncovered_fragments", pa.uint64(), nullable=False),
        pa.field("covered_rows", pa.uint64(), nullable=False),
        pa.field("uncovered_rows", pa.uint64(), nullable=False),
        pa.field("bytes", pa.uint64()),
        pa.field("unusable", pa.string()),
    ]
)
"""What `LanceSessionContext.lance_indexes` and SHOW INDEXES return."""

_PLAIN_NAME: Final = re.compile(r"[a-z_][a-z0-9_]*")


def listing(tables: Iterable[tuple[str, RegisteredTable]]) -> pa.RecordBatch:
    """A row of `SCHEMA` for each index of the tables, which come with the names to show."""
    rows: list[dict[str, Any]] = []
    for name, table in tables:
        for index in describe_indexes(table.snapshot):
            rows.append(
                {
                    "table": name,
                    "name": index.name,
                    "kind": index.kind,
                    "column": index.column,
                    "keys": list(index.keys),
                    "parameters": list(index.parameters),
                    "segments": index.segments,
                    "covered_fragments": index.covered_fragments,
                    "uncovered_fragments": index.uncovered_fragments,
                    "covered_rows": index.covered_rows,
                    "uncovered_rows": index.uncovered_rows,
                    "bytes": index.size_bytes,
                    "unusable": index.unusable,
                }
            )
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def readable(parts: Iterable[str]) -> str:
    """A reference in SQL, with quotes where it needs them.

    >>> print(readable(("public", "My images")))
    public."My images"
    """
    return ".".join(p if _PLAIN_NAME.fullmatch(p) else quoted((p,)) for p in parts)


def lance_tables(context: SessionContext) -> Iterator[tuple[str, RegisteredTable]]:
    """The Lance tables in all catalogs of the context, by name, each as short as SQL finds it."""
    for catalog_name in sorted(context.catalog_names()):
        catalog = context.catalog(catalog_name)
        for schema_name in sorted(catalog.schema_names()):
            for table_name in sorted(catalog.schema(schema_name).table_names()):
                parts = (catalog_name, schema_name, table_name)
                table = find_table(context, quoted(parts))
                if table is not None:
                    yield _shortest(context, parts, table), table


def _shortest(context: SessionContext, parts: tuple[str, ...], table: RegisteredTable) -> str:
    for start in (2, 1):
        if find_table(context, quoted(parts[start:])) is table:
            return readable(parts[start:])
    return readable(parts)
