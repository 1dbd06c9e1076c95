"""Opening a Segment: both files, checked in the specification's order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..byte_ranges import at_once
from ..cache import ReaderCache
from ..dataset_files import DatasetFiles
from ..errors import CorruptIndexError, UnsupportedVersionError
from ..lance_file import OPEN_FILE_BYTES, OpenFile
from ..manifest import IndexSegment
from ..search_stats import SearchStats
from .details import NEWEST_VERSION, MinHashDetails, decode_details
from .parameters import MinHashParameters

SIGNATURES: Final = "signatures.lance"
BANDS: Final = "bands.lance"
ROW_ID: Final = "_rowid"
SIGNATURE: Final = "signature"
BAND_KEY: Final = "band_key"
DOC_ID: Final = "doc_id"

DETAILS: Final = "minhash_lsh_details"
VERSION: Final = "minhash_lsh_index_version"
NUM_DOCS: Final = "minhash_lsh_num_docs"
PAGE_ROWS: Final = "minhash_lsh_page_rows"
PAGE_TABLE: Final = "minhash_lsh_page_table_buffer"
_ENTRY_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class Segment:
    """An opened segment: its files, and its page table, the largest key of each page.

    `num_docs` is the number of documents, `page_rows` that of the rows of a page of the
    bands file. `key` begins the keys of what is kept of the segment. `folder`, under the base
    of `files`, is its own. Rows of `signatures` are read without the signatures.
    """

    key: tuple[str, str]
    files: DatasetFiles
    folder: str
    parameters: MinHashParameters
    signatures: OpenFile
    bands: OpenFile
    num_docs: int
    page_rows: int
    page_table: npt.NDArray[np.uint64]

    @property
    def nbytes(self) -> int:
        """The bytes that it takes in memory, roughly."""
        return self.page_table.nbytes + 2 * OPEN_FILE_BYTES

    def signature_file(self, columns: list[str], stats: SearchStats | None = None) -> OpenFile:
        """The signature file opened once more, to read some columns."""
        return OpenFile(self.files, f"{self.folder}/{SIGNATURES}", columns, stats=stats)


def opened(
    segment: IndexSegment,
    files: DatasetFiles,
    folder: str,
    cache: ReaderCache,
    stats: SearchStats,
) -> Segment:
    """The segment, kept or opened; `folder`, under the base of `files`, is its own.

    Raises `CorruptIndexError` for a file that fails a check and `UnsupportedVersionError`
    for one of a newer version.
    """
    key = (segment.uuid, files.path(folder))

    def load() -> tuple[Segment, int]:
        made = _open(segment, files, folder, key, stats)
        stats.bytes_read += made.page_table.nbytes
        return made, made.nbytes

    return cache.get((*key, "segment"), load, handles=2)


def _open(
    segment: IndexSegment,
    files: DatasetFiles,
    folder: str,
    key: tuple[str, str],
    stats: SearchStats,
) -> Segment:
    try:
        details = decode_details(segment.details)
    except ValueError as error:
        raise CorruptIndexError(files.path(folder), f"the index details: {error}") from error
    parameters = details.parameters
    sizes = dict(segment.files)

    def open_file(file: tuple[str, list[str] | None]) -> OpenFile:
        name, columns = file
        return OpenFile(files, f"{folder}/{name}", columns, sizes.get(name), stats)

    threads = 1 if files.are_local else 2
    names = [(SIGNATURES, [ROW_ID]), (BANDS, None)]
    signatures, bands = at_once(open_file, names, threads)
    _check_file(segment, signatures, _signatures_schema(parameters.num_hashes), details)
    _check_file(segment, bands, _BANDS_SCHEMA, details)
    page_rows = _number(bands, PAGE_ROWS)
    if page_rows < 1:
        raise CorruptIndexError(bands.path, f"{PAGE_ROWS} is {page_rows}, and not positive")
    num_docs = _number(bands, NUM_DOCS)
    if num_docs != signatures.num_rows:
        raise CorruptIndexError(
            bands.path,
            f"{NUM_DOCS} is {num_docs}, and {SIGNATURES} has {signatures.num_rows} rows",
        )
    table = _page_table(bands, page_rows, stats)
    return Segment(key, files, folder, parameters, signatures, bands, num_docs, page_rows, table)


def _signatures_schema(num_hashes: int) -> pa.Schema:
    # Lance does not record whether an item of a fixed-size list may be null.
    return pa.schema(
        [
            pa.field(ROW_ID, pa.uint64(), nullable=False),
            pa.field(SIGNATURE, pa.list_(pa.uint16(), num_hashes), nullable=False),
        ]
    )


_BANDS_SCHEMA: Final = pa.schema(
    [
        pa.field(BAND_KEY, pa.uint64(), nullable=False),
        pa.field(DOC_ID, pa.uint32(), nullable=False),
    ]
)


def _check_file(
    segment: IndexSegment, file: OpenFile, schema: pa.Schema, details: MinHashDetails
) -> None:
    if not file.schema.equals(schema):
        described, wanted = _described(file.schema), _described(schema)
        raise CorruptIndexError(file.path, f"its columns are {described}, and not {wanted}")
    try:
        recorded = decode_details(bytes.fromhex(_metadata(file, DETAILS)))
    except ValueError as error:
        raise CorruptIndexError(file.path, f"{DETAILS}: {error}") from error
    if recorded != details:
        raise CorruptIndexError(file.path, f"{DETAILS} are not the details of the index")
    version = _number(file, VERSION)
    if version > NEWEST_VERSION:
        raise UnsupportedVersionError(
            segment.name,
            f"{file.path} is of version {version}, and {NEWEST_VERSION} is the newest that is read",
        )


def _described(schema: pa.Schema) -> str:
    return ", ".join(f"{f.name}: {f.type}{'' if f.nullable else ' not null'}" for f in schema)


def _metadata(file: OpenFile, name: str) -> str:
    metadata: Mapping[bytes, bytes] = file.schema.metadata or {}
    value = metadata.get(name.encode())
    if value is None:
        raise CorruptIndexError(file.path, f"the schema's metadata has no {name}")
    return value.decode(errors="replace")


def _number(file: OpenFile, name: str) -> int:
    """A number of the schema's metadata, decimal and not negative."""
    text = _metadata(file, name)
    # So many digits no such number has, and Python refuses to read thousands of them.
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        raise CorruptIndexError(file.path, f"{name} is {text[:40]!r}, and no decimal number")
    return int(text)


