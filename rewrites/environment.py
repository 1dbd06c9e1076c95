"""What a rewrite needs from the session that asks for it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
from datafusion import DataFrame, SessionContext
from datafusion.expr import Expr
from datafusion.plan import LogicalPlan

from ..indexes.minhash_lsh.parameters import MinHashParameters
from ..indexes.minhash_lsh.search import RowFilter
from ..indexes.query import Query
from ..indexes.snapshot import Snapshot

if TYPE_CHECKING:
    from .analysis import Analysis


@dataclass(frozen=True, slots=True)
class DistanceFunction:
    """A function of two texts: the share of positions that differ, or with `similar` agree."""

    parameters: MinHashParameters
    similar: bool


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

    def distance_function(self, name: str, plan: str) -> DistanceFunction | None:
        """The MinHash distance or similarity of that name in a plan, of which `plan` is the `repr`.

        None for any other function, a user's own of such a name included.
        """
        ...

    def row_filter(
        self,
        table: SearchableTable,
        reference: tuple[str | None, str | None, str],
        predicates: Sequence[Expr],
    ) -> RowFilter:
        """Tells on which rows of the table each of the predicates is TRUE.

        They may qualify the table's columns with `reference`.
        """
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
