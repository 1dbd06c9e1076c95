"""An index never changes an answer: random tables, random predicates, plain DataFusion.

A table has two list columns with label list indexes (or one, or none), NULL lists, NULL elements,
empty lists and duplicates; after the indexes are built it is appended to, deleted from, updated,
compacted and its indexes optimized, in any order. What is done to the Lance table is done to the
rows in memory with pyarrow.
"""

from __future__ import annotations

import datetime as dt
import random
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import event, given
from hypothesis import strategies as st

from datafusion_lance.engine import LanceSessionContext

from .oracle_rows import Comparison, TwiceStored, index_scans, memory_context, rows_of

NAN = float("nan")


@dataclass(frozen=True, slots=True)
class Element:
    """An element type, the labels that lists hold, and needles as SQL, of this and other types."""

    kind: pa.DataType
    labels: tuple[object, ...]
    needles: tuple[str, ...]


def cast(kind: str, *values: object) -> tuple[str, ...]:
    return tuple(f"arrow_cast({value}, '{kind}')" for value in values)


FLOATS = ("0.0", "-0.0", "0.9", "1", "CAST('NaN' AS DOUBLE)", "CAST('inf' AS DOUBLE)")

ELEMENTS = (
    Element(pa.string(), ("a", "b", "c", "", "it's"), ("'a'", "'b'", "'c'", "''", "'zz'")),
    Element(pa.large_string(), ("a", "b", "c", "é"), ("'a'", "'b'", "'é'", "'zz'")),
    Element(pa.int8(), (0, 1, -1, 127, 44), ("0", "1", "300", "-1", *cast("Int8", 0, 1, 44))),
    Element(pa.int16(), (0, 1, -300, 9), ("0", "1", "-300", "70000", *cast("Int16", 1, 9))),
    Element(pa.int32(), (0, 1, 2**31 - 1), ("0", "1", "2147483647", "1.0", "0.5")),
    Element(pa.int64(), (0, 1, 2**53, 2**53 + 1), ("0", "1", "9007199254740993", "77")),
    Element(pa.uint8(), (0, 1, 255), ("0", "1", "255", "256", "-1", *cast("UInt8", 1, 255))),
    Element(pa.uint64(), (0, 1, 2**64 - 1), cast("UInt64", 0, 1, 5, 18446744073709551615)),
    Element(pa.float32(), (0.0, -0.0, 0.9, 1.0, NAN), (*FLOATS, *cast("Float32", 0.9, 1, "-0.0"))),
    Element(pa.float64(), (0.0, -0.0, 0.9, 1.0, NAN), FLOATS),
    Element(pa.bool_(), (True, False), ("true", "false")),
    Element(
        pa.date32(),
        (dt.date(2024, 2, 29), dt.date(1969, 12, 31), dt.date(1970, 1, 1)),
        ("DATE '2024-02-29'", "DATE '1970-01-01'", "DATE '2000-01-01'"),
    ),
)


@dataclass(frozen=True, slots=True)
class Change:
    """Something done to a table: to the Lance dataset at a path, and to the rows in memory."""

    words: str
    stored: Callable[[str], None]
    held: Callable[[pa.Table], pa.Table]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A table's life: first rows, which list columns are indexed, then changes."""

    first: pa.Table
    rows_per_fragment: int
    stable_row_ids: bool
    indexed: tuple[str, ...]
    changes: tuple[Change, ...]

    def store(self, folder: Path) -> TwiceStored:
        path = folder / "t.lance"
        dataset = lance.write_dataset(
            self.first,
            path,
            max_rows_per_file=self.rows_per_fragment,
            enable_stable_row_ids=self.stable_row_ids,
        )
        for column in self.indexed:
            dataset.create_scalar_index(column, "LABEL_LIST")
        held = self.first
        for change in self.changes:
            change.stored(str(path))
            held = change.held(held)
        return TwiceStored("t", path, held)


def draw_list(draw: random.Random, labels: tuple[object, ...], longest: int) -> list[object] | None:
    if draw.random() < 0.12:
        return None
    return [
        None if draw.random() < 0.12 else draw.choice(labels)
        for _ in range(draw.randrange(longest + 1))
    ]


def rows(
    draw: random.Random, schema: pa.Schema, elements: Sequence[Element], keys: range
) -> pa.Table:
    """Rows of few distinct values, so that predicates and joins meet; drawn outside hypothesis,
    which would take most of the time for them."""
    a, b = elements
    columns = {
        "key": keys,
        "n": [draw.choice((None, 0, 1, 2, 3)) for _ in keys],
        "s": [draw.choice((None, "x", "y", "")) for _ in keys],
        "x": [draw.choice((None, 0.0, -0.0, 0.5, NAN)) for _ in keys],
        "a": [draw_list(draw, a.labels, 4) for _ in keys],
        "b": [draw_list(draw, b.labels, 2) for _ in keys],
    }
    return rows_of(columns, schema)


