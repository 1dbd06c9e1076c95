"""A world: two tables, what happens to the first of them, and when it is asked."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from .changes import (
    AddColumn,
    Age,
    Append,
    BuildElements,
    BuildLabels,
    BuildTexts,
    Change,
    CleanUp,
    Compact,
    Delete,
    Drop,
    DropField,
    KeepUp,
    Keys,
    Merge,
    Optimize,
    Rename,
    Rewrite,
    Update,
)
from .columns import Column, Elements, Labels, Plain, rows_of
from .kinds import DATE, FIELD_KINDS, FLOAT64, LABEL_KINDS, TEXT, Kind
from .texts import Texts, draw_texts

# Enough for a scan in several partitions.
MOST_ROWS = 70_000

FIELD_NAMES = ("label", "conf", "size", "flag")
_SENTENCES = ("the red car", "a red car", "the dog sleeps", "the dog slept", "rain", "", "sea")


@dataclass(frozen=True, slots=True)
class Life:
    """A table from its first rows on. `columns` are the first ones."""

    columns: tuple[Column, ...]
    first: pa.Table
    rows_per_fragment: int
    stable_row_ids: bool
    changes: tuple[Change, ...]

    def columns_after(self, changes: int) -> tuple[Column, ...]:
        columns = self.columns
        for change in self.changes[:changes]:
            columns = change.columns(columns)
        return columns


@dataclass(frozen=True, slots=True)
class World:
    """Two tables and a session's settings.

    `asked_after` are the numbers of changes of `t` after which it is asked at its newest
    version; in the end it is asked as it was after `past` of its changes, too, unless None.
    `own_function` is registered on every session in the place of DataFusion's.
    """

    seed: int
    t: Life
    u: Life
    asked_after: tuple[int, ...]
    past: int | None
    target_partitions: int
    batch_size: int
    own_function: str | None


def draw_world(seed: int) -> World:
    random = np.random.default_rng(seed)
    size = _size(random)
    columns = _columns(random, size)
    few = int(random.integers(1, 60))
    t = _life(random, columns, size, most_changes=8)
    u = _life(random, columns, few, most_changes=1)
    asked = sorted({int(n) for n in random.integers(_built(t), len(t.changes) + 1, 2)})
    return World(
        seed,
        t,
        u,
        (*asked, len(t.changes)) if len(t.changes) not in asked else tuple(asked),
        _past(random, t),
        int(random.choice([1, 2, 4])),
        8192 if size == MOST_ROWS else int(random.choice([8192, 8192, 100, 16])),
        "array_has_all" if random.random() < 0.08 else None,
    )


def _size(random: np.random.Generator) -> int:
    match random.random():
        case x if x < 0.03:
            return 0
        case x if x < 0.10:
            return int(random.integers(1, 10))
        case x if x < 0.45:
            return int(random.integers(10, 150))
        case x if x < 0.93:
            return int(random.integers(150, 900))
        case x if x < 0.998:
            return int(random.integers(900, 4000))
        case _:
            return MOST_ROWS


def _columns(random: np.random.Generator, size: int) -> tuple[Column, ...]:
    """Plain columns that every shape knows, two of labels, one or two of structs, one of texts."""
    keys = tuple(range(size + 20))
    few = tuple(range(6))
    plain = (
        Plain("n", Kind(pa.int32(), few, tuple(map(str, few)), ("9",))),
        Plain("m", Kind(pa.int64(), keys, (), ())),
        Plain("s", Kind(pa.string(), ("x", "y", "", "z"), (), ())),
        Plain("x", replace(FLOAT64, values=FLOAT64.values[:9])),
        Plain("day", DATE),
        Plain("text", Kind(pa.string(), _SENTENCES, (), ())),
    )
    a = Labels("a", _one(random, LABEL_KINDS), large=random.random() < 0.2)
    b = Labels("b", _one(random, (TEXT, *LABEL_KINDS)), large=random.random() < 0.2)
    columns: tuple[Column, ...] = (*plain, a, b, _elements(random, "d"))
    if random.random() < 0.3:
        columns = (*columns, _elements(random, "e"))
    if random.random() < 0.7:
        columns = (*columns, draw_texts(random, "doc"))
    if random.random() < 0.3:
        columns = columns[::-1]
    return columns


def _one(random: np.random.Generator, kinds: tuple[Kind, ...]) -> Kind:
    return kinds[random.integers(len(kinds))]


def _elements(random: np.random.Generator, name: str) -> Elements:
    names = FIELD_NAMES[: random.integers(2, 5)]
    fields = tuple((field, _one(random, FIELD_KINDS)) for field in names)
    indexes = []
    for _ in range(random.integers(1, 3)):
        keys = random.permutation(names)[: random.integers(1, 4)]
        indexes.append(tuple(map(str, keys)))
    return Elements(name, fields, tuple(indexes))


def _life(
    random: np.random.Generator, columns: tuple[Column, ...], size: int, most_changes: int
) -> Life:
    first = rows_of(columns, random, range(size))
    rows_per_fragment = max(1, size // int(random.integers(1, 6)), 3)
    stable = bool(random.random() < 0.4)
    history = _History(random, columns, size, rows_per_fragment, stable)
    for _ in range(random.integers(0, 2)):
        history.change()
    history.build()
    for _ in range(random.integers(0, most_changes + 1)):
        history.change()
    return Life(columns, first, rows_per_fragment, stable, tuple(history.changes))


def _built(life: Life) -> int:
    """After how many changes the first indexes are there."""
    kinds = (BuildLabels, BuildElements, BuildTexts)
    return max((n + 1 for n, one in enumerate(life.changes) if isinstance(one, kinds)), default=0)


def _past(random: np.random.Generator, life: Life) -> int | None:
    if any(isinstance(change, CleanUp) for change in life.changes) or not life.changes:
        return None
    return int(random.integers(min(_built(life), len(life.changes) - 1), len(life.changes)))


# From which share of the fragments to which a list element index is built.
_COVERED = (*[(0.0, 1.0)] * 7, *[(0.0, 0.7)] * 2, *[(0.0, 0.5), (0.5, 1.0)] * 2)

_WEIGHTS = {
    "append": 4,
    "append and index": 3,
    "delete": 4,
    "update": 3,
    "merge rows": 2,
    "merge a column": 2,
    "rewrite": 2,
    "compact": 2,
    "compact, remap later": 1,
    "optimize": 2,
    "keep up": 2,
    "add a column": 1,
    "drop": 0.5,
    "rename": 1,
    "drop a field": 0.8,
    "build again": 2,
    "delete many": 0.5,
    "clean up": 0.5,
    "age": 1,
}


class _History:
    """Draws changes that fit what came before."""

    def __init__(
        self,
        random: np.random.Generator,
        columns: tuple[Column, ...],
        size: int,
        rows_per_fragment: int,
        stable: bool,
    ) -> None:
        self.changes: list[Change] = []
        self._random = random
        self._columns = columns
        self._keys = size
        self._rows_per_fragment = rows_per_fragment
        self._stable = stable
        self._added = False
        self._aged = False
        self._rewritten = False

    def build(self) -> None:
        """The first indexes: nearly all that there can be."""
        for column in self._columns:
            if isinstance(column, Labels) and self._random.random() < 0.9:
                self._add(BuildLabels(column.name, f"{column.name}_idx"))
            if isinstance(column, Elements):
                for number in range(len(column.keys)):
                    self._build_elements(column, number)
            if isinstance(column, Texts) and self._random.random() < 0.88:
                for number in range(len(column.signings)):
                    self._build_texts(column, number)
            if self._random.random() < 0.04:
                self._append()

    def _build_elements(self, column: Elements, number: int) -> None:
        keys = column.keys[number]
        if not set(keys) <= {name for name, _ in column.fields}:
            return
        segments = int(self._random.choice([1, 1, 2, 3]))
        low, high = _COVERED[self._random.integers(len(_COVERED))]
        before = [(one.low, one.high) for one in self.changes if isinstance(one, BuildElements)]
        if before[-1:] == [(0.0, 0.5)]:
            low, high = 0.5, 1.0  # no fragment is in both
        name = f"{column.name}_{number}"
        self._add(BuildElements(column.name, keys, name, segments, low, high))

    def _build_texts(self, column: Texts, number: int) -> None:
        name = f"doc_{number}"
        self._add(BuildTexts(column.name, column.signings[number], name))

    def change(self) -> None:
        weights = np.array([*_WEIGHTS.values()])
        name = self._random.choice([*_WEIGHTS], p=weights / weights.sum())
        self._draw(str(name))

    def _add(self, change: Change) -> None:
        self.changes.append(change)
        self._columns = change.columns(self._columns)

    def _draw(self, name: str) -> None:
        random = self._random
        match name:
            case "append" | "append and index":
                self._append()
                if name == "append and index":
                    self._add(Optimize(0))
            case "delete":
                self._add(Delete(self._some_keys()))
            case "delete many":
                high = int(self._keys * random.random())
                self._add(Delete(Keys(0, high)))
            case "update":
                column = random.choice([c.name for c in self._columns])
                self._add(Update(self._some_keys(), str(column)))
            case "merge rows" if not self._added:
                low = max(0, self._keys - int(random.integers(0, 8)))
                high = self._keys + int(random.integers(1, 8))
                self._keys = max(self._keys, high)
                self._add(Merge(rows_of(self._columns, random, range(low, high)), insert=True))
            case "merge a column" | "rewrite":
                listed = [c.name for c in self._columns if not isinstance(c, Plain)]
                column = str(random.choice([*listed, "n"]))
                rows = self._some_rows().select(["key", column])
                self._rewritten |= name == "rewrite"
                self._add(Rewrite(rows) if name == "rewrite" else Merge(rows, insert=False))
            case "compact" | "compact, remap later":
                # After an in-place rewrite compaction makes a wrong index, and nothing tells:
                # see tests/test_label_list_semantics.py. Lance refuses to defer on stable ids.
                if not self._rewritten:
                    deferred = name != "compact" and not self._stable
                    target = self._rows_per_fragment * int(random.integers(2, 5))
                    self._add(Compact(target, deferred))
            case "optimize":
                self._add(Optimize(int(random.integers(0, 2))))
            case "keep up":
                self._add(KeepUp())
                # What claims rewritten fragments is built again.
                self._rewritten = False
            case "add a column" if not self._added:
                self._added = True
                self._add(AddColumn("added"))
            case "drop":
                known = [c.name for c in self._columns if c.name in ("b", "b2", "doc", "doc2")]
                if known:
                    self._add(Drop(str(random.choice(known))))
            case "rename":
                names = {column.name for column in self._columns}
                old = str(random.choice(["b", "doc"]))
                if old in names:
                    self._add(Rename(old, f"{old}2"))
                elif f"{old}2" in names:
                    self._add(Rename(f"{old}2", old))
            case "drop a field":
                column = next(c for c in self._columns if c.name == "d")
                assert isinstance(column, Elements)
                if len(column.fields) > 1:
                    at = int(random.integers(len(column.fields)))
                    self._add(DropField("d", column.fields[at][0]))
            case "build again":
                self._build_again()
            case "clean up":
                self._add(CleanUp())
            case "age" if not self._aged:
                self._aged = True
                if any(isinstance(c, BuildLabels) and c.column == "a" for c in self.changes):
                    self._add(Age("a_idx", int(random.choice([0, 99, 99]))))
            case _:
                pass

    def _build_again(self) -> None:
        column = self._columns[self._random.integers(len(self._columns))]
        if isinstance(column, Labels):
            self._add(BuildLabels(column.name, f"{column.name}_idx"))
        elif isinstance(column, Elements):
            self._build_elements(column, int(self._random.integers(len(column.keys))))
        elif isinstance(column, Texts):
            self._build_texts(column, int(self._random.integers(len(column.signings))))

    def _append(self) -> None:
        if self._added:
            return
        more = int(self._random.integers(1, max(3, self._rows_per_fragment)))
        rows = rows_of(self._columns, self._random, range(self._keys, self._keys + more))
        self._keys += more
        self._add(Append(rows, self._rows_per_fragment))

    def _some_keys(self) -> Keys:
        low = int(self._random.integers(0, self._keys + 1))
        step = int(self._random.choice([1, 1, 3, 7]))
        return Keys(low, low + step * int(self._random.integers(1, 12)), step)

    def _some_rows(self) -> pa.Table:
        """Rows of which some keys are not there."""
        keys = self._some_keys()
        return rows_of(self._columns, self._random, range(keys.low, keys.high, keys.step))
