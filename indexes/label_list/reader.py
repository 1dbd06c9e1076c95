"""Reads a label list index: `bitmap_page_lookup.lance`, as its specification has it.

The file has one row for each distinct label: `keys`, of the element type of the list
column, and `bitmaps`, the rows with that label as a RowAddrTreeMap. The key NULL holds the
rows with a NULL element. The schema's metadata names the global buffer with the rows whose
list is NULL. The rows are row addresses, or row ids on a table with stable row ids.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

import pyarrow as pa

from ..cache import ReaderCache
from ..dataset_files import DatasetFiles
from ..errors import CorruptIndexError, UnsupportedVersionError, UnusableIndexError
from ..lance_file import OPEN_FILE_BYTES, OpenFile
from ..manifest import IndexSegment, LanceIndex
from ..row_set import RowSet
from ..search_stats import SearchStats
from .keys import PostingKeys, same_family

KIND: Final = "LabelList"
NEWEST_VERSION: Final = 1

FILE: Final = "bitmap_page_lookup.lance"
NULLS: Final = b"lance:label_list_nulls"
"""Names the global buffer with the rows whose list is NULL, in the schema's metadata."""

_NULLS_SINCE_VERSION: Final = 1
_BITMAP_TYPES: Final = (pa.binary(), pa.large_binary())
# A small posting costs more in Python objects than in bytes.
_POSTING_OVERHEAD: Final = 400


def check_metadata(index: LanceIndex) -> None:
    """Raises `UnusableIndexError` where the index is of no version or shape that is read here."""
    for segment in index.segments:
        if segment.index_version > NEWEST_VERSION:
            raise UnsupportedVersionError(
                index.name,
                f"its version is {segment.index_version}, and {NEWEST_VERSION} is the newest "
                "that is read",
            )
        if segment.details_type_url != index.segments[0].details_type_url:
            raise UnusableIndexError(index.name, "its segments are of different kinds")
        if segment.field_ids != index.field_ids or len(index.field_ids) != 1:
            raise UnusableIndexError(index.name, "its segments are not on one and the same column")


def stores_null_lists(index: LanceIndex) -> bool:
    """Whether every segment stores the rows whose list is NULL; version 0 does not."""
    return all(s.index_version >= _NULLS_SINCE_VERSION for s in index.segments)


