"""Reading and writing the files of a Lance dataset, wherever its storage and its base paths are."""

from __future__ import annotations

import posixpath
import tempfile
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

import lance
import pyarrow as pa
from lance.file import LanceFileReader, LanceFileSession, LanceFileWriter


class DatasetFiles:
    """The files under one base path, through pylance's own object stores.

    Methods that read raise `OSError` where a file is not there or cannot be read.
    """

    def __init__(self, base: str, session: LanceFileSession) -> None:
        self.base = base
        self._session = session
        self._local = local_folder(base)

    @classmethod
    def at(cls, dataset: lance.LanceDataset, base: str) -> DatasetFiles:
        """The files under `base`, with the storage options that `dataset` has for it."""
        # pylance keeps the options of base paths in other stores beside the dataset's own.
        of_bases: dict[str, dict[str, str]] = getattr(dataset, "_base_store_params", None) or {}
        options = of_bases.get(base) or dataset.latest_storage_options()
        return cls(base, LanceFileSession(base, storage_options=options))

    def path(self, relative: str) -> str:
        """The full path of a file, for messages and as a key."""
        return posixpath.join(self.base, relative)

    @property
    def are_local(self) -> bool:
        """Whether they are on this machine's own disks."""
        return self.local_path("") is not None

    def local_path(self, relative: str) -> Path | None:
        """The file on this machine's own disks, None where it is elsewhere."""
        return None if self._local is None else self._local / relative

    def contains(self, relative: str) -> bool:
        """Whether the file is there."""
        return self._session.contains(relative)

    def read(self, relative: str) -> bytes:
        """A whole file."""
        if self._local is not None:
            return (self._local / relative).read_bytes()
        # A session reads ranges only, and tells no file's length.
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "file"
            self._session.download_file(relative, copy)
            return copy.read_bytes()

    def read_range(self, relative: str, offset: int, length: int) -> bytes:
        """`length` bytes of a file from `offset` on."""
        return self._session.read_range(relative, offset, length)

    def create(self, relative: str, schema: pa.Schema) -> LanceFileWriter:
        """A writer of a new Lance file, which is there once the writer is closed."""
        return self._session.open_writer(relative, schema=schema)

    def list(self, folder: str) -> list[str]:
        """The files in a folder and in those inside it; none where it is not there."""
        return self._session.list(folder)

    def write(self, relative: str, data: bytes) -> None:
        """A whole small file, new or in the place of another."""
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "file"
            copy.write_bytes(data)
            self._session.upload_file(copy, relative)

    def delete(self, relative: str) -> None:
        """Remove a file, and a local folder that it leaves empty; not there is fine, too."""
        with suppress(OSError):
            self._session.delete_file(relative)
        if self._local is not None:
            with suppress(OSError):
                (self._local / relative).parent.rmdir()

    def open(self, relative: str, columns: list[str] | None = None) -> LanceFileReader:
        """A reader of one Lance file; raises what pylance raises where it is not one."""
        return self._session.open_reader(relative, columns)


def local_folder(base: str) -> Path | None:
    """The folder on this machine's own disks that a path or URL is, None where it is elsewhere."""
    parts = urlsplit(base)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    # A letter is the drive of a Windows path.
    return Path(base) if len(parts.scheme) <= 1 else None
