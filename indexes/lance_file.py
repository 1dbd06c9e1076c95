"""One Lance file of an index, held open, with what goes wrong in it told as corruption."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from struct import Struct
from threading import Lock
from typing import Any, Final, TypeVar

import pyarrow as pa

from .dataset_files import DatasetFiles
from .errors import CorruptIndexError, LanceIndexError
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

    Raises `CorruptIndexError`, with the file's name, wherever pylance fails to read it:
    `MissingIndexFileError`, which is one, where the file is gone.
    """

    def __init__(
        self,
        files: DatasetFiles,
        relative: str,
        columns: list[str] | None = None,
        size: int | None = None,
    ) -> None:
        """Opens the file; `size`, in bytes, is what the table's metadata says of it."""
        self.path = files.path(relative)
        self.local_path: Path | None = files.local_path(relative)
        self._unreadable = partial(unreadable, files, relative)
        # A reader used from two threads at once raises "Already borrowed".
        self._lock = Lock()
        if size is not None:
            self._check_footer(files, relative, size)
        self._reader = self.checked("it opens", lambda: files.open(relative, columns))
        metadata = self.checked("its metadata", self._reader.metadata)
        self.schema: pa.Schema = metadata.schema
        self.num_rows: int = metadata.num_rows
        self.global_buffer_sizes: tuple[int, ...] = tuple(
            buffer.size for buffer in metadata.global_buffers
        )

    def _check_footer(self, files: DatasetFiles, relative: str, size: int) -> None:
        """pylance can abort the process over a file that was cut off, or that counts too much."""
        at = max(size - _FOOTER.size, 0)
        end = self.checked(
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

        def read() -> list[ColumnPage]:
            return [
                ColumnPage(page.encoding, tuple((b.position, b.size) for b in page.buffers))
                for page in self._reader.metadata().columns[column].pages
            ]

        return self.checked(f"the pages of column {column}", read)

    def read_column(self, name: str) -> pa.Array:
        """All values of a column that the file was opened with."""
        read = self.checked(
            f"column {name}",
            lambda: self._reader.read_all(
                batch_size=_BATCH_ROWS, batch_readahead=_READAHEAD
            ).to_table(),
        )
        return read.column(name).combine_chunks()

    def read_range(self, start: int, count: int) -> pa.RecordBatch:
        """The `count` rows from `start` on."""
        if count == 0:
            return pa.RecordBatch.from_pylist([], schema=self.schema)
        read = self.checked(
            f"rows {start} to {start + count - 1}",
            lambda: self._reader.read_range(start, count, batch_size=count).to_table(),
        )
        return read.combine_chunks().to_batches()[0]

    def take_rows(self, positions: Sequence[int]) -> pa.Table:
        """The rows at `positions`, which ascend strictly."""
        rows = list(positions)
        return self.checked(
            f"rows {rows[0]} to {rows[-1]}", lambda: self._reader.take_rows(rows).to_table()
        )

    def read_global_buffer(self, index: int) -> bytes:
        """A global buffer of the file."""
        return self.checked(
            f"global buffer {index}", lambda: bytes(self._reader.read_global_buffer(index))
        )

    def checked(self, what: str, read: Callable[[], Value]) -> Value:
        """The value of `read`; whatever it raises becomes corruption of this file."""
        try:
            with self._lock:
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
