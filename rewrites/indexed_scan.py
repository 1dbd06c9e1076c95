"""A scan of a Lance table, as the rules see it: its columns and the indexes on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from datafusion.expr import Expr
from datafusion.plan import LogicalPlan

from ..indexes.errors import UnusableIndexError
from ..indexes.manifest import LanceIndex
from ..indexes.snapshot import Snapshot
from .environment import DistanceFunction


@dataclass(frozen=True, slots=True)
class IndexedScan:
    """`filtered` is the scan with what it is read under, and `schema` that of the whole table.

    `names` are the table's names of columns that a predicate knows under other ones. `recognize` is
    `Environment.distance_function`. `notes` collects why a recognizable predicate is not served.
    """

    table_name: str
    filtered: LogicalPlan
    schema: pa.Schema
    snapshot: Snapshot
    names: Mapping[str, str] = field(default_factory=dict)
    recognize: Callable[[str, str], DistanceFunction | None] = lambda _name, _plan: None
    notes: list[str] = field(default_factory=list)

    def column_of(self, expression: Expr) -> str | None:
        """The name of the column that the expression reads, through one cast at most."""
        variant = expression.variant_name()
        if variant == "Cast":
            expression = expression.rex_call_operands()[0]
            variant = expression.variant_name()
        return self.own_name(expression.to_variant().name()) if variant == "Column" else None

    def own_name(self, name: str) -> str:
        """The table's name of a column that a predicate names."""
        return self.names.get(name, name)

    def calls_own(self, function: str) -> bool:
        """Whether `function` is DataFusion's own, not one that a user registered in its place.

        The expression shows a function's name only; a registered one tells it in the plan.
        """
        return f'name: "{function}"' not in repr(self.filtered)

    def distance_function(self, name: str) -> DistanceFunction | None:
        """The MinHash distance or similarity of that name; None for any other function."""
        return self.recognize(name, repr(self.filtered))

    def element_type(self, column: str) -> pa.DataType:
        """The type of the elements of a list column."""
        return self.schema.field(column).type.value_type

    def index_on(self, column: str, kind: str) -> LanceIndex | None:
        """The first usable index of that kind on the column."""
        return next(self.indexes_on(column, kind), None)

    def indexes_on(self, column: str, kind: str) -> Iterator[LanceIndex]:
        """The usable indexes of that kind on the column; one that covers nothing is noted."""
        if self.snapshot.indexes_unread is not None:
            reason = f"its indexes are not known: {self.snapshot.indexes_unread}"
            self.notes.append(f"table {self.table_name}: {reason}")
        for index in self.snapshot.indexes_on(column):
            if index.kind != kind:
                continue
            try:
                covered = self.snapshot.covered_fragments(index)
            except UnusableIndexError as error:
                self.notes.append(f"table {self.table_name}: {error}")
                continue
            if covered:
                yield index
            else:
                self.note(index, "covers no fragment of this version")

    def note(self, index: LanceIndex, reason: str) -> None:
        """Records why the index does not serve a predicate."""
        self.notes.append(f"table {self.table_name}, index {index.name}: {reason}")
