"""The protobuf messages of a Lance manifest, as far as this package reads them.

Field numbers are those of Lance's `table.proto` and `rowids.proto`; fields that are not
declared here are skipped by the parser.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .message_set import MessageSet

# As `MessageSet` takes them.
_MESSAGES: Final[Mapping[str, Mapping[str, tuple[int, str]]]] = {
    "Manifest": {
        "fields": (1, "Field*"),
        "fragments": (2, "DataFragment*"),
        "version": (3, "uint64"),
        "index_section": (6, "uint64?"),
        "reader_feature_flags": (9, "uint64"),
        "base_paths": (18, "BasePath*"),
        "branch": (20, "string?"),
    },
    "Field": {
        "name": (2, "string"),
        "id": (3, "int32"),
        "parent_id": (4, "int32"),
        "logical_type": (5, "string"),
    },
    "BasePath": {
        "id": (1, "uint32"),
        "is_dataset_root": (3, "bool"),
        "path": (4, "string"),
    },
    "DataFragment": {
        "id": (1, "uint64"),
        "files": (2, "DataFile*"),
        "deletion_file": (3, "DeletionFile"),
        "physical_rows": (4, "uint64"),
        "inline_row_ids": (5, "bytes?"),
        "external_row_ids": (6, "ExternalFile"),
        "overlays": (11, "DataOverlayFile*"),
    },
    "DataFile": {"path": (1, "string"), "fields": (2, "int32*"), "base_id": (7, "uint32?")},
    "DeletionFile": {
        "file_type": (1, "uint32"),
        "read_version": (2, "uint64"),
        "id": (3, "uint64"),
        "num_deleted_rows": (4, "uint64"),
        "base_id": (7, "uint32?"),
    },
    "ExternalFile": {"path": (1, "string"), "offset": (2, "uint64"), "size": (3, "uint64")},
    "DataOverlayFile": {"data_file": (1, "DataFile"), "committed_version": (3, "uint64")},
    "IndexSection": {"indices": (1, "IndexMetadata*")},
    "IndexMetadata": {
        "uuid": (1, "UUID"),
        "fields": (2, "int32*"),
        "name": (3, "string"),
        "dataset_version": (4, "uint64"),
        "fragment_bitmap": (5, "bytes?"),
        "index_details": (6, "Any"),
        "index_version": (7, "int32?"),
        "created_at": (8, "uint64?"),
        "base_id": (9, "uint32?"),
        "files": (10, "IndexFile*"),
    },
    "UUID": {"uuid": (1, "bytes")},
    "Any": {"type_url": (1, "string"), "value": (2, "bytes")},
    "IndexFile": {"path": (1, "string"), "size_bytes": (2, "uint64")},
    "RowIdSequence": {"segments": (1, "U64Segment*")},
    "U64Segment": {
        "range": (1, "Range"),
        "range_with_holes": (2, "RangeWithHoles"),
        "range_with_bitmap": (3, "RangeWithBitmap"),
        "sorted_array": (4, "EncodedU64Array"),
        "array": (5, "EncodedU64Array"),
    },
    "Range": {"start": (1, "uint64"), "end": (2, "uint64")},
    "RangeWithHoles": {
        "start": (1, "uint64"),
        "end": (2, "uint64"),
        "holes": (3, "EncodedU64Array"),
    },
    "RangeWithBitmap": {"start": (1, "uint64"), "end": (2, "uint64"), "bitmap": (3, "bytes")},
    "EncodedU64Array": {
        "u16_array": (1, "OffsetArray"),
        "u32_array": (2, "OffsetArray"),
        "u64_array": (3, "ValueArray"),
    },
    "OffsetArray": {"base": (1, "uint64"), "offsets": (2, "bytes")},
    "ValueArray": {"values": (2, "bytes")},
}

_SET: Final = MessageSet("datafusion_lance.manifest", _MESSAGES)


def parse(message_name: str, data: bytes) -> Any:
    """The message `message_name` in `data`; raises `ValueError` where it is not one.

    Typed as `Any`: its attributes are the fields of that message above.
    """
    return _SET.parse(message_name, data)
