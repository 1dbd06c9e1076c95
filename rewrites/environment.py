"""What a rewrite needs from the session that asks for it."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
from datafusion import DataFrame, SessionContext
from datafusion.plan import LogicalPlan

from ..indexes.query import Query
from ..indexes.snapshot import Snapshot

if TYPE_CHECKING:
    from .analysis import Analysis


class SearchableTable(Hashable, Protocol):
    """A Lance table as the session registered it. Two are the same only if identical."""

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def snapshot(self) -> Snapshot: ...

    @property
    def shown_fragments(self) -> frozenset[int]:
        """The fragments whose rows the table shows."""
        ...


class Environment(Protocol):
    """The session's side of a rewrite.

    `names_scans` says that index scans have to be found again by name in a plan's text,
    `runs_unchanged` that what runs is the plan that is rewritten and no other one over it, and
    `rebuilds` that another plan may run in its place.
    """

    names_scans: bool
    runs_unchanged: bool
    rebuilds: bool

    def flat_context(self) -> SessionContext:
        """A private context whose optimizer turns uncorrelated scalar subqueries into joins."""
        ...

    def nested_context(self) -> SessionContext:
        """A private context whose optimizer leaves uncorrelated scalar subqueries in place."""
        ...

    def own_context(self) -> SessionContext:
        """The session's own context, which is not to be changed."""
        ...

    def scan(self, context: SessionContext, name: str, provider: Any) -> DataFrame:
        """All of a table provider, in one of the contexts above.

        In a private context it has the name; the session's own keeps its names for its user.
        """
        ...

    def recall(self, plan: LogicalPlan) -> Analysis | None:
        """An earlier analysis of an equal plan in the session's own context, if it still holds."""
        ...

    def keep(self, plan: LogicalPlan, analysis: Analysis) -> None:
        """Takes an analysis of the plan in the session's own context, for `recall`."""
        ...

    def watch(self) -> AbstractContextManager[list[SearchableTable]]:
        """Collects the Lance tables that DataFusion asks for anything on this thread."""
        ...

    def scan_key(self, context: SessionContext, scan: LogicalPlan) -> Hashable | None:
        """What tells a table which of its scans in a plan is planned; None where nothing does.

        Scans may share a key.
        """
        ...

    def index_scan(self, table: SearchableTable, query: Query, covered: frozenset[int]) -> Any:
        """A table provider of the query's rows in the covered fragments."""
        ...

    def rest_scan(self, table: SearchableTable, fragment_ids: frozenset[int]) -> Any:
        """A table provider of all rows of the given fragments."""
        ...

    def bound_scan(self, table: SearchableTable, query: Query, covered: frozenset[int]) -> Any:
        """A stand-in for the table: the query's rows where covered, all rows elsewhere."""
        ...
