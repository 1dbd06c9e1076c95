"""One Lance file of an index, held open, with what goes wrong in it told as corruption."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from struct import Struct
from typing import Any, Final, TypeVar

import pyarrow as pa
from lance.file import LanceFileReader

from .byte_ranges import AT_ONCE, Range, at_once, merged, pieces
from .dataset_files import DatasetFiles
from .errors import CorruptIndexError, LanceIndexError
from .file_requests import FileRequests
from .reader_pool import ReaderPool
from .search_stats import SearchStats
from .unreadable import unreadable

Value = TypeVar("Value")

# Whole columns read fastest in few batches with several in flight.
_BATCH_ROWS: Final = 1 << 17
_READAHEAD: Final = 16
_MAGIC: Final = b"LANC"
# Where the columns' metadata, its table and that of the global buffers begin; how many buffers
# and columns there are; the version.
_FOOTER: Final = Struct("<QQQIIHH4s")
_PLACE: Final = 16
"""The bytes of an entry of either table: a position and a size."""

OPEN_FILE_BYTES: Final = 1 << 14
"""What an open file counts for in a cache: its schema and page table, roughly."""


@dataclass(frozen=True, slots=True)
class ColumnPage:
    """One page of a column: its encoding in Lance's words, and where its buffers are.

    `buffers` are positions in the file and sizes, both in bytes.
    """

    encoding: str
    buffers: tuple[tuple[int, int], ...]


class OpenFile:
    """A Lance file with some of its columns; thread-safe.

    What is read of a file in an object store is counted into the `stats` given. Columns that the
    file has not leave the choice open: its schema tells, and all columns are read.

    Raises `CorruptIndexError`, with the file's name, wherever pylance fails to read it:
    `MissingIndexFileError`, which is one, where the file is gone.
    """

    def __init__(
        self,
        files: DatasetFiles,
        relative: str,
        columns: list[str] | None = None,
        size: int | None = None,
        stats: SearchStats | None = None,
    ) -> None:
        """Opens the file; `size`, in bytes, is what the table's metadata says of it."""
        self.path = files.path(relative)
        self.local_path: Path | None = files.local_path(relative)
        self._unreadable = partial(unreadable, files, relative)
        self._read_range = partial(files.read_range, relative)
        if size is not None:
            self._check_footer(files, relative, size)
        reader = self._open(files, relative, columns)
        metadata = self._checked("its metadata", reader.metadata)
        self.schema: pa.Schema = metadata.schema
        self.num_rows: int = metadata.num_rows
        self.global_buffer_sizes: tuple[int, ...] = tuple(
            buffer.size for buffer in metadata.global_buffers
        )
        self._requests = None if self.local_path else FileRequests.of(metadata, columns)
        self._readers = ReaderPool(
            reader,
            lambda: self._open(files, relative, columns),
            most=1 if self.in_memory else AT_ONCE,
        )
        self._count(stats, lambda requests: requests.opening())
        if size is not None:
            self._count(stats, lambda _: (1, _FOOTER.size))

    @property
    def in_memory(self) -> bool:
        """Whether no request is sent for what is read: local files, and small ones."""
        return self._requests is None or self._requests.is_read_whole

    def _check_footer(self, files: DatasetFiles, relative: str, size: int) -> None:
        """pylance can abort the process over a file that was cut off, or that counts too much."""
        at = max(size - _FOOTER.size, 0)
        end = self._checked(
            f"it has {size} bytes", lambda: files.read_range(relative, at, size - at)
        )
        if not end.endswith(_MAGIC):
            raise CorruptIndexError(self.path, f"no LANC at the end of its {size} bytes")
        if len(end) < _FOOTER.size:
            raise CorruptIndexError(self.path, f"{size} bytes are too few for a footer")
        _, columns_at, buffers_at, buffers, columns, _, _, _ = _FOOTER.unpack(end)
        if columns_at + columns * _PLACE > buffers_at or buffers_at + buffers * _PLACE > at:
            raise CorruptIndexError(
                self.path, f"it opens: {columns} columns and {buffers} buffers end outside it"
            )

    def column_pages(self, column: int) -> list[ColumnPage]:
        """The pages of the file's column of that number, all columns of the file counted."""

        def read(reader: LanceFileReader) -> list[ColumnPage]:
            return [
                ColumnPage(page.encoding, tuple((b.position, b.size) for b in page.buffers))
                for page in reader.metadata().columns[column].pages
            ]

        return self._read(f"the pages of column {column}", read)

    def read_column(self, name: str, stats: SearchStats | None = None) -> pa.Array:
        """All values of a column, the only one that the file was opened with."""
        self._count(stats, lambda requests: requests.range(0, self.num_rows))
        read = self._read(
            f"column {name}",
            lambda reader: reader.read_all(
                batch_size=_BATCH_ROWS, batch_readahead=_READAHEAD
            ).to_table(),
        )
        return read.column(name).combine_chunks()

    def read_range(
        self, start: int, count: int, stats: SearchStats | None = None
    ) -> pa.RecordBatch:
        """The `count` rows from `start` on."""
        if count == 0:
            return pa.RecordBatch.from_pylist([], schema=self.schema)
        self._count(stats, lambda requests: requests.range(start, count))
        read = self._read(
            f"rows {start} to {start + count - 1}",
            lambda reader: reader.read_range(start, count, batch_size=count).to_table(),
        )
        return read.combine_chunks().to_batches()[0]

    def read_ranges(
        self, ranges: Sequence[Range], stats: SearchStats | None = None
    ) -> Iterator[pa.RecordBatch]:
        """As `read_range` for each start and count; from an object store some at a time."""

        def read(rows: Range) -> pa.RecordBatch:
            return self.read_range(*rows, stats)

        # Another reader costs as much as a read.
        threads = 1 if self.in_memory else -(-len(ranges) // 2)
        return at_once(read, ranges, threads)

    def take_rows(self, positions: Sequence[int], stats: SearchStats | None = None) -> pa.Table:
        """The rows at `positions`, which ascend strictly."""
        rows = list(positions)
        read = self._read(
            f"rows {rows[0]} to {rows[-1]}", lambda reader: reader.take_rows(rows).to_table()
        )
        self._count(stats, lambda requests: requests.take(rows, read.nbytes))
        return read

    def read_global_buffer(self, index: int, stats: SearchStats | None = None) -> bytes:
        """A global buffer of the file."""
        self._count(stats, lambda requests: requests.buffer(self.global_buffer_sizes[index]))
        return self._read(
            f"global buffer {index}", lambda reader: bytes(reader.read_global_buffer(index))
        )

    def read_bytes(self, ranges: Sequence[Range], stats: SearchStats | None = None) -> list[bytes]:
        """The bytes of each range, an offset and a size; they ascend.

        Near ranges are read together, large ones in pieces, and some reads are under way at once.
        """
        parts = [pieces(*one) for one in ranges]
        wanted = [piece for part in parts for piece in part]
        reads = merged(wanted)
        self._count(stats, lambda _: (len(reads), sum(size for _, size in reads)))
        starts = [offset for offset, _ in reads]
        found = list(at_once(self._bytes, reads))
        data: list[bytes] = []
        for offset, size in wanted:
            at = bisect_right(starts, offset) - 1
            begin = offset - starts[at]
            data.append(found[at][begin : begin + size])
        ends = [0, *accumulate(len(part) for part in parts)]
        return [b"".join(data[low:high]) for low, high in pairwise(ends)]

    def _bytes(self, one: Range) -> bytes:
        offset, size = one
        what = f"{size} bytes from {offset} on"
        found = self._checked(what, lambda: self._read_range(offset, size))
        if len(found) != size:
            raise CorruptIndexError(self.path, f"{what}: it has {len(found)} of them")
        return found

    def _count(
        self, stats: SearchStats | None, asked: Callable[[FileRequests], tuple[int, int]]
    ) -> None:
        if stats is not None and self._requests is not None:
            stats.requested(*asked(self._requests))

    def _open(
        self, files: DatasetFiles, relative: str, columns: list[str] | None
    ) -> LanceFileReader:
        try:
            return self._checked("it opens", lambda: files.open(relative, columns))
        except CorruptIndexError:
            if columns is None:
                raise
            return self._checked("it opens", lambda: files.open(relative))

    def _read(self, what: str, read: Callable[[LanceFileReader], Value]) -> Value:
        with self._readers.reader() as reader:
            return self._checked(what, lambda: read(reader))

    def _checked(self, what: str, read: Callable[[], Value]) -> Value:
        """The value of `read`; whatever it raises becomes corruption of this file."""
        try:
            return read()
        except (KeyboardInterrupt, SystemExit, MemoryError, LanceIndexError):
            raise
        except BaseException as error:
            # pylance raises OSError, ValueError or RuntimeError, and for some damages lets
            # a Rust panic through, which is no Exception.
            raise self._unreadable(f"{what}: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    text: Any = str(error) or type(error).__name__
    return text.splitlines()[0]
