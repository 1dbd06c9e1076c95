"""Which of this package's tables DataFusion asks, and what stands in for them, on one thread.

DataFusion's plans do not show their table objects; it calls them, on the thread that plans.
So a table tells the watches of its thread that it was asked, and looks there for a stand-in.

When DataFusion plans a scan it asks the table for a `scanner` of the columns that it wants, and
then for the fragments with the filter that the table is to apply. These two tell one scan of a
table from another.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ..rewrites.rewritten import StandIn


@dataclass(frozen=True, slots=True)
class _Watch:
    kind: type
    asked: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ScanKey:
    """What a table is asked for one scan: columns (None: all) and, printed, a filter."""

    columns: tuple[str, ...] | None
    filter: str


_Keyed = Mapping[Hashable | None, Any]

_NONE: Final[Mapping[Any, _Keyed]] = MappingProxyType({})
_WATCHES: ContextVar[tuple[_Watch, ...]] = ContextVar("lance_table_watches", default=())
_SCANS: ContextVar[list[ScanKey] | None] = ContextVar("lance_scan_watch", default=None)
_STAND_INS: ContextVar[Mapping[Any, _Keyed]] = ContextVar("lance_stand_ins", default=_NONE)
_NO_FILTER: Final = str(None)
_TRUE: Final = (str(pa.scalar(True)), str(pc.scalar(True)))

# By the table's id: a thread must not hold a table.
_COLUMNS: ContextVar[tuple[int, tuple[str, ...] | None] | None] = ContextVar(
    "lance_scanner_columns", default=None
)


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
def watch_scans() -> Iterator[list[ScanKey]]:
    """The scans that are planned on this thread meanwhile, in that order."""
    planned: list[ScanKey] = []
    token = _SCANS.set(planned)
    try:
        yield planned
    finally:
        _SCANS.reset(token)


def scanner_asked(table: Any, columns: Sequence[str] | None) -> None:
    """Takes what a scanner of the table was asked for, which begins the planning of a scan."""
    _COLUMNS.set((id(table), None if columns is None else tuple(columns)))


def fragments_asked(table: Any, filter: Any) -> Any | None:
    """Takes the filter of the scan that is being planned; gives what stands in for the table.

    None where nothing does.
    """
    asked = _COLUMNS.get()
    _COLUMNS.set(None)
    columns = asked[1] if asked is not None and asked[0] == id(table) else None
    key = ScanKey(columns, _NO_FILTER if str(filter) in _TRUE else str(filter))
    planned = _SCANS.get()
    if planned is not None:
        planned.append(key)
    by_key = _STAND_INS.get().get(table, _NONE)
    return by_key.get(None, by_key.get(key))


@contextmanager
def stand_ins(bound: Iterable[StandIn]) -> Iterator[None]:
    """Lets scans that are planned on this thread meanwhile read another table object.

    Other tables keep the stand-ins that they have.
    """
    by_table: dict[Any, dict[Hashable | None, Any]] = {}
    for one in bound:
        by_table.setdefault(one.table, {})[one.key] = one.provider
    token = _STAND_INS.set({**_STAND_INS.get(), **by_table})
    try:
        yield
    finally:
        _STAND_INS.reset(token)


def stand_in(table: Any) -> Any | None:
    """What stands in for all scans of `table` on this thread; None where nothing does."""
    return _STAND_INS.get().get(table, _NONE).get(None)
