"""Which Lance tables DataFusion asks, and what stands in for them, on one thread.

DataFusion's plans do not show their table objects; it calls them, on the thread that plans.
So a table tells the watch of its thread that it was asked, and looks there for a stand-in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_WATCH: ContextVar[list[Any] | None] = ContextVar("lance_table_watch", default=None)
_STAND_INS: ContextVar[Mapping[Any, Any] | None] = ContextVar("lance_stand_ins", default=None)


@contextmanager
def watch() -> Iterator[list[Any]]:
    """The tables that are asked for anything on this thread meanwhile, in that order."""
    asked: list[Any] = []
    token = _WATCH.set(asked)
    try:
        yield asked
    finally:
        _WATCH.reset(token)


def touched(table: Any) -> None:
    """Tells the watch of this thread that DataFusion asked `table`."""
    asked = _WATCH.get()
    if asked is not None:
        asked.append(table)


@contextmanager
def stand_ins(by_table: Mapping[Any, Any]) -> Iterator[None]:
    """Lets scans that are planned on this thread meanwhile read another table object."""
    token = _STAND_INS.set(by_table)
    try:
        yield
    finally:
        _STAND_INS.reset(token)


def stand_in(table: Any) -> Any | None:
    """What stands in for `table` on this thread; None where nothing does."""
    by_table = _STAND_INS.get()
    return None if by_table is None else by_table.get(table)
