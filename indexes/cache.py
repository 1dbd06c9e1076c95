"""What a session keeps of the indexes that it has read, within limits."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Final, TypeVar

Value = TypeVar("Value")

_OPEN_FILES: Final = 128


class ReaderCache:
    """A least-recently-used cache of values with known sizes; thread-safe.

    `byte_limit` bounds the bytes of all values, `open_file_limit` how many of them hold a
    file open. Keys begin with an index's uuid, or with the place of a table version, and
    go on with what of it is kept. Two threads that miss the same key at once may both load
    it: values are immutable, and waiting for another thread's read can cost more.
    """

    def __init__(self, byte_limit: int, open_file_limit: int = _OPEN_FILES) -> None:
        self.byte_limit = byte_limit
        self.open_file_limit = open_file_limit
        self._entries: OrderedDict[Hashable, tuple[Any, int, int]] = OrderedDict()
        self._bytes = 0
        self._handles = 0
        self._lock = Lock()

    @property
    def nbytes(self) -> int:
        """How many bytes the kept values take."""
        return self._bytes

    @property
    def open_files(self) -> int:
        """How many of the kept values hold a file open."""
        return self._handles

    def __len__(self) -> int:
        return len(self._entries)

    def get(
        self, key: Hashable, load: Callable[[], tuple[Value, int]], *, handles: int = 0
    ) -> Value:
        """The value of `key`, kept or from `load`, which returns it with its bytes.

        `handles` is the number of files that the value holds open.
        """
        found = self.peek(key)
        if found is not None:
            return found
        value, nbytes = load()
        self.put(key, value, nbytes, handles=handles)
        return value

    def peek(self, key: Hashable) -> Any | None:
        """The value of `key` if it is kept, else None."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: Hashable, value: object, nbytes: int, *, handles: int = 0) -> None:
        """Keep `value`, dropping the least recently used ones beyond a limit.

        A value that alone is beyond one is not kept.
        """
        if nbytes > self.byte_limit or handles > self.open_file_limit:
            return
        with self._lock:
            self._drop(key)
            self._entries[key] = (value, nbytes, handles)
            self._bytes += nbytes
            self._handles += handles
            while self._bytes > self.byte_limit:
                self._drop(next(iter(self._entries)))
            while self._handles > self.open_file_limit:
                self._drop(next(k for k, entry in self._entries.items() if entry[2]))

    def _drop(self, key: Hashable) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= entry[1]
            self._handles -= entry[2]
