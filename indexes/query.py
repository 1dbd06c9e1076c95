"""The bound query tree: what is asked of the indexes, and the answer to it.

A tree can always be answered: a node whose answer no index could tell (the complement of
a superset, say) is refused when it is made. `exact`, `null_known` and `indexes` of a node
are known without reading a file.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from .answer import Answer, conjoin, disjoin, negate
from .errors import InvalidArgumentError
from .label_list import reader as label_list
from .label_list.keys import bit_patterns
from .manifest import LanceIndex
from .row_set import RowSet
from .snapshot import SearchStats, Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class _Labels:
    """A list column's labels, asked for together; equal to another by value, bit by bit."""

    index: LanceIndex
    column: str
    labels: pa.Array
    match_null: bool
    _value: tuple[object, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.labels.null_count:
            raise InvalidArgumentError("labels", self.labels.to_pylist(), "labels without NULL")
        value = (
            type(self),
            self.index,
            self.column,
            self.labels.type,
            bit_patterns(self.labels),
            self.match_null,
        )
        object.__setattr__(self, "_value", value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Labels):
            return NotImplemented
        return self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    @property
    def exact(self) -> bool:
        return True

    @property
    def null_known(self) -> bool:
        """Whether the NULL lists are stored, which index version 0 does not do."""
        return label_list.stores_null_lists(self.index)

    @property
    def indexes(self) -> frozenset[LanceIndex]:
        return frozenset((self.index,))

    def _needles(self) -> str:
        literals = [_literal(label) for label in self.labels.to_pylist()]
        return ", ".join([*literals, "NULL"] if self.match_null else literals)


@dataclass(frozen=True, slots=True, eq=False)
class HasAny(_Labels):
    """`array_has_any(column, labels)`: TRUE where the list has one of the labels.

    With `match_null`, NULL is among the needles, and a NULL element matches it. A NULL
    list gives NULL, any other list TRUE or FALSE. No labels at all find nothing. `labels`
    are of the column's element type, without repetitions.
    """

    def __str__(self) -> str:
        if len(self.labels) == 1 and not self.match_null:
            return f"array_has({self.column}, {self._needles()})"
        return f"array_has_any({self.column}, [{self._needles()}])"


@dataclass(frozen=True, slots=True, eq=False)
class HasAll(_Labels):
    """`array_has_all(column, labels)`: TRUE where the list has every one of the labels.

    NULLs are as in `HasAny`. No labels at all are found in every list that is not NULL.
    """

    def __str__(self) -> str:
        return f"array_has_all({self.column}, [{self._needles()}])"


@dataclass(frozen=True, slots=True)
class And:
    """All of `children`, of which there are at least two."""

    children: tuple[Query, ...]

    def __post_init__(self) -> None:
        _need_two(self.children)

    @property
    def exact(self) -> bool:
        return all(child.exact for child in self.children)

    @property
    def null_known(self) -> bool:
        return self.exact and all(child.null_known for child in self.children)

    @property
    def indexes(self) -> frozenset[LanceIndex]:
        return frozenset().union(*(child.indexes for child in self.children))

    def __str__(self) -> str:
        return " AND ".join(_enclosed(c) if isinstance(c, Or) else str(c) for c in self.children)


@dataclass(frozen=True, slots=True)
class Or:
    """Any of `children`, of which there are at least two."""

    children: tuple[Query, ...]

    def __post_init__(self) -> None:
        _need_two(self.children)

    @property
    def exact(self) -> bool:
        return all(child.exact for child in self.children)

    @property
    def null_known(self) -> bool:
        return self.exact and all(child.null_known for child in self.children)

    @property
    def indexes(self) -> frozenset[LanceIndex]:
        return frozenset().union(*(child.indexes for child in self.children))

    def __str__(self) -> str:
        return " OR ".join(map(str, self.children))


@dataclass(frozen=True, slots=True)
class Not:
    """NOT `child`; the child is exact and its NULL rows are known."""

    child: Query

    def __post_init__(self) -> None:
        if not (self.child.exact and self.child.null_known):
            raise InvalidArgumentError(
                "child", str(self.child), "an exact query with known NULL rows"
            )

    @property
    def exact(self) -> bool:
        return True

    @property
    def null_known(self) -> bool:
        return True

    @property
    def indexes(self) -> frozenset[LanceIndex]:
        return self.child.indexes

    def __str__(self) -> str:
        return f"NOT {_enclosed(self.child)}"


@dataclass(frozen=True, slots=True)
class Is:
    """`child` IS TRUE, IS FALSE or, with None, IS NULL (IS UNKNOWN): never NULL itself.

    IS NOT TRUE and the like are `Not(Is(…))`. IS FALSE and IS NULL need a child that is
    exact and whose NULL rows are known.
    """

    child: Query
    value: bool | None

    def __post_init__(self) -> None:
        if self.value is not True and not (self.child.exact and self.child.null_known):
            raise InvalidArgumentError(
                "child", str(self.child), "an exact query with known NULL rows"
            )

    @property
    def exact(self) -> bool:
        return self.child.exact

    @property
    def null_known(self) -> bool:
        return self.child.exact

    @property
    def indexes(self) -> frozenset[LanceIndex]:
        return self.child.indexes

    def __str__(self) -> str:
        word = "NULL" if self.value is None else str(self.value).upper()
        return f"{_enclosed(self.child)} IS {word}"


@dataclass(frozen=True, slots=True)
class Superset:
    """A predicate that is TRUE only where `child` is: `child AND` what no index answers."""

    child: Query

    @property
    def exact(self) -> bool:
        return False

    @property
    def null_known(self) -> bool:
        return False

    @property
    def indexes(self) -> frozenset[LanceIndex]:
        return self.child.indexes

    def __str__(self) -> str:
        return str(self.child)


Query: TypeAlias = HasAny | HasAll | And | Or | Not | Is | Superset
