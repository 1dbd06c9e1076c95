"""What a session keeps of the indexes that it has read, within a byte limit."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar, cast

Value = TypeVar("Value")


class ReaderCache:
    """A least-recently-used cache of values with known sizes in bytes; thread-safe.

    Keys begin with the uuid of an index (or the place of a table version) and go on with
    what of it is kept. Two threads that miss the same key at once may both load it: the
    values are immutable, and waiting for another thread's read can cost more.
    """

    def __init__(self, byte_limit: int) -> None:
        self.byte_limit = byte_limit
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    @property
    def nbytes(self) -> int:
        """How many bytes the kept values take."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable, load: Callable[[], tuple[Value, int]]) -> Value:
        """The value of `key`, from the cache or from `load`, which also tells its bytes."""
        found = self.peek(key)
        if found is not None:
            return cast("Value", found)
        value, nbytes = load()
        self.put(key, value, nbytes)
        return value

    def peek(self, key: Hashable) -> Any | None:
        """The value of `key` if it is kept, else None."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: Hashable, value: object, nbytes: int) -> None:
        """Keep `value`, and drop the least recently used ones beyond the limit.

        A value larger than the whole limit is not kept.
        """
        if nbytes > self.byte_limit:
            return
        with self._lock:
            replaced = self._entries.pop(key, None)
            if replaced is not None:
                self._bytes -= replaced[1]
            self._entries[key] = (value, nbytes)
            self._bytes += nbytes
            while self._bytes > self.byte_limit:
                _, (_, dropped) = self._entries.popitem(last=False)
                self._bytes -= dropped
