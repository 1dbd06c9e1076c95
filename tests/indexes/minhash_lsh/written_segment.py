"""MinHash segments written by hand, so that they can be what pylance would not write."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance.bitmap import Bitmap
from lance.dataset import Index, IndexFile, LanceOperation
from lance.file import LanceFileWriter

from datafusion_lance.indexes.minhash_lsh.details import TYPE_URL, MinHashDetails
from datafusion_lance.indexes.minhash_lsh.parameters import MinHashParameters
from datafusion_lance.indexes.minhash_lsh.signature import SignatureProcedure

PARAMETERS = MinHashParameters(num_hashes=4, num_bands=2, shingle_size=2)
DETAILS = MinHashDetails(PARAMETERS).encode()
PAGE_ROWS = 4

FULL_ZIP = {
    "lance-encoding:structural-encoding": "fullzip",
    "lance-encoding:compression": "none",
}
PLAIN = {"lance-encoding:compression": "none"}

Metadata = dict[str, str]


@dataclass
class WrittenSegment:
    """A segment to write; what is not given is as the specification has it.

    `signatures_metadata` and `bands_metadata` replace entries; None leaves one out.
    `page_table` are the bytes of the buffer.
    """

    texts: Sequence[str]
    signatures: pa.Array | None = None
    row_ids: pa.Array | None = None
    keys: npt.NDArray[np.uint64] | None = None
    docs: npt.NDArray[np.uint32] | None = None
    signatures_schema: pa.Schema | None = None
    bands_schema: pa.Schema | None = None
    signatures_metadata: dict[str, str | None] = field(default_factory=dict)
    bands_metadata: dict[str, str | None] = field(default_factory=dict)
    page_table: bytes | None = None
    details: bytes = DETAILS
    swapped: bool = False

    def write(self, folder: Path) -> dict[str, int]:
        """Writes both files; returns their names and sizes."""
        folder.mkdir(parents=True)
        procedure = SignatureProcedure.of(PARAMETERS)
        _, signed = procedure.sign(pa.array(self.texts, pa.string()))
        count = len(signed)
        keys = procedure.band_keys(signed).reshape(-1)
        docs = np.repeat(np.arange(count, dtype=np.uint32), PARAMETERS.num_bands)
        order = np.lexsort((docs, keys))
        keys = keys[order] if self.keys is None else self.keys
        docs = docs[order] if self.docs is None else self.docs
        lists = pa.FixedSizeListArray.from_arrays(
            pa.array(signed.reshape(-1), pa.uint16()), PARAMETERS.num_hashes
        )
        shared: dict[str, str | None] = {
            "minhash_lsh_details": DETAILS.hex(),
            "minhash_lsh_index_version": "0",
        }
        names = ["signatures.lance", "bands.lance"]
        signatures_file, bands_file = names[::-1] if self.swapped else names
        row_ids = pa.array(range(count), pa.uint64()) if self.row_ids is None else self.row_ids
        signatures = lists if self.signatures is None else self.signatures
        _write(
            folder / signatures_file,
            [row_ids, signatures],
            self.signatures_schema or signatures_schema(),
            shared | self.signatures_metadata,
        )
        table = keys[
            np.minimum(np.arange(PAGE_ROWS, len(keys) + PAGE_ROWS, PAGE_ROWS), len(keys)) - 1
        ]
        buffer = table.astype("<u8").tobytes() if self.page_table is None else self.page_table
        more: dict[str, str | None] = {
            "minhash_lsh_num_docs": str(count),
            "minhash_lsh_page_rows": str(PAGE_ROWS),
        }
        _write(
            folder / bands_file,
            [pa.array(keys, pa.uint64()), pa.array(docs, pa.uint32())],
            self.bands_schema or bands_schema(),
            shared | more | self.bands_metadata,
            buffer,
        )
        return {name: (folder / name).stat().st_size for name in names}


def signatures_schema(
    names: tuple[str, str] = ("_rowid", "signature"),
    row_id: Any = None,
    num_hashes: int = PARAMETERS.num_hashes,
    item: Any = None,
    nullable: tuple[bool, bool] = (False, False),
) -> pa.Schema:
    """The schema of the signature file, with other names, types or nullability."""
    lists = pa.list_(pa.field("item", item or pa.uint16()), num_hashes)
    return pa.schema(
        [
            pa.field(names[0], row_id or pa.uint64(), nullable[0]),
            pa.field(names[1], lists, nullable[1], metadata=FULL_ZIP),
        ]
    )


def bands_schema(
    names: tuple[str, str] = ("band_key", "doc_id"),
    types: tuple[Any, Any] | None = None,
    nullable: tuple[bool, bool] = (False, False),
) -> pa.Schema:
    """The schema of the bands file, with other names, types or nullability."""
    key, doc = types or (pa.uint64(), pa.uint32())
    return pa.schema(
        [
            pa.field(names[0], key, nullable[0], metadata=PLAIN),
            pa.field(names[1], doc, nullable[1], metadata=PLAIN),
        ]
    )


def _write(
    path: Path,
    columns: list[pa.Array],
    schema: pa.Schema,
    metadata: dict[str, str | None],
    buffer: bytes | None = None,
) -> None:
    cast = [_as(column, field.type) for column, field in zip(columns, schema, strict=True)]
    with LanceFileWriter(str(path), schema) as writer:
        writer.write_batch(pa.record_batch(cast, schema=schema))
        if buffer is not None:
            at = writer.add_global_buffer(buffer)
            metadata = {"minhash_lsh_page_table_buffer": str(at), **metadata}
        for name, value in metadata.items():
            if value is not None:
                writer.add_schema_metadata(name, value)


def _as(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The column in another type, whatever its values then are."""
    if not pa.types.is_fixed_size_list(kind):
        return column.cast(kind, safe=False)
    size = kind.list_size
    values = column.flatten()
    values = (
        pa.concat_arrays([values] * size)
        .slice(0, len(column) * size)
        .cast(kind.value_type, safe=False)
    )
    return pa.FixedSizeListArray.from_arrays(values, type=kind)


def commit_segments(
    dataset: lance.LanceDataset, *segments: WrittenSegment, field_name: str = "text"
) -> lance.LanceDataset:
    """Add the segments to the table as one index, each over all fragments."""
    root = Path(dataset.uri)
    (column,) = (f.id() for f in dataset.lance_schema.fields() if f.name() == field_name)
    entries: list[Index] = []
    for segment in segments:
        key = str(uuid.uuid4())
        sizes = segment.write(root / "_indices" / key)
        entries.append(
            Index(
                uuid=key,
                name="text_idx",
                fields=[column],
                dataset_version=dataset.version,
                fragment_ids=Bitmap({f.fragment_id for f in dataset.get_fragments()}),
                index_version=0,
                files=[IndexFile(name, size) for name, size in sizes.items()],
                index_details=(TYPE_URL, segment.details),
            )
        )
    operation = LanceOperation.CreateIndex(entries, [])
    return lance.LanceDataset.commit(root, operation, read_version=dataset.version)