def deleting(keys: frozenset[int]) -> Change:
    gone = pa.array(sorted(keys), pa.int64())
    where = f"key IN ({', '.join(map(str, sorted(keys)))})"
    return Change(
        f"delete {where}",
        lambda path: lance.dataset(path).delete(where) and None,
        lambda held: held.filter(pc.invert(pc.is_in(held["key"], value_set=gone))),
    )


def updating(keys: frozenset[int]) -> Change:
    """Sets `n` to 7, which moves the rows to a new fragment."""
    moved = pa.array(sorted(keys), pa.int64())
    where = f"key IN ({', '.join(map(str, sorted(keys)))})"

    def held(before: pa.Table) -> pa.Table:
        n = pc.if_else(pc.is_in(before["key"], value_set=moved), 7, before["n"])
        return before.set_column(1, before.schema.field("n"), pc.cast(n, pa.int32()))

    return Change(
        f"update {where}",
        lambda path: lance.dataset(path).update({"n": "7"}, where=where) and None,
        held,
    )


def appending(more: pa.Table, rows_per_fragment: int) -> Change:
    def stored(path: str) -> None:
        lance.write_dataset(more, path, mode="append", max_rows_per_file=rows_per_fragment)

    return Change(f"append {more.num_rows}", stored, lambda held: pa.concat_tables([held, more]))


COMPACTING = Change(
    "compact",
    lambda path: lance.dataset(path).optimize.compact_files(target_rows_per_fragment=30) and None,
    lambda held: held,
)
OPTIMIZING = Change(
    "optimize indices",
    lambda path: lance.dataset(path).optimize.optimize_indices(),
    lambda held: held,
)


@st.composite
def scenarios(draw: st.DrawFn) -> tuple[Scenario, tuple[Element, Element]]:
    a = draw(st.sampled_from(ELEMENTS))
    b = draw(st.sampled_from(ELEMENTS[:2]))
    schema = pa.schema(
        [
            pa.field("key", pa.int64(), nullable=False),
            pa.field("n", pa.int32()),
            pa.field("s", pa.string()),
            pa.field("x", pa.float64()),
            pa.field("a", draw(st.sampled_from((pa.list_, pa.large_list)))(a.kind)),
            pa.field("b", pa.list_(b.kind)),
        ]
    )
    values = random.Random(draw(st.integers(0, 2**32)))
    start, rows_per_fragment = draw(st.integers(1, 40)), draw(st.integers(3, 20))
    first = rows(values, schema, (a, b), range(start))
    changes = []
    for kind in draw(st.lists(st.sampled_from("aaddducz"), max_size=4)):
        if kind == "a":
            end = start + draw(st.integers(1, 10))
            more = rows(values, schema, (a, b), range(start, end))
            start = end
            changes.append(appending(more, rows_per_fragment))
        elif kind in "du":
            keys = draw(st.frozensets(st.integers(0, start - 1), min_size=1, max_size=8))
            changes.append(deleting(keys) if kind == "d" else updating(keys))
        else:
            changes.append(COMPACTING if kind == "c" else OPTIMIZING)
    indexed = draw(st.sampled_from((("a", "b"), ("a", "b"), ("a",), ("b",), ())))
    return Scenario(first, rows_per_fragment, draw(st.booleans()), indexed, tuple(changes)), (a, b)


PLAIN = (
    "n < 2",
    "n = 7",
    "n IS NULL",
    "n IN (0, 3)",
    "NOT (n BETWEEN 1 AND 2)",
    "s = 'x'",
    "s <> 'y'",
    "s LIKE '%x%'",
    "s IS NOT NULL",
    "x = 0.0",
    "x <= 0.5",
    "x > 0.5",
    "x <> CAST('NaN' AS DOUBLE)",
    "a IS NULL",
    "b IS NOT NULL",
    "cardinality(a) = 2",
    "true",
    "false",
    "CAST(NULL AS BOOLEAN)",
)
PLAIN_PREDICATE = st.sampled_from(PLAIN)


