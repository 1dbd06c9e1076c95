"""What a terminal method runs: the DataFrame's plan, rewritten or as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from datafusion import DataFrame, RecordBatchStream

from ..rewrites.rewritten import StandIn
from .function_scan import FunctionScan
from .index_errors import IndexedStream, own_errors
from .index_scan import IndexScan
from .scan_identity import watch


@dataclass(frozen=True, slots=True)
class Execution:
    """A plain DataFrame that gives the rows of another one.

    `index_scans` are the index scans in its plan, by the names of their tables there; `bound`
    are those that `activate` puts in the place of registered tables. `notes` say why
    recognizable predicates are not served. `called` are the scans of table functions that were
    planned while it was active.
    """

    dataframe: DataFrame
    index_scans: Mapping[str, Any] = field(default_factory=dict)
    bound: tuple[StandIn, ...] = ()
    notes: tuple[str, ...] = ()
    binding: Callable[[], AbstractContextManager[None]] = nullcontext
    called: list[FunctionScan] = field(default_factory=list, compare=False)

    @contextmanager
    def activate(self) -> Iterator[None]:
        """Physical plans of `dataframe` have to be made inside, on the same thread.

        Errors of index searches are raised as they are.
        """
        with watch(FunctionScan) as asked:
            try:
                with own_errors(self.searches), own_errors(asked), self.binding():
                    yield
            finally:
                self.called.extend(dict.fromkeys(asked))

    @property
    def searches(self) -> tuple[IndexScan, ...]:
        """The index scans that run, under whatever name."""
        return (*self.index_scans.values(), *(one.provider.index_scan for one in self.bound))

    def adopt(self, result: Any) -> Any:
        """Streams whose iteration raises errors as `activate` does; other results as they are."""
        searches = (*self.searches, *self.called)
        if not searches:
            return result
        if isinstance(result, RecordBatchStream):
            return IndexedStream(result, searches)
        if isinstance(result, list) and result and isinstance(result[0], RecordBatchStream):
            return [IndexedStream(stream, searches) for stream in result]
        return result

    @property
    def uses_index(self) -> bool:
        return bool(self.index_scans or self.bound)


def explains(dataframe: DataFrame) -> bool:
    """Whether the DataFrame is an EXPLAIN or EXPLAIN ANALYZE statement."""
    return _root(dataframe) in ("Explain", "Analyze")


def is_query(dataframe: DataFrame) -> bool:
    """Whether the DataFrame is no statement around a query (COPY, INSERT, CREATE, EXPLAIN, ...)."""
    return not _root(dataframe).startswith(_STATEMENTS)


def writes(dataframe: DataFrame) -> bool:
    """Whether the DataFrame writes the rows of a query: INSERT, COPY or CREATE TABLE AS."""
    return _root(dataframe) in ("Dml", "CopyTo", "CreateMemoryTable")


_STATEMENTS = ("Analyze", "CopyTo", "Create", "Dml", "Drop", "Explain", "Prepare")


def _root(dataframe: DataFrame) -> str:
    return dataframe.logical_plan().display().partition(":")[0]
