"""Label list indexes written by hand, so that they can be what pylance would not write."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import lance
import pyarrow as pa
from lance.bitmap import Bitmap
from lance.dataset import Index, IndexFile, LanceOperation
from lance.file import LanceFileWriter
from pyroaring import BitMap

FILE = "bitmap_page_lookup.lance"
_DETAILS = ("/lance.table.LabelListIndexDetails", b"")

Rows = Mapping[int, Sequence[int] | None]
"""Row offsets by fragment; None stands for the whole fragment."""


def row_addr_tree_map(rows: Rows) -> bytes:
    """The portable form of a row set."""
    parts = [struct.pack("<I", len(rows))]
    for fragment, offsets in rows.items():
        data = b"" if offsets is None else BitMap(offsets).serialize()
        parts.append(struct.pack("<II", fragment, len(data)) + data)
    return b"".join(parts)


@dataclass
class WrittenSegment:
    """A segment to write: postings by label in the file's order, and its metadata."""

    postings: list[tuple[object, Rows | bytes]]
    fragments: set[int]
    null_lists: Rows | bytes = field(default_factory=dict)
    key_type: pa.DataType = field(default_factory=pa.string)
    names: tuple[str, str] = ("keys", "bitmaps")
    bitmap_type: pa.DataType = field(default_factory=pa.binary)
    nulls_metadata: str | None = None
    index_version: int = 1
    dataset_version: int | None = None
    details: tuple[str, bytes] = _DETAILS
    fields: list[int] | None = None

    def write(self, path: Path) -> int:
        """Write the file; returns its size in bytes."""
        bitmaps = [p if isinstance(p, bytes) else row_addr_tree_map(p) for _, p in self.postings]
        keys = pa.array([key for key, _ in self.postings], self.key_type)
        columns = {self.names[0]: keys, self.names[1]: pa.array(bitmaps, self.bitmap_type)}
        table = pa.table(columns)
        nulls = self.null_lists
        with LanceFileWriter(str(path), table.schema) as writer:
            for batch in table.to_batches():
                writer.write_batch(batch)
            buffer = writer.add_global_buffer(
                nulls if isinstance(nulls, bytes) else row_addr_tree_map(nulls)
            )
            named = str(buffer) if self.nulls_metadata is None else self.nulls_metadata
            if named:
                writer.add_schema_metadata("lance:label_list_nulls", named)
        return path.stat().st_size


def commit_index(
    dataset: lance.LanceDataset, *segments: WrittenSegment, name: str = "tags_idx"
) -> lance.LanceDataset:
    """Add the segments to the table as one index on `tags`; returns the new version."""
    root = Path(dataset.uri)
    (tags,) = (f.id() for f in dataset.lance_schema.fields() if f.name() == "tags")
    entries: list[Index] = []
    for segment in segments:
        key = str(uuid.uuid4())
        path = root / "_indices" / key / FILE
        path.parent.mkdir(parents=True)
        size = segment.write(path)
        entries.append(
            Index(
                uuid=key,
                name=name,
                fields=[tags] if segment.fields is None else segment.fields,
                dataset_version=segment.dataset_version or dataset.version,
                fragment_ids=Bitmap(segment.fragments),
                index_version=segment.index_version,
                files=[IndexFile(FILE, size)],
                index_details=segment.details,
            )
        )
    operation = LanceOperation.CreateIndex(entries, [])
    return lance.LanceDataset.commit(root, operation, read_version=dataset.version)