ARRAY_PREDICATES = (
    "array_has({column}, {needle})",
    "{needle} = ANY({column})",
    "array_has({column}, NULL)",
    "array_has_any({column}, [{needles}])",
    "array_has_all({column}, [{needles}])",
    "array_has_any([{needles}], {column})",
    # On a batch whose lists have no element at all, DataFusion itself takes this for TRUE on
    # NULL lists: see tests/test_label_list_semantics.py.
    "({column} IS NOT NULL AND array_has_all([{needles}], {column}))",
    "array_has_any({column}, [])",
    "array_has_all({column}, [])",
)
ARRAY_PREDICATE = st.sampled_from((*ARRAY_PREDICATES, *ARRAY_PREDICATES[:6], *ARRAY_PREDICATES[:2]))
COLUMN = st.sampled_from(("a", "a", "b", None))
KIND = st.sampled_from(("leaf", "AND", "AND", "OR", "OR", "NOT", "test"))
NUMBERS = st.lists(st.integers(0, 11), min_size=1, max_size=3)


TESTS = (
    "{} IS NULL",
    "{} IS NOT NULL",
    "{} IS TRUE",
    "{} IS NOT TRUE",
    "{} IS FALSE",
    "{} IS NOT FALSE",
    "{} IS UNKNOWN",
)


def draw_predicate(draw: st.DrawFn, elements: Sequence[Element], depth: int = 4) -> str:
    """A predicate of at most `depth` connectives and tests above its leaves."""
    kind = draw(KIND) if depth else "leaf"
    if kind == "leaf":
        column = draw(COLUMN)
        return draw(PLAIN_PREDICATE) if column is None else draw_leaf(draw, column, elements)
    inner = draw_predicate(draw, elements, depth - 1)
    if kind == "NOT":
        return f"NOT ({inner})"
    if kind == "test":
        return f"({draw(TEST).format(f'({inner})')})"
    return f"({inner} {kind} {draw_predicate(draw, elements, depth - 1)})"


def draw_leaf(draw: st.DrawFn, column: str, elements: Sequence[Element]) -> str:
    """An array predicate on `column`; NULL is now and then among several needles."""
    of_type = elements[column == "b"].needles
    drawn = [("NULL", *of_type)[number % (1 + len(of_type))] for number in draw(NUMBERS)]
    needle = next((needle for needle in drawn if needle != "NULL"), of_type[0])
    form = draw(ARRAY_PREDICATE)
    return form.format(column=column, needle=needle, needles=", ".join(drawn))


TEST = st.sampled_from(TESTS)


SHAPES = (
    "SELECT key FROM t WHERE {p}",
    "SELECT * FROM t WHERE {p}",
    "SELECT key FROM t WHERE {p} AND {q}",
    "SELECT count(*) AS rows FROM t WHERE {p}",
    "SELECT n, count(*) AS rows, min(key) AS low FROM t WHERE {p} GROUP BY n",
    "SELECT n FROM t WHERE {p} EXCEPT SELECT n FROM t WHERE {q}",
    "SELECT n, s FROM t WHERE {p} INTERSECT SELECT n, s FROM t WHERE {q}",
    "SELECT key FROM t WHERE {p} UNION ALL SELECT key FROM t WHERE {q}",
    "SELECT l.key, r.key AS other FROM (SELECT * FROM t WHERE {p}) l "
    "JOIN (SELECT * FROM t WHERE {q}) r ON l.n = r.n",
    "SELECT l.key, r.key AS other FROM (SELECT * FROM t WHERE {p}) l "
    "FULL JOIN (SELECT * FROM t WHERE {q}) r ON (l.s IS NOT DISTINCT FROM r.s) AND l.n = r.n",
    "SELECT key FROM t WHERE {p} AND n NOT IN (SELECT n FROM t WHERE {q})",
    "SELECT key FROM t WHERE {p} AND (x > 0 OR n IN (SELECT n FROM t WHERE {q}))",
)
SHAPE = st.sampled_from(SHAPES)


@st.composite
def questions(
    draw: st.DrawFn,
) -> tuple[Scenario, tuple[str, ...]]:
    scenario, elements = draw(scenarios())
    statements = []
    for _ in range(4):
        shape, p = draw(SHAPE), draw_predicate(draw, elements)
        q = draw_predicate(draw, elements) if "{q}" in shape else ""
        statements.append(shape.format(p=p, q=q))
    return scenario, tuple(statements)


@given(questions())
def test_index_never_changes_an_answer(asked: tuple[Scenario, tuple[str, ...]]) -> None:
    scenario, statements = asked
    with tempfile.TemporaryDirectory() as folder:
        table = scenario.store(Path(folder))
        memory, session = memory_context([table]), LanceSessionContext()
        session.register_lance("t", str(table.path))
        for statement in statements:
            frame = session.sql(statement)
            Comparison().assert_equal(frame, memory.sql(statement), statement)
            event("served by an index" if index_scans(frame) else "not served")
