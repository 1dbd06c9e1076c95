"""The bound query tree: what is asked of the indexes; `evaluation` answers it.

A tree can always be answered: a node whose answer no index could tell (the complement of
a superset, say) is refused when it is made. `exact`, `null_known` and `indexes` of a node
are known without reading a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import pyarrow as pa

from .errors import InvalidArgumentError
from .label_list import reader as label_list
from .label_list.keys import bit_patterns
from .list_element.key_range import ENUMERATION_LIMIT, KeySearch
from .literals import literals
from .manifest import LanceIndex
from .minhash_lsh.details import parameters_of
from .minhash_lsh.search import RowFilter


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
        needles = literals(self.labels)
        return ", ".join([*needles, "NULL"] if self.match_null else needles)


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
class AnyElement:
    """`any_element(column, predicate)`: TRUE where one element of the list satisfies `search`.

    `keys` are the current names of the index's keys, in key order. `whole` says that the
    search is all of the predicate; else other conditions make its rows a superset.
    `null_determined` says that each condition is UNKNOWN on an element exactly where its key
    is NULL: then the rows are known on which a whole predicate is NULL, which are those of the
    NULL lists and those with an UNKNOWN element and no TRUE one.
    """

    index: LanceIndex
    column: str
    keys: tuple[str, ...]
    search: KeySearch
    whole: bool
    null_determined: bool

    @property
    def exact(self) -> bool:
        return self.whole

    @property
    def null_known(self) -> bool:
        """Whether the NULL rows are determined, in a number of ranges that is searched."""
        return (
            self.whole
            and self.null_determined
            and self.search.null_range_count <= ENUMERATION_LIMIT
        )

    @property
    def indexes(self) -> frozenset[LanceIndex]:
        return frozenset((self.index,))

    def __str__(self) -> str:
        return f"any_element({self.column}, {self.search.describe(self.keys)})"


@dataclass(frozen=True, slots=True)
class WithinDistance:
    """TRUE where `low` to `high` positions of the column's signatures differ from the text's.

    NULL on rows without signature (a NULL text, one without tokens), and on all rows where
    `text` has none. With `low` above `high` it is TRUE nowhere.
    """

    index: LanceIndex
    column: str
    text: str | None
    low: int
    high: int

    @property
    def exact(self) -> bool:
        return True

    @property
    def null_known(self) -> bool:
        return True

    @property
    def indexes(self) -> frozenset[LanceIndex]:
        return frozenset((self.index,))

    def __str__(self) -> str:
        num_hashes = parameters_of(self.index).num_hashes
        call = f"minhash_distance({self.column}, {_quoted(self.text)})"
        if self.low > self.high:
            return f"{call} < 0"
        if self.low == self.high:
            return f"{call} = {self.low}/{num_hashes}"
        if self.low == 0:
            return f"{call} <= {self.high}/{num_hashes}"
        if self.high == num_hashes:
            return f"{call} >= {self.low}/{num_hashes}"
        return f"{call} BETWEEN {self.low}/{num_hashes} AND {self.high}/{num_hashes}"


@dataclass(frozen=True, slots=True)
class Nearest:
    """The first `count` of the rows that pass, in the order of their distance to `text`.

    A row passes that `condition` finds and `passing` lets through, where there are such. Rows
    without signature come last, or with `nulls` first. With `ties`, rows as near as the last
    are among them too, and all rows without signature where one is.
    """

    index: LanceIndex
    column: str
    text: str | None
    count: int
    ties: bool
    nulls: bool
    condition: Query | None = None
    passing: RowFilter | None = None

    @property
    def exact(self) -> bool:
        return True

    @property
    def null_known(self) -> bool:
        return False

    @property
    def indexes(self) -> frozenset[LanceIndex]:
        others = frozenset() if self.condition is None else self.condition.indexes
        return others | {self.index}

    def __str__(self) -> str:
        filters = [] if self.condition is None else [_enclosed(self.condition)]
        if self.passing is not None:
            filters.append(str(self.passing))
        where = f", where {' AND '.join(filters)}" if filters else ""
        return f"nearest({self.column}, {_quoted(self.text)}, {self.count}{where})"


@dataclass(frozen=True, slots=True)
class _Several:
    """Queries, at least two, of which a connective makes one."""

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


@dataclass(frozen=True, slots=True)
class And(_Several):
    """All of `children`."""

    def __str__(self) -> str:
        return _joined(self.children, "AND")


@dataclass(frozen=True, slots=True)
class Or(_Several):
    """Any of `children`."""

    def __str__(self) -> str:
        return _joined(self.children, "OR")


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


Query: TypeAlias = (
    HasAny | HasAll | AnyElement | WithinDistance | Nearest | And | Or | Not | Is | Superset
)


_Leaf = TypeVar("_Leaf", HasAny, HasAll, AnyElement, WithinDistance, Nearest)


def leaves(query: Query, kind: type[_Leaf]) -> Iterator[_Leaf]:
    """The leaves of that kind, from left to right."""
    if isinstance(query, kind):
        yield query
    elif isinstance(query, _Several):
        for child in query.children:
            yield from leaves(child, kind)
    elif isinstance(query, Not | Is | Superset):
        yield from leaves(query.child, kind)


def _need_two(children: Sequence[Query]) -> None:
    if len(children) < 2:
        raise InvalidArgumentError("children", len(children), "two queries or more")


def _joined(children: Sequence[Query], word: str) -> str:
    parts = (str(child) if isinstance(child, Not) else _enclosed(child) for child in children)
    return f" {word} ".join(parts)


def _quoted(text: str | None) -> str:
    return "NULL" if text is None else literals(pa.array([text]))[0]


def _enclosed(query: Query) -> str:
    """A part of a longer text: with parentheses where its own words would mix with it."""
    inner = query.child if isinstance(query, Superset) else query
    return f"({query})" if isinstance(inner, And | Or | Not | Is) else str(query)
