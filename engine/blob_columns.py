"""Blob columns: Lance hands out a blob's place unless asked for its bytes."""

from __future__ import annotations

import lance
import pyarrow as pa

_ENCODING = b"lance-encoding:blob"
_EXTENSION = "lance.blob"


def table_schema(dataset: lance.LanceDataset) -> pa.Schema:
    """The dataset's schema, but with blobs as the binaries that a scan for bytes gives."""
    schema = dataset.schema
    if not any(map(holds_blob, schema)):
        return schema
    return dataset.scanner(blob_handling="all_binary").projected_schema


def holds_blob(field: pa.Field) -> bool:
    """Whether the column or a part of it is a blob."""
    kind = field.type
    if isinstance(kind, pa.BaseExtensionType):
        return kind.extension_name.startswith(_EXTENSION)
    if field.metadata is not None and _ENCODING in field.metadata:
        return True
    return any(holds_blob(kind.field(at)) for at in range(kind.num_fields))
