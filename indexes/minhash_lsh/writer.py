"""Writing a Segment: the specification's Signature File Schema and Bands File Schema."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance.file import LanceFileWriter

from ..dataset_files import DatasetFiles
from .details import NEWEST_VERSION
from .parameters import MinHashParameters
from .segment import (
    BAND_KEY,
    BANDS,
    DETAILS,
    DOC_ID,
    NUM_DOCS,
    PAGE_ROWS,
    PAGE_TABLE,
    ROW_ID,
    SIGNATURE,
    SIGNATURES,
    VERSION,
)

ROWS_OF_A_PAGE: Final = 4096
MOST_DOCUMENTS: Final = 1 << 32
"""A document's number has 32 bits (section Storage Layout)."""

_PLAIN: Final = {"lance-encoding:compression": "none"}
_FULL_ZIP: Final = {"lance-encoding:structural-encoding": "fullzip", **_PLAIN}

Ids = npt.NDArray[np.uint64]
Signatures = npt.NDArray[np.uint16]
Keys = npt.NDArray[np.uint64]
Docs = npt.NDArray[np.uint32]


def write_signatures(
    files: DatasetFiles,
    folder: str,
    details: bytes,
    parameters: MinHashParameters,
    documents: Iterable[tuple[Ids, Signatures]],
) -> tuple[str, int]:
    """The signature file of documents in blocks, in their order; its name and size in bytes."""
    lists = pa.list_(pa.field("item", pa.uint16(), nullable=False), parameters.num_hashes)
    schema = pa.schema(
        [
            pa.field(ROW_ID, pa.uint64(), nullable=False),
            pa.field(SIGNATURE, lists, nullable=False, metadata=_FULL_ZIP),
        ]
    )
    with files.create(f"{folder}/{SIGNATURES}", schema) as writer:
        _describe(writer, details)
        for row_ids, signatures in documents:
            values = pa.array(np.ascontiguousarray(signatures).reshape(-1), pa.uint16())
            column = pa.FixedSizeListArray.from_arrays(values, type=lists)
            writer.write_batch(pa.record_batch([pa.array(row_ids), column], schema=schema))
    return SIGNATURES, writer.size_bytes or 0


def write_bands(
    files: DatasetFiles,
    folder: str,
    details: bytes,
    num_docs: int,
    entries: Iterable[tuple[Keys, Docs]],
) -> tuple[str, int]:
    """The bands file of entries in blocks, ascending; its name and size in bytes."""
    schema = pa.schema(
        [
            pa.field(BAND_KEY, pa.uint64(), nullable=False, metadata=_PLAIN),
            pa.field(DOC_ID, pa.uint32(), nullable=False, metadata=_PLAIN),
        ]
    )
    table: list[Keys] = []
    rows, last = 0, np.empty(0, dtype=np.uint64)
    with files.create(f"{folder}/{BANDS}", schema) as writer:
        _describe(writer, details)
        for keys, docs in entries:
            if len(keys) == 0:
                continue
            writer.write_batch(pa.record_batch([pa.array(keys), pa.array(docs)], schema=schema))
            # The last row of each page that ends here; the file's last one comes at its end.
            table.append(keys[ROWS_OF_A_PAGE - 1 - rows % ROWS_OF_A_PAGE :: ROWS_OF_A_PAGE].copy())
            rows, last = rows + len(keys), keys[-1:].copy()
        if rows % ROWS_OF_A_PAGE:
            table.append(last)
        buffer = np.concatenate([np.empty(0, dtype=np.uint64), *table]).astype("<u8")
        at = writer.add_global_buffer(buffer.tobytes())
        for name, number in ((NUM_DOCS, num_docs), (PAGE_ROWS, ROWS_OF_A_PAGE), (PAGE_TABLE, at)):
            writer.add_schema_metadata(name, str(number))
    return BANDS, writer.size_bytes or 0


def _describe(writer: LanceFileWriter, details: bytes) -> None:
    writer.add_schema_metadata(DETAILS, details.hex())
    writer.add_schema_metadata(VERSION, str(NEWEST_VERSION))