class LabelListReader:
    """One segment of a label list index; thread-safe.

    What it has read is kept in the session's cache and nowhere else. Raises
    `CorruptIndexError` for a file that fails a check.
    """

    def __init__(
        self, segment: IndexSegment, files: DatasetFiles, folder: str, cache: ReaderCache
    ) -> None:
        """Reads nothing yet. `folder`, under the base of `files`, is the segment's own."""
        self._segment = segment
        self._files = files
        self._cache = cache
        self._relative = f"{folder}/{FILE}"
        self.path = files.path(self._relative)

    # -- the three things that a search asks for ----------------------------------------

    def positions(self, labels: pa.Array, stats: SearchStats) -> list[int]:
        """Where the labels' postings are, -1 for a label that no row has."""
        if len(labels) == 0:
            return []
        keys = self._keys(stats)
        if not same_family(labels.type, keys.type):
            raise UnusableIndexError(
                self._segment.name,
                f"it was built over elements of type {keys.type}, now they are {labels.type}",
            )
        return keys.positions(labels).tolist()

    def label_count(self, stats: SearchStats) -> int:
        """How many labels have a posting, with NULL where some row has a NULL element."""
        return self._keys(stats).size

    def null_element_position(self, stats: SearchStats) -> int:
        """Where the posting of the rows with a NULL element is, -1 for none."""
        position = self._keys(stats).null_position
        return -1 if position is None else position

    def postings(self, positions: list[int], stats: SearchStats) -> list[RowSet]:
        """The postings at `positions`, none of them -1, read with one scattered read."""
        found = {at: self._cache.peek(self._key("posting", at)) for at in positions}
        missing = sorted(at for at, posting in found.items() if posting is None)
        if missing:
            found.update(self._read_postings(missing, stats))
        return [rows for at in positions if (rows := found[at]) is not None]

    def null_lists(self, stats: SearchStats) -> RowSet | None:
        """The rows whose list is NULL; None where the index does not store them."""
        if self._segment.index_version < _NULLS_SINCE_VERSION:
            return None
        return self._cache.get(self._key("nulls"), lambda: self._read_null_lists(stats))

    # -- reading ------------------------------------------------------------------------

    def _key(self, *what: Hashable) -> Hashable:
        return (self._segment.uuid, self.path, *what)

    def _corrupt(self, check: str) -> CorruptIndexError:
        return CorruptIndexError(self.path, check)

    def _decoded(self, what: str, data: bytes) -> RowSet:
        try:
            return RowSet.from_row_addr_tree_map(data)
        except (ValueError, IndexError) as error:
            raise self._corrupt(f"{what}: {error}") from error

    def _file(self, stats: SearchStats) -> OpenFile:
        return self._cache.get(
            self._key("file"), lambda: (self._open(stats), OPEN_FILE_BYTES), handles=1
        )

    def _open(self, stats: SearchStats) -> OpenFile:
        size = dict(self._segment.files).get(FILE)
        file = OpenFile(self._files, self._relative, ["bitmaps"], size, stats)
        names = file.schema.names
        if names != ["keys", "bitmaps"]:
            raise self._corrupt(f"the columns are {names}, not keys and bitmaps")
        if file.schema.field("bitmaps").type not in _BITMAP_TYPES:
            raise self._corrupt(f"bitmaps are {file.schema.field('bitmaps').type}, not binary")
        return file

    def _keys(self, stats: SearchStats) -> PostingKeys:
        return self._cache.get(self._key("keys"), lambda: self._read_keys(stats))

    def _read_keys(self, stats: SearchStats) -> tuple[PostingKeys, int]:
        expected = self._file(stats).num_rows
        file = OpenFile(self._files, self._relative, ["keys"], stats=stats)
        column = file.read_column("keys", stats)
        if len(column) != expected:
            raise self._corrupt(f"{len(column)} keys in {expected} rows")
        try:
            keys = PostingKeys(column)
        except (TypeError, ValueError) as error:
            raise self._corrupt(f"the keys: {error}") from error
        stats.bytes_read += column.nbytes
        return keys, keys.nbytes

    def _read_postings(self, positions: list[int], stats: SearchStats) -> dict[int, RowSet]:
        column = self._file(stats).take_rows(positions, stats).column("bitmaps")
        if len(column) != len(positions) or column.null_count:
            raise self._corrupt("a label without a bitmap")
        read: dict[int, RowSet] = {}
        for at, data in zip(positions, column.to_pylist(), strict=True):
            rows = self._decoded(f"the bitmap in row {at}", data)
            self._cache.put(self._key("posting", at), rows, len(data) + _POSTING_OVERHEAD)
            stats.bytes_read += len(data)
            read[at] = rows
        stats.bitmaps_read += len(read)
        return read

    def _read_null_lists(self, stats: SearchStats) -> tuple[RowSet, int]:
        file = self._file(stats)
        named = (file.schema.metadata or {}).get(NULLS)
        if named is None:
            raise self._corrupt(f"the schema's metadata has no {NULLS.decode()}")
        if not named.isdigit() or int(named) >= len(file.global_buffer_sizes):
            raise self._corrupt(
                f"{NULLS.decode()} is {named.decode(errors='replace')!r}, and the file has "
                f"{len(file.global_buffer_sizes)} global buffers"
            )
        data = file.read_global_buffer(int(named), stats)
        stats.bytes_read += len(data)
        stats.bitmaps_read += 1
        return self._decoded("the set of null lists", data), len(data) + _POSTING_OVERHEAD
