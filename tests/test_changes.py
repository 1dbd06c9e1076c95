"""Whatever happens to a table, its indexes answer as its rows do, now and back in time.

A matrix: operation x kind of index x kind of row id. After each operation the table is asked in
a session that was opened before and is refreshed, in a new one, and at every version that is
left. What is expected comes from the rows as Python values.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from datafusion_lance.engine import LanceSessionContext

from .oracle.changes import (
    AddColumn,
    Append,
    BuildElements,
    BuildLabels,
    Change,
    CleanUp,
    Compact,
    Delete,
    Drop,
    DropField,
    Keys,
    Merge,
    Optimize,
    Rename,
    Rewrite,
    Update,
)
from .oracle.writing import write_fragments
from .oracle_rows import index_scans

ELEMENT = pa.struct([("label", pa.string()), ("n", pa.int32())])
SCHEMA = pa.schema(
    [
        pa.field("key", pa.int64(), nullable=False),
        pa.field("x", pa.int32()),
        pa.field("other", pa.string()),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("d", pa.list_(ELEMENT)),
    ]
)
TAGS: tuple[list[str | None] | None, ...] = (["a"], ["a", "b"], None, [], ["c", None], ["b"])
LABELS: tuple[list[str | None] | None, ...] = (["a"], ["b", "a"], None, [], [None], ["c"], ["b"])
ROWS, FRAGMENT_ROWS = 48, 12


def rows(keys: range, shift: int = 0) -> pa.Table:
    """Rows of few lists, in another order for another `shift`."""

    def elements(key: int) -> list[dict[str, Any] | None] | None:
        labels = LABELS[(key + shift) % len(LABELS)]
        return None if labels is None else [{"label": one, "n": key % 3} for one in labels]

    columns = {
        "key": list(keys),
        "x": [key % 5 for key in keys],
        "other": ["o"] * len(keys),
        "tags": [TAGS[(key + shift) % len(TAGS)] for key in keys],
        "d": [elements(key) for key in keys],
    }
    return pa.Table.from_pydict(columns, schema=SCHEMA)


# -- what is asked --------------------------------------------------------------------------

Row = Mapping[str, Any]
Truth = Callable[[Row], bool | None]


def has(label: str) -> Truth:
    return lambda row: None if row["tags"] is None else label in row["tags"]


def any_label(label: str) -> Truth:
    """Of `any_element(d, 'label = …')`."""

    def truth(row: Row) -> bool | None:
        if row["d"] is None:
            return None
        labels = [element and element["label"] for element in row["d"]]
        return label in labels or (None if None in labels else False)

    return truth


PREDICATES: Mapping[str, tuple[tuple[str, Truth], ...]] = {
    "LabelList": (
        ("array_has({tags}, 'a')", has("a")),
        ("NOT array_has({tags}, 'b')", lambda row: _negated(has("b")(row))),
        ("array_has({tags}, 'a') IS NULL", lambda row: has("a")(row) is None),
        (
            "array_has_any({tags}, ['b', 'c']) AND x < 3",
            lambda row: bool(has("b")(row) or has("c")(row)) and row["x"] < 3,
        ),
    ),
    "ListElement": (
        ("any_element(d, '{label} = ''a''')", any_label("a")),
        ("NOT any_element(d, '{label} = ''b''')", lambda row: _negated(any_label("b")(row))),
        ("any_element(d, '{label} = ''a''') IS NULL", lambda row: any_label("a")(row) is None),
        (
            "any_element(d, '{label} = ''b'' AND {n} > 0') AND x < 3",
            lambda row: bool(any_label("b")(row)) and row["key"] % 3 > 0 and row["x"] < 3,
        ),
    ),
}


def _negated(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


# -- what happens -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Operation:
    """Changes in turn; the names that columns have afterwards; and which indexes still serve.

    An empty name is of a field that is gone. `serves` names the kinds of indexes, first where
    row ids are addresses, then where they are stable.
    """

    changes: tuple[Any, ...]
    names: Mapping[str, str]
    serves: tuple[str, str] = ("LabelList ListElement", "LabelList ListElement")

    def served(self, kind: str, stable: bool) -> bool:
        return kind in self.serves[stable]


@dataclass(frozen=True, slots=True)
class Done:
    """Something done to the Lance table that the rows are told of as the others say."""

    stored: Callable[[Path], object]
    held: Callable[[pa.Table], pa.Table] = lambda rows: rows


def operation(
    *changes: Change | Done, serves: tuple[str, str] | None = None, **names: str
) -> Operation:
    named = {"tags": "tags", "label": "label", "n": "n", **names}
    both = "LabelList ListElement"
    return Operation(changes, named, serves or (both, both))


def _alter(**alteration: Any) -> Done:
    alterations: Any = alteration
    return Done(lambda path: lance.dataset(path).alter_columns(alterations))


def _overwrite(path: Path) -> None:
    for low in range(100, 124, 12):
        mode = "overwrite" if low == 100 else "append"
        lance.write_dataset(rows(range(low, low + 12), 2), path, mode=mode)


def _restore(path: Path) -> None:
    lance.dataset(path).checkout_version(_FIRST_INDEXED).restore()


_FIRST_INDEXED = ROWS // FRAGMENT_ROWS + 2
"""The version in which both indexes are there."""

_APPEND = Append(rows(range(ROWS, ROWS + 10), 1), FRAGMENT_ROWS)
_DELETE = Delete(Keys(3, ROWS, 7))
_MERGE = Merge(rows(range(ROWS - 6, ROWS + 6), 3), insert=True)
_REWRITE = Rewrite(rows(range(14, 20), 3).select(["key", "tags"]))
_REWRITE_D = Rewrite(rows(range(14, 20), 3).select(["key", "d"]))
_COMPACT = Compact(3 * FRAGMENT_ROWS, deferred=False)
_BUILD = (BuildLabels("tags", "tags_idx"), BuildElements("d", ("label", "n"), "d_idx", 1, 0.0, 1.0))
_SOME = Keys(20, 32)

_LABELS_ONLY = "LabelList"
_ELEMENTS_ONLY = "ListElement"

# Compaction leaves the fragments of an index that pylance does not know as they are, unless row
# ids are stable; then that index covers no fragment any more.
_COMPACTED = ("LabelList ListElement", "LabelList")
# Until the remap, an index names fragments that are gone; pylance refuses it on stable row ids.
_DEFERRED = Done(
    lambda path: (
        lance.dataset(path).has_stable_row_ids
        or lance.dataset(path).optimize.compact_files(
            target_rows_per_fragment=3 * FRAGMENT_ROWS, defer_index_remap=True
        )
    )
)

OPERATIONS: Mapping[str, Operation] = {
    "nothing": operation(),
    "append": operation(_APPEND),
    "append, optimize": operation(_APPEND, Optimize(1)),
    "append, new segment": operation(_APPEND, Optimize(0)),
    "delete": operation(_DELETE),
    "delete a fragment": operation(Delete(Keys(12, 24))),
    "delete all": operation(Delete(Keys(0, ROWS)), serves=("", "")),
    "update another column": operation(Update(_SOME, "other")),
    "update the column": operation(Update(_SOME, "tags"), Update(_SOME, "d")),
    "update all": operation(Update(Keys(0, ROWS), "other"), serves=("", _LABELS_ONLY)),
    "merge_insert": operation(_MERGE),
    "merge_insert of the column": operation(
        Merge(rows(range(5, 20), 1).select(["key", "tags"]), insert=False),
        Merge(rows(range(5, 20), 1).select(["key", "d"]), insert=False),
    ),
    "rewrite in place": operation(_REWRITE, _REWRITE_D),
    "rewrite another column in place": operation(
        Rewrite(pa.table({"key": pa.array(range(14, 20)), "other": ["p"] * 6}))
    ),
    "add a column": operation(AddColumn("added")),
    "add and drop columns": operation(AddColumn("added"), Drop("other"), Drop("added")),
    "rename": operation(Rename("tags", "labels"), tags="labels"),
    "rename a key": operation(_alter(path="d.item.label", name="name"), label="name"),
    "drop the last key": operation(DropField("d", "n"), n="", serves=(_LABELS_ONLY, _LABELS_ONLY)),
    "another type of key": operation(
        _alter(path="d.item.n", data_type=pa.int64()), serves=(_LABELS_ONLY, _LABELS_ONLY)
    ),
    # pylance refuses to while the column has a label list index.
    "another type of labels": operation(
        Done(lambda path: lance.dataset(path).drop_index("tags_idx")),
        _alter(path="tags", data_type=pa.list_(pa.large_string())),
        serves=(_ELEMENTS_ONLY, _ELEMENTS_ONLY),
    ),
    "drop and add under the same name": operation(
        Done(lambda path: lance.dataset(path).add_columns({"t2": "tags", "d2": "d"})),
        Done(lambda path: lance.dataset(path).drop_columns(["tags", "d"])),
        _alter(path="t2", name="tags"),
        _alter(path="d2", name="d"),
        serves=("", ""),
    ),
    "compact": operation(_COMPACT, serves=_COMPACTED),
    "delete, compact": operation(_DELETE, _COMPACT, serves=_COMPACTED),
    "update, compact": operation(Update(_SOME, "other"), _COMPACT, serves=_COMPACTED),
    "merge_insert, compact": operation(_MERGE, _COMPACT, serves=_COMPACTED),
    "compact, remap later": operation(_DEFERRED, serves=("", "LabelList ListElement")),
    "delete, compact, remap later, optimize": operation(
        _DELETE, _DEFERRED, Optimize(1), serves=("", "LabelList ListElement")
    ),
    "optimize": operation(Optimize(1)),
    "delete, optimize": operation(_DELETE, Optimize(1)),
    "build again": operation(_APPEND, *_BUILD),
    "compact, build again": operation(_COMPACT, *_BUILD),
    "drop the indexes": operation(
        Done(lambda path: lance.dataset(path).drop_index("tags_idx")),
        Done(lambda path: lance.dataset(path).drop_index("d_idx")),
        serves=("", ""),
    ),
    "clean up": operation(_DELETE, CleanUp()),
    "rewrite in place, clean up": operation(_REWRITE, _REWRITE_D, CleanUp()),
    "build again, clean up": operation(_APPEND, *_BUILD, _DELETE, CleanUp()),
    "restore": operation(Done(lambda path: lance.dataset(path).delete("key < 20")), Done(_restore)),
    "delete, restore, delete": operation(
        Done(lambda path: lance.dataset(path).delete("key < 20")), Done(_restore), _DELETE
    ),
    "overwrite": operation(Done(_overwrite, lambda _: rows(range(100, 124), 2)), serves=("", "")),
}


class Table:
    """The table at a path; `history` are its rows and the names in them, by version."""

    def __init__(self, path: Path, *, stable: bool) -> None:
        self.path = path
        self.held = rows(range(ROWS))
        write_fragments(path, self.held, FRAGMENT_ROWS, stable)
        self.history: dict[int, pa.Table] = {}
        for change in _BUILD:
            self.do(change)

    def do(self, change: Any) -> None:
        change.stored(self.path)
        self.held = change.held(self.held)
        self.history[self.version] = self.held

    @property
    def version(self) -> int:
        return lance.dataset(self.path).version

    def session(self, version: int | None = None) -> LanceSessionContext:
        session = LanceSessionContext()
        session.register_lance("t", self.path, version=version)
        return session


def check(
    session: LanceSessionContext, held: pa.Table, kind: str, names: Mapping[str, str]
) -> bool:
    """Every predicate finds its rows; returns whether an index serves the first of them."""
    as_first = {names["tags"]: "tags"}
    lists = [
        {as_first.get(str(name), str(name)): value for name, value in row.items()}
        for row in held.to_pylist()
    ]
    for predicate, truth in PREDICATES[kind]:
        if any(f"{{{name}}}" in predicate for name, now in names.items() if not now):
            continue
        where = predicate.format(**names)
        frame = session.sql(f"SELECT key FROM t WHERE {where}")
        expected = sorted(row["key"] for row in lists if truth(row) is True)
        assert sorted(frame.to_pydict()["key"]) == expected, where
    predicate, truth = PREDICATES[kind][0]
    where = predicate.format(**names)
    count = session.sql(f"SELECT count(*) AS n FROM t WHERE {where}").to_pydict()
    assert count == {"n": [sum(truth(row) is True for row in lists)]}
    return bool(index_scans(session.sql(f"SELECT key FROM t WHERE {where}")))


@pytest.mark.parametrize("stable", [False, True], ids=["row addresses", "stable row ids"])
@pytest.mark.parametrize("kind", PREDICATES)
@pytest.mark.parametrize("name", OPERATIONS)
def test_answers_after(name: str, kind: str, stable: bool, tmp_path: Path) -> None:
    done = OPERATIONS[name]
    table = Table(tmp_path / "t.lance", stable=stable)
    first = OPERATIONS["nothing"].names
    before = table.session()
    assert check(before, table.held, kind, first)
    past = dict(table.history)
    for change in done.changes:
        table.do(change)
    if not any(isinstance(change, CleanUp) for change in done.changes):
        check(before, past[max(past)], kind, first)
    before.refresh("t")
    served = check(before, table.held, kind, done.names)
    assert check(table.session(), table.held, kind, done.names) == served
    assert served == done.served(kind, stable)
    versions = {one["version"] for one in lance.dataset(table.path).versions()}
    for version in versions & past.keys():
        check(table.session(version), past[version], kind, first)


def test_versions_that_are_gone_are_refused_by_their_number(tmp_path: Path) -> None:
    table = Table(tmp_path / "t.lance", stable=False)
    for change in (_APPEND, _DELETE):
        table.do(change)
    lance.dataset(table.path).cleanup_old_versions(dt.timedelta(0), delete_unverified=True)
    with pytest.raises(Exception, match="version: got 2, takes a version number"):
        table.session(2)
