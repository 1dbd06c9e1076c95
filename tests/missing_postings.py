"""Copies of Lance tables whose label list indexes lack postings.

An answer that comes from an index changes when the index says something else. The copy has the
same rows, fragments and index names as the original; its label list indexes are written again,
with the postings that a test wants gone taken out, and committed as a proper index, so that
nothing but the answer tells.
"""

from __future__ import annotations

import shutil
import struct
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
from lance.dataset import Index, IndexFile, LanceOperation
from lance.file import LanceFileReader, LanceFileWriter
from pyroaring import BitMap

LOOKUP_FILE = "bitmap_page_lookup.lance"

Postings = dict[int, BitMap]
"""The rows of one label: offsets by fragment."""


def copy_without(
    source: Path,
    target: Path,
    taken_out: Callable[[str, object, Postings], Postings],
    *,
    null_lists: bool = True,
) -> None:
    """Copy the table at `source` to `target` without some postings of its label list indexes.

    `taken_out(column, label, postings)` gives the postings that the copy's index keeps of a
    label; the label NULL has the rows with a NULL element. With `null_lists=False` the copy's index
    knows of no NULL list. The rows stay as they are.
    """
    shutil.copytree(source, target)
    dataset = lance.dataset(target)
    written, replaced = [], []
    for description in dataset.describe_indices():
        (column,), (segment,) = description.field_names, description.segments
        new = target / "_indices" / str(uuid.uuid4())
        new.mkdir()
        old = target / "_indices" / segment.uuid
        _rewrite(old / LOOKUP_FILE, new / LOOKUP_FILE, column, taken_out, null_lists)
        metadata = Index(
            uuid=segment.uuid,
            name=description.name,
            fields=description.fields,
            dataset_version=segment.dataset_version_at_last_update,
            fragment_ids=segment.fragment_ids,
            index_version=segment.index_version,
        )
        file = IndexFile(LOOKUP_FILE, (new / LOOKUP_FILE).stat().st_size)
        details = (description.type_url, b"")
        replaced.append(metadata)
        written.append(replace(metadata, uuid=new.name, files=[file], index_details=details))
    lance.LanceDataset.commit(
        target, LanceOperation.CreateIndex(written, replaced), read_version=dataset.version
    )


def no_postings(_column: str, _label: object, _postings: Postings) -> Postings:
    """Takes out every posting."""
    return {}


def all_but(column: str, label: object, address: int) -> Callable[..., Postings]:
    """Takes out one posting: that of `label` for the row at `address`, which must be there."""

    def keep(of_column: str, of_label: object, postings: Postings) -> Postings:
        if (of_column, of_label) != (column, label):
            return postings
        fragment, offset = address >> 32, address & 0xFFFFFFFF
        assert offset in postings[fragment]
        return {**postings, fragment: postings[fragment] - BitMap([offset])}

    return keep


def _rewrite(
    source: Path,
    target: Path,
    column: str,
    taken_out: Callable[[str, object, Postings], Postings],
    null_lists: bool,
) -> None:
    reader = LanceFileReader(str(source))
    table = reader.read_all().to_table()
    labels = table["keys"].to_pylist()
    kept = [
        _encode(taken_out(column, label, _decode(posting)))
        for label, posting in zip(labels, table["bitmaps"].to_pylist(), strict=True)
    ]
    schema = reader.metadata().schema
    rewritten = pa.table([table["keys"], pa.array(kept, pa.binary())], schema=schema)
    with LanceFileWriter(str(target), schema.remove_metadata()) as writer:
        for batch in rewritten.to_batches():
            writer.write_batch(batch)
        # Buffer 0 is the file's own schema, which the writer writes by itself.
        for number in range(1, len(reader.metadata().global_buffers)):
            buffer = reader.read_global_buffer(number) if null_lists else _encode({})
            assert writer.add_global_buffer(buffer) == number
        for key, value in (schema.metadata or {}).items():
            writer.add_schema_metadata(key.decode(), value.decode())


def _decode(posting: bytes) -> Postings:
    """A RowAddrTreeMap: u32 count, then u32 fragment, u32 length and that many bytes each."""
    (count,) = struct.unpack_from("<I", posting)
    at, postings = 4, {}
    for _ in range(count):
        fragment, length = struct.unpack_from("<II", posting, at)
        at += 8
        postings[fragment] = BitMap.deserialize(posting[at : at + length])
        at += length
    return postings


def _encode(postings: Postings) -> bytes:
    entries = [(fragment, rows.serialize()) for fragment, rows in postings.items() if rows]
    return struct.pack("<I", len(entries)) + b"".join(
        struct.pack("<II", fragment, len(rows)) + rows for fragment, rows in entries
    )
