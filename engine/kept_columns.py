"""Columns of narrow values, kept whole: reading some rows of them again then costs next to nothing.

Lance keeps no data in memory between two reads, and a read by address costs a millisecond
whatever it reads. So a column that is read again and again is read whole once, when the reads
so far have cost as much as that: at worst it is all twice the work.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Final, TypeAlias

import pyarrow as pa

from ..indexes.cache import ReaderCache
from .column_cost import read_cost
from .fetch_cost import read_microseconds
from .value_width import fixed_width

_WIDEST: Final = 16
_SHARE_OF_CACHE: Final = 2

ReadWhole: TypeAlias = Callable[[Sequence[str]], pa.Table]
"""Reads columns of all live rows of the table."""


class KeptColumns:
    """The kept columns of one version of a table; thread-safe.

    `version` tells the version from any other that the cache knows; `rows` is how many live
    rows it has. A column is kept if its values have at most 16 bytes each and all of it takes
    at most half of the cache.
    """

    def __init__(
        self, cache: ReaderCache, version: Hashable, rows: int, read_whole: ReadWhole
    ) -> None:
        self._cache = cache
        self._version = version
        self._rows = rows
        self._read_whole = read_whole
        self._spent: dict[tuple[str, ...], float] = {}
        self._lock = threading.Lock()

    def spent(self, fields: Sequence[pa.Field], seconds: float) -> None:
        """Counts what a read of some of the rows has cost."""
        key = _names(fields)
        with self._lock:
            self._spent[key] = self._spent.get(key, 0.0) + seconds

    def get(self, fields: Sequence[pa.Field]) -> pa.RecordBatch | None:
        """All live rows, in the table's order; None where the columns are not kept.

        Reads them whole where they are missing and the reads counted so far have cost as much.
        """
        names, types = _names(fields), [field.type for field in fields]
        if not self._fit(types):
            return None
        columns = [self._cache.peek(self._key(name)) for name in names]
        missing = [name for name, column in zip(names, columns, strict=True) if column is None]
        if missing:
            whole = read_microseconds(map(read_cost, types), self._rows, self._rows)
            if self._spent.get(names, 0.0) * 1e6 < whole:
                return None
            with self._lock:
                self._spent[names] = 0.0
            read = self._read_whole(missing)
            for at, name in enumerate(names):
                if columns[at] is None:
                    columns[at] = column = read[name].combine_chunks()
                    self._cache.put(self._key(name), column, column.nbytes)
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))

    def _fit(self, types: Sequence[pa.DataType]) -> bool:
        if not types or not all(pa.types.is_primitive(kind) for kind in types):
            return False
        widths = [fixed_width(kind) or 0 for kind in types]
        nbytes = self._rows * sum(widths)
        return max(widths) <= _WIDEST and nbytes * _SHARE_OF_CACHE <= self._cache.byte_limit

    def _key(self, name: str) -> Hashable:
        return (self._version, "column", name)


def _names(fields: Sequence[pa.Field]) -> tuple[str, ...]:
    return tuple(field.name for field in fields)
