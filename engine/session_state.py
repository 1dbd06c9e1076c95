"""Whether a session is still as it was: its configuration, its functions and its rules."""

from __future__ import annotations

import re
import threading
from typing import Final

# Any other statement may set something or register a function.
_QUERY: Final = re.compile(r"[\s(]*(?:select|with|values|explain)\b", re.IGNORECASE)


class SessionState:
    """A number that is another one whenever something may have changed the session.

    A session whose state others hold, too, may change at any time: it has no number.
    """

    def __init__(self, *, shared: bool) -> None:
        self._shared = shared
        self._number = 0
        self._lock = threading.Lock()

    @property
    def number(self) -> int | None:
        return None if self._shared else self._number

    def share(self) -> None:
        """Notes that somebody else holds the session's state from now on."""
        self._shared = True

    def change(self) -> None:
        """Notes that something may have changed."""
        with self._lock:
            self._number += 1

    def ran(self, statement: str) -> None:
        """Notes that a statement ran, which changes nothing if it is a query."""
        if not _QUERY.match(statement):
            self.change()
