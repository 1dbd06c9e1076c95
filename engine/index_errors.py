"""The errors of index searches, as they were raised.

DataFusion runs the search and turns what it raises into an exception of its own, which keeps
the text alone. The index scan still has the error itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from datafusion import RecordBatch, RecordBatchStream


class Failing(Protocol):
    """A scan that may fail when it runs; `error` is then what it raised."""

    @property
    def error(self) -> Exception | None: ...


@contextmanager
def own_errors(scans: Iterable[Failing]) -> Iterator[None]:
    """Raises the error of a scan's search in place of what DataFusion made of it."""
    try:
        yield
    except Exception as error:
        for scan in scans:
            if scan.error is not None and scan.error is not error:
                raise scan.error from error
        raise


class IndexedStream(RecordBatchStream):
    """A stream of DataFusion's that raises the errors of its index scans as they are."""

    def __init__(self, stream: RecordBatchStream, scans: tuple[Failing, ...]) -> None:
        super().__init__(stream.rbs)
        self._scans = scans

    def __next__(self) -> RecordBatch:
        with own_errors(self._scans):
            return super().__next__()

    async def __anext__(self) -> RecordBatch:
        with own_errors(self._scans):
            return await super().__anext__()