def _page_table(bands: OpenFile, page_rows: int, stats: SearchStats) -> npt.NDArray[np.uint64]:
    """Page Table: the global buffer with the largest key of every page."""
    buffer = _number(bands, PAGE_TABLE)
    buffers = bands.global_buffer_sizes
    if buffer >= len(buffers):
        raise CorruptIndexError(
            bands.path, f"{PAGE_TABLE} is {buffer}, and the file has {len(buffers)} global buffers"
        )
    if buffers[buffer] % _ENTRY_BYTES:
        raise CorruptIndexError(
            bands.path,
            f"the page table has {buffers[buffer]} bytes, which is no multiple of {_ENTRY_BYTES}",
        )
    entries, pages = buffers[buffer] // _ENTRY_BYTES, -(-bands.num_rows // page_rows)
    if entries != pages:
        raise CorruptIndexError(
            bands.path,
            f"the page table has {entries} entries, and {bands.num_rows} rows make {pages} pages",
        )
    table = np.frombuffer(bands.read_global_buffer(buffer, stats), dtype="<u8")
    if len(table) != pages:
        raise CorruptIndexError(
            bands.path, f"{len(table)} of the {pages} entries of its page table"
        )
    if (table[1:] < table[:-1]).any():
        raise CorruptIndexError(bands.path, "the entries of its page table do not ascend")
    return table
