"""Hypothesis strategies: tables with a list element index, and conditions on their rows.

A table has an `id`, a column `d` of lists of structs, and `tags`, lists of labels with an index of
their own. Its rows are known as Python values from before they were written.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from datafusion_lance.indexes.list_element.builder import build_segment, commit_segments

from .any_element_cases import (
    KINDS,
    NAMES,
    Kind,
    Leaf,
    field_of,
    leaves_of,
    nested_kinds,
    predicates,
)
from .any_element_reference import (
    And,
    Between,
    BooleanField,
    Compare,
    Element,
    Field,
    In,
    Is,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    StartsWith,
    Truth,
    any_element,
)

FRAGMENT_ROWS = 24
LABELS = ("a", "b", "c", "it's")
KEY_KINDS = tuple(kind for kind in KINDS if not pa.types.is_decimal(kind.type))
# Zeros, NaN and fields that are predicates by themselves: what has the most rules of its own.
PECULIAR_KINDS = tuple(
    kind
    for kind in KINDS
    if pa.types.is_floating(kind.type) or kind.type in (pa.bool_(), pa.string())
)


@dataclass(frozen=True, slots=True)
class Layout:
    """How a table is written: its fragments, the segments over them, and what changed since.

    `segments` are the numbers of fragments that each segment is over, in the order of the rows;
    the fragments after those have no index. Each segment is built when its rows are the last.
    Rows are deleted before and after; those `untagged` are written anew after, with NULL tags;
    where it is `compacted`, that comes last.
    """

    segments: tuple[int, ...]
    without_index: int
    deleted_before: frozenset[int]
    deleted_after: frozenset[int]
    untagged: frozenset[int]
    compacted: bool
    stable_row_ids: bool

    @property
    def fragments(self) -> int:
        return sum(self.segments) + self.without_index


@dataclass(frozen=True, slots=True)
class Table:
    """A table before it is written, fragment by fragment.

    `keys` are those of its list element index, in order.
    """

    fields: dict[str, Any]
    keys: tuple[str, ...]
    fragments: tuple[pa.Table, ...]
    layout: Layout

    def live_rows(self) -> list[dict[str, Any]]:
        gone = self.layout.deleted_before | self.layout.deleted_after
        rows = (row for fragment in self.fragments for row in fragment.to_pylist())
        return [
            {**row, "tags": None} if row["id"] in self.layout.untagged else row
            for row in rows
            if row["id"] not in gone
        ]

    def write(self, path: Path) -> None:
        """Fragment by fragment, and each segment as soon as its fragments are there."""
        layout, first, built = self.layout, 0, []
        for number, count in enumerate((*layout.segments, layout.without_index)):
            stop = first + count
            for fragment in range(first, stop):
                lance.write_dataset(
                    self.fragments[fragment],
                    path,
                    mode="append" if fragment else "create",
                    enable_stable_row_ids=layout.stable_row_ids,
                )
            dataset = lance.dataset(path)
            _delete(dataset, [i for i in layout.deleted_before if i // FRAGMENT_ROWS < stop])
            known = {i for segment in built for i in segment.fragment_ids}
            new = {fragment.fragment_id for fragment in dataset.get_fragments()} - known
            if number < len(layout.segments) and new:
                built.append(
                    build_segment(dataset, "d", self.keys, fragment_ids=new, progress=False)
                )
            if number == len(layout.segments) - 1:
                commit_segments(dataset, built, "elements")
                dataset.create_scalar_index("tags", "LABEL_LIST", name="labels")
            first = stop
        dataset = lance.dataset(path)
        if layout.untagged:
            dataset.update({"tags": "NULL"}, where=_among(layout.untagged))
        _delete(dataset, layout.deleted_after)
        if layout.compacted:
            dataset.optimize.compact_files(target_rows_per_fragment=2 * FRAGMENT_ROWS)


def _delete(dataset: lance.LanceDataset, ids: Collection[int]) -> None:
    if ids:
        dataset.delete(_among(ids))


def _among(ids: Collection[int]) -> str:
    return f"id IN ({', '.join(map(str, sorted(ids)))})"


# -- tables -------------------------------------------------------------------------------


def _layouts() -> st.SearchStrategy[Layout]:
    ids = st.frozensets(st.integers(0, FRAGMENT_ROWS * 5 - 1), max_size=12)
    return st.builds(
        Layout,
        st.sampled_from([(3,), (1, 2), (2, 1, 1)]),
        st.integers(0, 1),
        ids,
        ids,
        st.just(frozenset[int]()) | ids,
        st.sampled_from([False] * 5 + [True]),
        st.booleans(),
    )


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """A table with any types of fields, one to three of which are keys in any order."""
    key_kinds = st.sampled_from(KEY_KINDS) | st.sampled_from(PECULIAR_KINDS)
    keys = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    fields: dict[str, Any] = {name: draw(key_kinds) for name in keys}
    others = draw(nested_kinds())
    fields = {**others, **fields} if draw(st.booleans()) else {**fields, **others, **fields}
    layout = draw(_layouts())
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    lists = _Lists(
        random,
        fields,
        large=draw(st.booleans()),
        never_null=frozenset(draw(st.sets(st.sampled_from(["d", "item", *fields]), max_size=2))),
    )
    fragments = tuple(_rows(lists, FRAGMENT_ROWS * number) for number in range(layout.fragments))
    return Table(fields, tuple(keys), fragments, layout)


def _rows(lists: _Lists, first: int) -> pa.Table:
    ids = range(first, first + FRAGMENT_ROWS)
    random, labels = lists.random, (*LABELS, None)
    tags = [
        None
        if random.random() < 0.1
        else [labels[i] for i in random.integers(0, len(labels), random.integers(0, 4))]
        for _ in ids
    ]
    elements = lists.draw(len(ids))
    fields = [
        pa.field("id", pa.int64()),
        pa.field("d", elements.type, nullable="d" not in lists.never_null),
        pa.field("tags", pa.list_(pa.string())),
    ]
    return pa.table([pa.array(ids), elements, pa.array(tags)], schema=pa.schema(fields))


@dataclass(frozen=True, slots=True)
class _Lists:
    """Lists of up to three elements, some NULL over elements that nobody sees.

    The lists (`d`), the elements (`item`) or the fields that are `never_null` are so in their type.
    """

    random: np.random.Generator
    fields: dict[str, Any]
    large: bool
    never_null: frozenset[str]

    def draw(self, rows: int) -> pa.Array:
        lengths = self.random.integers(0, 4, rows)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        elements = self._structs(
            self.fields, int(offsets[-1]), nullable="item" not in self.never_null
        )
        item = pa.field("item", elements.type, nullable="item" not in self.never_null)
        nulls = None if "d" in self.never_null else self._nulls(rows)
        if self.large:
            return pa.LargeListArray.from_arrays(
                pa.array(offsets, pa.int64()), elements, pa.large_list(item), mask=nulls
            )
        return pa.ListArray.from_arrays(
            pa.array(offsets, pa.int32()), elements, pa.list_(item), mask=nulls
        )

    def _structs(self, fields: dict[str, Any], length: int, *, nullable: bool) -> pa.StructArray:
        children, types = [], []
        for name, inner in fields.items():
            optional = fields is not self.fields or name not in self.never_null
            children.append(
                self._values(inner, length, nullable=optional)
                if isinstance(inner, Kind)
                else self._structs(inner, length, nullable=optional)
            )
            types.append(pa.field(name, children[-1].type, nullable=optional))
        nulls = self._nulls(length) if nullable else None
        return pa.StructArray.from_arrays(children, fields=types, mask=nulls)

    def _values(self, kind: Kind, length: int, *, nullable: bool) -> pa.Array:
        """Values of the kind and NULLs, some of them much more often than others."""
        pool = [*([None] if nullable else []), *kind.values]
        pool = [pool[i] for i in self.random.permutation(len(pool))]
        places = np.minimum(*self.random.integers(0, len(pool), (2, length)))
        return pa.array([pool[place] for place in places], kind.type)

    def _nulls(self, length: int) -> pa.Array:
        return pa.array(self.random.random(length) < 0.1, pa.bool_())


# -- conditions on the rows ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AnyElement:
    """`any_element(d, 'predicate')`."""

    predicate: Predicate

    def sql(self) -> str:
        return f"any_element(d, {quoted(self.predicate.sql())})"

    def truth(self, element: Element) -> Truth:
        assert element is not None
        return any_element(element["d"], self.predicate)


@dataclass(frozen=True, slots=True)
class HasLabel:
    """`array_has(tags, 'label')`."""

    label: str

    def sql(self) -> str:
        return f"array_has(tags, {quoted(self.label)})"

    def truth(self, element: Element) -> Truth:
        assert element is not None
        return None if element["tags"] is None else self.label in element["tags"]


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


_ID = Field(("id",), "id")
_OTHERS: tuple[Predicate, ...] = (
    *(HasLabel(label) for label in LABELS),
    *(HasLabel(label) for label in LABELS),
    IsNull(Field(("d",), "d")),
    IsNull(Field(("d",), "d"), negated=True),
    Compare("<", _ID, Literal("40", 40)),
)


@st.composite
def queries(draw: st.DrawFn, table: Table) -> tuple[AnyElement, Predicate]:
    """A call, and a condition that it is a part of."""
    calls = call_of(table)
    call = draw(calls)
    others = st.sampled_from(_OTHERS) | calls
    condition: Predicate = call
    for _ in range(draw(st.integers(1, 3))):
        step = draw(st.sampled_from(["not", "is", "and", "or", "or"]))
        if step == "not":
            condition = Not(condition)
        elif step == "is":
            tested = draw(st.sampled_from([True, False, None]))
            condition = Is(condition, tested, draw(st.booleans()))
        else:
            other = draw(others)
            if draw(st.integers(0, 3)) == 0:
                other = Not(other)
            condition = And(condition, other) if step == "and" else Or(other, condition)
    return call, condition


def call_of(table: Table) -> st.SearchStrategy[AnyElement]:
    """Calls that the keys answer, partly answer, or do not: 5 to 3 to 1."""
    anything = predicates(table.fields)
    partly = st.builds(
        lambda one, other, turned: And(other, one) if turned else And(one, other),
        sargable(table),
        anything,
        st.booleans(),
    )
    shapes = [*[sargable(table)] * 5, *[partly] * 3, anything]
    return st.one_of(shapes).map(AnyElement)


@st.composite
def sargable(draw: st.DrawFn, table: Table) -> Predicate:
    """A conjunction, in any order, that fixes the first keys and may have a range on the next."""
    leaves = {leaf.path: leaf for leaf in leaves_of(table.fields)}
    fixed = draw(st.integers(1, len(table.keys)))
    conditions = [draw(_fixing(leaves[(key,)])) for key in table.keys[:fixed]]
    if fixed < len(table.keys) and draw(st.booleans()):
        conditions.append(draw(_range_on(leaves[(table.keys[fixed],)])))
    return reduce(And, draw(st.permutations(conditions)))


@st.composite
def _fixing(draw: st.DrawFn, leaf: Leaf) -> Predicate:
    field, literal = draw(field_of(leaf)), st.sampled_from(leaf.kind.literals)
    shape = draw(
        st.sampled_from(["equal", "equal", "in", "in", "either", "null", "negated", "own"])
    )
    if shape == "equal":
        sides = [field, draw(literal)]
        left, right = sides if draw(st.booleans()) else reversed(sides)
        return Compare("=", left, right)
    if shape == "negated":
        return Not(Compare("<>", field, draw(literal)))
    if shape == "in":
        return In(field, tuple(draw(st.lists(literal, min_size=1, max_size=6))))
    if shape == "either":
        return Or(Compare("=", field, draw(literal)), Compare("=", field, draw(literal)))
    if shape == "own" and pa.types.is_boolean(leaf.kind.type):
        return draw(st.sampled_from([BooleanField(field), Not(BooleanField(field))]))
    return IsNull(field)


@st.composite
def _range_on(draw: st.DrawFn, leaf: Leaf) -> Predicate:
    field, literal = draw(field_of(leaf)), st.sampled_from(leaf.kind.literals)
    shape = draw(st.sampled_from(["one", "one", "between", "two", "own"]))
    if shape == "own" and leaf.kind.values[0] == "":
        return StartsWith(field, draw(st.sampled_from(["", "a", "é"])))
    if shape == "between":
        return Between(field, draw(literal), draw(literal))
    operators = ["<", "<=", ">", ">="]
    one = Compare(draw(st.sampled_from(operators)), field, draw(literal))
    if shape == "two":
        return And(one, Compare(draw(st.sampled_from(operators)), draw(literal), field))
    return one
