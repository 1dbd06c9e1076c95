"""What a terminal method runs: the DataFrame's plan, rewritten or as it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from datafusion import DataFrame


@dataclass(frozen=True, slots=True)
class Execution:
    """A plain DataFrame that gives the rows of another one.

    `index_scans` are the index scans in its plan, by the names of their tables there; `bound`
    are those that `activate` puts in the place of registered tables, by those tables. `notes`
    say why recognizable predicates are not served.
    """

    dataframe: DataFrame
    index_scans: Mapping[str, Any] = field(default_factory=dict)
    bound: Mapping[Any, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    binding: Callable[[], AbstractContextManager[None]] = nullcontext

    def activate(self) -> AbstractContextManager[None]:
        """Physical plans of `dataframe` have to be made inside, on the same thread."""
        return self.binding()

    @property
    def thread_bound(self) -> bool:
        """Whether planning on another thread would miss what `activate` does."""
        return bool(self.bound)

    @property
    def uses_index(self) -> bool:
        return bool(self.index_scans or self.bound)


def explains(dataframe: DataFrame) -> bool:
    """Whether the DataFrame is an EXPLAIN or EXPLAIN ANALYZE statement."""
    return _root(dataframe) in ("Explain", "Analyze")


def is_query(dataframe: DataFrame) -> bool:
    """Whether the DataFrame is no statement around a query (COPY, INSERT, CREATE, EXPLAIN, ...)."""
    return not _root(dataframe).startswith(_STATEMENTS)


_STATEMENTS = ("Analyze", "CopyTo", "Create", "Dml", "Drop", "Explain", "Prepare")


def _root(dataframe: DataFrame) -> str:
    return dataframe.logical_plan().display().partition(":")[0]
