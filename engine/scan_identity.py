"""Which of this package's tables DataFusion asks, and what stands in for them, on one thread.

DataFusion's plans do not show their table objects; it calls them, on the thread that plans.
So a table tells the watches of its thread that it was asked, and looks there for a stand-in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class _Watch:
    kind: type
    asked: list[Any] = field(default_factory=list)


_NONE: Final[Mapping[Any, Any]] = MappingProxyType({})
_WATCHES: ContextVar[tuple[_Watch, ...]] = ContextVar("lance_table_watches", default=())
_STAND_INS: ContextVar[Mapping[Any, Any]] = ContextVar("lance_stand_ins", default=_NONE)


@contextmanager
def watch(kind: type) -> Iterator[list[Any]]:
    """The tables of a kind that are asked for anything on this thread meanwhile, in that order."""
    added = _Watch(kind)
    token = _WATCHES.set((*_WATCHES.get(), added))
    try:
        yield added.asked
    finally:
        _WATCHES.reset(token)


def touched(table: Any) -> None:
    """Tells the watches of this thread that DataFusion asked `table`."""
    for watching in _WATCHES.get():
        if isinstance(table, watching.kind):
            watching.asked.append(table)


@contextmanager
def stand_ins(by_table: Mapping[Any, Any]) -> Iterator[None]:
    """Lets scans that are planned on this thread meanwhile read another table object.

    Other tables keep the stand-in that they have.
    """
    token = _STAND_INS.set({**_STAND_INS.get(), **by_table})
    try:
        yield
    finally:
        _STAND_INS.reset(token)


def stand_in(table: Any) -> Any | None:
    """What stands in for `table` on this thread; None where nothing does."""
    return _STAND_INS.get().get(table)
