"""Values that are worth keeping, as many of them as fit."""

from __future__ import annotations

from threading import Lock
from typing import Final, Generic, TypeVar

REMEMBERED: Final = 256

Key = TypeVar("Key")
Value = TypeVar("Value")


class Memory(Generic[Key, Value]):
    """The values that were used last, `limit` of them or all. Threads may share it."""

    def __init__(self, limit: int | None = REMEMBERED) -> None:
        self._lock = Lock()
        self._values: dict[Key, Value] = {}
        self._limit = limit

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Key) -> Value | None:
        with self._lock:
            value = self._values.pop(key, None)
            if value is not None:
                self._values[key] = value
            return value

    def put(self, key: Key, value: Value) -> None:
        with self._lock:
            self._values.pop(key, None)
            self._values[key] = value
            if self._limit is not None and len(self._values) > self._limit:
                del self._values[next(iter(self._values))]

    def drop(self, key: Key) -> None:
        with self._lock:
            self._values.pop(key, None)

    def clear(self) -> None:
        with self._lock:
            self._values.clear()
