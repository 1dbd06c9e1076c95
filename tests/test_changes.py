"""Whatever happens to a table, its indexes answer as its rows do, now and back in time.

A matrix: operation x kind of index x kind of row id. After each operation the table is asked in
a session that was opened before and is refreshed, in a new one, and at every version that is
left. What is expected comes from the rows as Python values. Each kind of index is alone on its
table: one that pylance does not know keeps compaction away from the fragments that it covers.

Then operations with this package's upkeep in between, on tables with several indexes.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from datafusion_lance.engine import LanceSessionContext
from datafusion_lance.indexes.manifest import read_manifest

from .changed_tables import PREDICATES, SIGNING, Names, check, rows
from .oracle.changes import (
    AddColumn,
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
from .oracle.writing import write_fragments

ROWS, FRAGMENT_ROWS = 48, 12


# -- what happens -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Operation:
    """Changes in turn; the names that columns have afterwards; and which indexes still serve.

    `_BUILD` among the changes builds the table's indexes. An empty name is of a field that is
    gone. `serves` names the kinds of indexes, first where row ids are addresses, then where they
    are stable.
    """

    changes: tuple[Any, ...]
    names: Names
    serves: tuple[str, str]

    def served(self, kind: str, stable: bool) -> bool:
        return kind in self.serves[stable]


@dataclass(frozen=True, slots=True)
class Done:
    """Something done to the Lance table that the rows are told of as the others say."""

    stored: Callable[[Path], object]
    held: Callable[[pa.Table], pa.Table] = lambda rows: rows


def operation(
    *changes: Change | Done | str, serves: tuple[str, str] | None = None, **names: str
) -> Operation:
    named = {name: name for name in ("tags", "label", "n", "text")}
    return Operation(changes, {**named, **names}, serves or (_EVERY, _EVERY))


def _alter(**alteration: Any) -> Done:
    alterations: Any = alteration
    return Done(lambda path: lance.dataset(path).alter_columns(alterations))


def _drop_indexes(path: Path, *names: str) -> None:
    """Of the indexes of these names, those that there are."""
    for index in read_manifest(lance.dataset(path)).indexes:
        if index.name in names:
            lance.dataset(path).drop_index(index.name)


def _overwrite(path: Path) -> None:
    for low in range(100, 124, 12):
        mode = "overwrite" if low == 100 else "append"
        lance.write_dataset(rows(range(low, low + 12), 2), path, mode=mode)


def _restore(path: Path) -> None:
    lance.dataset(path).checkout_version(_FIRST_INDEXED).restore()


_FIRST_INDEXED = ROWS // FRAGMENT_ROWS + 1
"""The version in which the first index is there."""

_APPEND = Append(rows(range(ROWS, ROWS + 10), 1), FRAGMENT_ROWS)
_DELETE = Delete(Keys(3, ROWS, 7))
_MERGE = Merge(rows(range(ROWS - 6, ROWS + 6), 3), insert=True)
_REWRITE = tuple(
    Rewrite(rows(range(14, 20), 3).select(["key", column])) for column in ("tags", "d", "text")
)
_COMPACT = Compact(3 * FRAGMENT_ROWS, deferred=False)
_BUILD = "build"
_INDEXES: Mapping[str, BuildLabels | BuildElements | BuildTexts] = {
    "LabelList": BuildLabels("tags", "tags_idx"),
    "ListElement": BuildElements("d", ("label", "n"), "d_idx", 1, 0.0, 1.0),
    "MinHashLsh": BuildTexts("text", SIGNING, "text_idx"),
}
_SOME = Keys(20, 32)
_COPIES = {"tags2": "tags", "d2": "d", "text2": "text"}

_EVERY = " ".join(PREDICATES)
_ALL_BUT_ELEMENTS = "LabelList MinHashLsh"

# Compaction leaves the fragments of an index that pylance does not know as they are, unless row
# ids are stable; then that index covers no fragment any more.
_COMPACTED = (_EVERY, _ALL_BUT_ELEMENTS)
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
    "update the column": operation(
        Update(_SOME, "tags"), Update(_SOME, "d"), Update(_SOME, "text")
    ),
    "update all": operation(Update(Keys(0, ROWS), "other"), serves=("", _ALL_BUT_ELEMENTS)),
    "merge_insert": operation(_MERGE),
    "merge_insert of the column": operation(
        Merge(rows(range(5, 20), 1).select(["key", "tags"]), insert=False),
        Merge(rows(range(5, 20), 1).select(["key", "d"]), insert=False),
        Merge(rows(range(5, 20), 1).select(["key", "text"]), insert=False),
    ),
    "rewrite in place": operation(*_REWRITE),
    "rewrite another column in place": operation(
        Rewrite(pa.table({"key": pa.array(range(14, 20)), "other": ["p"] * 6}))
    ),
    "add a column": operation(AddColumn("added")),
    "add and drop columns": operation(AddColumn("added"), Drop("other"), Drop("added")),
    "rename": operation(Rename("tags", "labels"), tags="labels"),
    "rename texts": operation(_alter(path="text", name="words"), text="words"),
    "rename a key": operation(_alter(path="d.item.label", name="name"), label="name"),
    "drop the last key": operation(
        DropField("d", "n"), n="", serves=(_ALL_BUT_ELEMENTS, _ALL_BUT_ELEMENTS)
    ),
    "another type of key": operation(
        _alter(path="d.item.n", data_type=pa.int64()), serves=(_ALL_BUT_ELEMENTS, _ALL_BUT_ELEMENTS)
    ),
    # pylance refuses to while the column has an index.
    "another type of labels": operation(
        Done(lambda path: _drop_indexes(path, "tags_idx")),
        _alter(path="tags", data_type=pa.list_(pa.large_string())),
        serves=("ListElement MinHashLsh", "ListElement MinHashLsh"),
    ),
    "another type of texts": operation(
        Done(lambda path: _drop_indexes(path, "text_idx")),
        _alter(path="text", data_type=pa.large_string()),
        serves=("LabelList ListElement", "LabelList ListElement"),
    ),
    "drop and add under the same name": operation(
        Done(lambda path: lance.dataset(path).add_columns(_COPIES)),
        Done(lambda path: lance.dataset(path).drop_columns([*_COPIES.values()])),
        *(_alter(path=copy, name=name) for copy, name in _COPIES.items()),
        serves=("", ""),
    ),
    "compact": operation(_COMPACT, serves=_COMPACTED),
    "delete, compact": operation(_DELETE, _COMPACT, serves=_COMPACTED),
    "update, compact": operation(Update(_SOME, "other"), _COMPACT, serves=_COMPACTED),
    "merge_insert, compact": operation(_MERGE, _COMPACT, serves=_COMPACTED),
    "compact, remap later": operation(_DEFERRED, serves=("", _EVERY)),
    "delete, compact, remap later, optimize": operation(
        _DELETE, _DEFERRED, Optimize(1), serves=("", _EVERY)
    ),
    "optimize": operation(Optimize(1)),
    "delete, optimize": operation(_DELETE, Optimize(1)),
    "build again": operation(_APPEND, _BUILD),
    "compact, build again": operation(_COMPACT, _BUILD),
    "drop the indexes": operation(
        Done(lambda path: _drop_indexes(path, "tags_idx", "d_idx", "text_idx")),
        serves=("", ""),
    ),
    "clean up": operation(_DELETE, CleanUp()),
    "rewrite in place, clean up": operation(*_REWRITE, CleanUp()),
    "build again, clean up": operation(_APPEND, _BUILD, _DELETE, CleanUp()),
    "restore": operation(Done(lambda path: lance.dataset(path).delete("key < 20")), Done(_restore)),
    "delete, restore, delete": operation(
        Done(lambda path: lance.dataset(path).delete("key < 20")), Done(_restore), _DELETE
    ),
    "overwrite": operation(Done(_overwrite, lambda _: rows(range(100, 124), 2)), serves=("", "")),
}


class Table:
    """The table at a path, with indexes of `kinds`; `history` are its rows by version."""

    def __init__(self, path: Path, *kinds: str, stable: bool) -> None:
        self.path = path
        self.kinds = kinds
        self.held = rows(range(ROWS))
        write_fragments(path, self.held, FRAGMENT_ROWS, stable)
        self.history: dict[int, pa.Table] = {}
        self.do(_BUILD)

    def do(self, *changes: Any) -> None:
        for change in changes:
            if change == _BUILD:
                self.do(*(_INDEXES[kind] for kind in self.kinds))
                continue
            change.stored(self.path)
            self.held = change.held(self.held)
            self.history[self.version] = self.held

    @property
    def version(self) -> int:
        return lance.dataset(self.path).version

    def session(self, version: int | None = None) -> LanceSessionContext:
        session = LanceSessionContext()
        session.register_lance("t", self.path, version=version, row_id=True)
        return session


@pytest.mark.parametrize("stable", [False, True], ids=["row addresses", "stable row ids"])
@pytest.mark.parametrize("kind", PREDICATES)
@pytest.mark.parametrize("name", OPERATIONS)
def test_answers_after(name: str, kind: str, stable: bool, tmp_path: Path) -> None:
    done = OPERATIONS[name]
    table = Table(tmp_path / "t.lance", kind, stable=stable)
    first = OPERATIONS["nothing"].names
    before = table.session()
    assert check(before, table.held, kind, first)
    past = dict(table.history)
    table.do(*done.changes)
    if not any(isinstance(change, CleanUp) for change in done.changes):
        check(before, past[max(past)], kind, first)
    before.refresh("t")
    served = check(before, table.held, kind, done.names)
    assert check(table.session(), table.held, kind, done.names) == served
    assert served == done.served(kind, stable)
    versions = {one["version"] for one in lance.dataset(table.path).versions()}
    for version in versions & past.keys():
        check(table.session(version), past[version], kind, first)


# -- upkeep in between ------------------------------------------------------------------------

_IN_TURN = (
    *("append", "append, optimize", "delete", "delete a fragment", "update another column"),
    *("update the column", "merge_insert", "merge_insert of the column", "rewrite in place"),
    *("compact", "compact, remap later", "clean up", "build again"),
)


_THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
_KINDS = {1: tuple(PREDICATES), 5: ("LabelList", "MinHashLsh")}
_PAIRS = [
    (first, _IN_TURN[(at + step) % len(_IN_TURN)], _KINDS[kinds])
    for at, first in enumerate(_IN_TURN)
    for kinds in _KINDS
    for step in (range(len(_IN_TURN)) if _THOROUGH else (kinds,))
]
"""Each of them first with two others, or with each in a thorough run."""


@pytest.mark.parametrize("stable", [False, True], ids=["row addresses", "stable row ids"])
@pytest.mark.parametrize(("first", "second", "kinds"), _PAIRS)
def test_upkeep_between_two_operations(
    first: str, second: str, kinds: tuple[str, ...], stable: bool, tmp_path: Path
) -> None:
    table = Table(tmp_path / "t.lance", *kinds, stable=stable)
    names = OPERATIONS["nothing"].names
    session = table.session()
    table.do(*OPERATIONS[first].changes, KeepUp())
    session.refresh("t")
    listed = session.lance_indexes("t").to_pylist()
    covered = [(one["uncovered_fragments"], one["unusable"]) for one in listed]
    assert covered == [(0, None)] * len(kinds)
    version, kept_up = table.version, table.held
    assert all(check(session, kept_up, kind, names) for kind in kinds)
    table.do(*OPERATIONS[second].changes)
    session.refresh("t")
    for kind in kinds:
        check(session, table.held, kind, names)
    if second != "clean up":
        past = table.session(version)
        assert all(check(past, kept_up, kind, names) for kind in kinds)


def test_versions_that_are_gone_are_refused_by_their_number(tmp_path: Path) -> None:
    table = Table(tmp_path / "t.lance", "LabelList", stable=False)
    table.do(_APPEND, _DELETE)
    lance.dataset(table.path).cleanup_old_versions(dt.timedelta(0), delete_unverified=True)
    with pytest.raises(Exception, match="version: got 2, takes a version number"):
        table.session(2)
