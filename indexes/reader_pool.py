"""Readers of one file, each used by one thread at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition
from typing import Generic, TypeVar

Reader = TypeVar("Reader")


class ReaderPool(Generic[Reader]):
    """At most `most` readers; further ones are opened when all others are in use.

    A reader of pylance's that two threads use at once raises "Already borrowed".
    """

    def __init__(self, first: Reader, another: Callable[[], Reader], most: int) -> None:
        self._another = another
        self._most = most
        self._free = [first]
        self._opened = 1
        self._changed = Condition()

    @contextmanager
    def reader(self) -> Iterator[Reader]:
        """A reader that nobody else has; raises what opening one raises."""
        reader = self._take()
        try:
            yield reader
        finally:
            self._give(reader)

    def _take(self) -> Reader:
        with self._changed:
            while not self._free and self._opened == self._most:
                self._changed.wait()
            if self._free:
                return self._free.pop()
            self._opened += 1
        try:
            return self._another()
        except BaseException:
            with self._changed:
                self._opened -= 1
                self._changed.notify()
            raise

    def _give(self, reader: Reader) -> None:
        with self._changed:
            self._free.append(reader)
            self._changed.notify()
