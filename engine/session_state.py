"""What a session remembers while it stays as it is: its configuration, functions and rules."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Final, Generic, TypeVar

# Any other statement may set something or register a function.
_QUERY: Final = re.compile(r"[\s(]*(?:select|with|values|explain)\b", re.IGNORECASE)

Remembered = TypeVar("Remembered")


class SessionState(Generic[Remembered]):
    """What is remembered in the present state of a session; `begin` makes it, empty.

    A session whose state others hold, too, may change at any time: it remembers nothing.
    Whoever still works with what was remembered before a change works for himself alone.
    """

    def __init__(self, begin: Callable[[], Remembered], *, shared: bool) -> None:
        self._begin = begin
        self._remembered = None if shared else begin()
        self._lock = threading.Lock()

    @property
    def remembered(self) -> Remembered | None:
        return self._remembered

    def share(self) -> None:
        """Notes that somebody else holds the session's state from now on."""
        with self._lock:
            self._remembered = None

    def change(self) -> None:
        """Notes that something may have changed."""
        with self._lock:
            if self._remembered is not None:
                self._remembered = self._begin()


def may_change(statement: str) -> bool:
    """Whether a statement may change the session: it is no query.

    >>> may_change("(SELECT 1)"), may_change("RESET datafusion.execution.batch_size")
    (False, True)
    """
    return not _QUERY.match(statement)
