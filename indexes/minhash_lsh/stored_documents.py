"""All that the files of a segment hold, block by block, for a proof or a copy of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import CorruptIndexError
from .segment import BAND_KEY, DOC_ID, ROW_ID, SIGNATURE, Segment

_READ_BYTES: Final = 1 << 24
_ROWS_AT_ONCE: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class StoredDocuments:
    """Consecutive documents from number `first` on: row ids (n,), signatures (n, num_hashes)."""

    first: int
    row_ids: npt.NDArray[np.uint64]
    signatures: npt.NDArray[np.uint16]


def stored_documents(segment: Segment) -> Iterator[StoredDocuments]:
    """The documents of the signature file, in their order.

    Raises `CorruptIndexError` for what is NULL or is not there.
    """
    hashes = segment.parameters.num_hashes
    step = max(1, _READ_BYTES // (2 * hashes))
    file = segment.signature_file([ROW_ID, SIGNATURE])
    for first in range(0, segment.num_docs, step):
        count = min(step, segment.num_docs - first)
        read = file.read_range(first, count)
        ids, lists = read.column(ROW_ID), read.column(SIGNATURE)
        values = lists.flatten()
        if ids.null_count or lists.null_count or values.null_count:
            raise CorruptIndexError(
                segment.signatures.path, f"a NULL among the documents from {first} on"
            )
        if len(ids) != count or len(values) != count * hashes:
            raise CorruptIndexError(
                segment.signatures.path, f"{len(ids)} of the {count} documents from {first} on"
            )
        yield StoredDocuments(first, ids.to_numpy(), values.to_numpy().reshape(count, hashes))


def stored_entries(
    segment: Segment,
) -> Iterator[tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32]]]:
    """The rows of the bands file in their order, in blocks: keys (n,) and documents (n,).

    Raises `CorruptIndexError` for rows out of order, a page that does not end as the page table
    says, and a document that is not in the signature file.
    """
    bands, rows = segment.bands, segment.page_rows
    last_key, last_doc = np.uint64(0), -1
    for start in range(0, bands.num_rows, _ROWS_AT_ONCE):
        count = min(_ROWS_AT_ONCE, bands.num_rows - start)
        read = bands.read_range(start, count)
        keys, docs = _numbers(segment, read, BAND_KEY), _numbers(segment, read, DOC_ID)
        if len(keys) != count:
            raise CorruptIndexError(bands.path, f"{len(keys)} of the {count} rows from {start} on")
        if int(docs.max()) >= segment.num_docs:
            at = int((docs >= segment.num_docs).argmax())
            raise CorruptIndexError(
                bands.path, f"document {docs[at]} in row {start + at}, of {segment.num_docs}"
            )
        before = np.concatenate([[last_key], keys[:-1]])
        docs_before = np.concatenate([[last_doc], docs[:-1].astype(np.int64)])
        wrong = (keys < before) | ((keys == before) & (docs <= docs_before))
        if wrong.any():
            raise CorruptIndexError(bands.path, f"row {start + int(wrong.argmax())} out of order")
        pages = range(start // rows, (start + count - 1) // rows + 1)
        for page in pages:
            end = min((page + 1) * rows, bands.num_rows) - 1 - start
            if end < count and keys[end] != segment.page_table[page]:
                raise CorruptIndexError(
                    bands.path, f"page {page} ends with another key than in the page table"
                )
        last_key, last_doc = keys[-1], int(docs[-1])
        yield keys, docs


def _numbers(segment: Segment, read: pa.RecordBatch, name: str) -> npt.NDArray[np.unsignedinteger]:
    column = read.column(name)
    if column.null_count:
        raise CorruptIndexError(segment.bands.path, f"a NULL in {name}")
    return column.to_numpy()
