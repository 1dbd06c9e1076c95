"""What happens to a table: done to the Lance dataset, done to the rows in memory, and as source.

The rows in memory are changed with pyarrow alone, so that nothing under test has a part in the
expected answer. In the source, `path` is the dataset's.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance.dataset import Index
from lance.indices import IndexConfig

from datafusion_lance.engine import LanceSessionContext
from datafusion_lance.indexes.list_element.builder import build_segment, commit_segments

from .columns import Column, Elements, Labels
from .source import call_source, table_source
from .texts import Signing, Texts
from .writing import write_fragments


class Change(Protocol):
    def stored(self, path: Path) -> None:
        """Does it to the Lance dataset."""
        ...

    def held(self, rows: pa.Table) -> pa.Table:
        """Does it to the rows."""
        ...

    def columns(self, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        """The columns that there are afterwards."""
        ...

    def source(self) -> str:
        """Does it to the Lance dataset at `path`."""
        ...


class _Change:
    """A change that leaves rows and columns as they are, unless it says otherwise."""

    __slots__ = ()

    def held(self, rows: pa.Table) -> pa.Table:
        return rows

    def columns(self, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        return columns


@dataclass(frozen=True, slots=True)
class Keys:
    """Rows by their keys: from `low` on and below `high`, every `step`th."""

    low: int
    high: int
    step: int = 1

    @property
    def sql(self) -> str:
        every = f" AND key % {self.step} = {self.low % self.step}" if self.step > 1 else ""
        return f"key >= {self.low} AND key < {self.high}{every}"

    def mask(self, rows: pa.Table) -> np.ndarray:
        keys = rows["key"].to_numpy()
        return (keys >= self.low) & (keys < self.high) & (keys % self.step == self.low % self.step)


# -- rows ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Append(_Change):
    rows: pa.Table
    rows_per_fragment: int

    def stored(self, path: Path) -> None:
        write_fragments(path, self.rows, self.rows_per_fragment)

    def held(self, rows: pa.Table) -> pa.Table:
        return pa.concat_tables([rows, self.rows])

    def source(self) -> str:
        return f"write_fragments(path, {table_source(self.rows)}, {self.rows_per_fragment})"


@dataclass(frozen=True, slots=True)
class Delete(_Change):
    keys: Keys

    def stored(self, path: Path) -> None:
        lance.dataset(path).delete(self.keys.sql)

    def held(self, rows: pa.Table) -> pa.Table:
        return rows.filter(pa.array(~self.keys.mask(rows)))

    def source(self) -> str:
        return call_source("lance.dataset(path).delete", self.keys.sql)


@dataclass(frozen=True, slots=True)
class Update(_Change):
    """Sets a column to NULL, which moves the rows to a new fragment."""

    keys: Keys
    column: str

    def stored(self, path: Path) -> None:
        lance.dataset(path).update({self.column: "NULL"}, where=self.keys.sql)

    def held(self, rows: pa.Table) -> pa.Table:
        mask = pa.array(np.arange(rows.num_rows), mask=self.keys.mask(rows))
        return _with_column(rows, self.column, _combined(rows[self.column]).take(mask))

    def source(self) -> str:
        return call_source("lance.dataset(path).update", {self.column: "NULL"}, where=self.keys.sql)


@dataclass(frozen=True, slots=True)
class Merge(_Change):
    """Merges rows in by their keys: some columns of rows that are there, or whole rows."""

    rows: pa.Table
    insert: bool

    def stored(self, path: Path) -> None:
        merge = lance.dataset(path).merge_insert("key").when_matched_update_all()
        if self.insert:
            merge = merge.when_not_matched_insert_all()
        merge.execute(self.rows)

    def held(self, rows: pa.Table) -> pa.Table:
        merged = _merged(rows, self.rows)
        if not self.insert:
            return merged
        known = pc.is_in(self.rows["key"], value_set=rows["key"])
        return pa.concat_tables([merged, self.rows.filter(pc.invert(known))])

    def source(self) -> str:
        insert = ".when_not_matched_insert_all()" if self.insert else ""
        return (
            "lance.dataset(path).merge_insert('key').when_matched_update_all()"
            f"{insert}.execute({table_source(self.rows)})"
        )


@dataclass(frozen=True, slots=True)
class Rewrite(_Change):
    """Writes columns of whole fragments again, in place: their rows do not move."""

    rows: pa.Table

    def stored(self, path: Path) -> None:
        dataset = lance.dataset(path)
        pairs = [
            fragment.update_columns(self.rows, left_on="key", right_on="key")
            for fragment in dataset.get_fragments()
            if fragment.count_rows(self._where)
        ]
        if pairs:
            operation = lance.LanceOperation.Update(
                updated_fragments=[metadata for metadata, _ in pairs],
                fields_modified=pairs[0][1],
            )
            lance.LanceDataset.commit(path, operation, read_version=dataset.version)

    @property
    def _where(self) -> str:
        return f"key IN ({', '.join(map(str, self.rows['key'].to_pylist()))})"

    def held(self, rows: pa.Table) -> pa.Table:
        return _merged(rows, self.rows)

    def source(self) -> str:
        return "\n".join(
            [
                f"changes = {table_source(self.rows)}",
                "dataset = lance.dataset(path)",
                "pairs = [fragment.update_columns(changes, left_on='key', right_on='key')",
                "         for fragment in dataset.get_fragments()",
                f"         if fragment.count_rows({self._where!r})]",
                "lance.LanceDataset.commit(path, lance.LanceOperation.Update(",
                "    updated_fragments=[metadata for metadata, _ in pairs],",
                "    fields_modified=pairs[0][1]), read_version=dataset.version)",
            ]
        )


def _merged(rows: pa.Table, changes: pa.Table) -> pa.Table:
    """`rows` with the columns of `changes` where a key of theirs is there."""
    places = pc.index_in(rows["key"], value_set=changes["key"]).combine_chunks()
    changed = places.is_valid().to_numpy(zero_copy_only=False)
    at = np.where(changed, rows.num_rows + places.fill_null(0).to_numpy(), np.arange(rows.num_rows))
    for name in changes.column_names[1:]:
        both = pa.chunked_array([*rows[name].chunks, *changes[name].chunks], rows[name].type)
        rows = _with_column(rows, name, _combined(both).take(pa.array(at)))
    return rows


def _with_column(rows: pa.Table, name: str, values: pa.Array) -> pa.Table:
    at = rows.schema.get_field_index(name)
    return rows.set_column(at, rows.schema.field(at), values)


def _combined(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


# -- fragments and indexes -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Compact(_Change):
    """Rewrites small fragments; `deferred` leaves the indexes with the old addresses."""

    target: int
    deferred: bool

    def stored(self, path: Path) -> None:
        lance.dataset(path).optimize.compact_files(
            target_rows_per_fragment=self.target, defer_index_remap=self.deferred
        )

    def source(self) -> str:
        return call_source(
            "lance.dataset(path).optimize.compact_files",
            target_rows_per_fragment=self.target,
            defer_index_remap=self.deferred,
        )


@dataclass(frozen=True, slots=True)
class Optimize(_Change):
    """Indexes what is not, where pylance knows the index: for `merged` 0 in a new segment."""

    merged: int

    def stored(self, path: Path) -> None:
        lance.dataset(path).optimize.optimize_indices(num_indices_to_merge=self.merged)

    def source(self) -> str:
        return call_source(
            "lance.dataset(path).optimize.optimize_indices", num_indices_to_merge=self.merged
        )


@dataclass(frozen=True, slots=True)
class KeepUp(_Change):
    """This package's upkeep of every index that can be used."""

    def stored(self, path: Path) -> None:
        session = LanceSessionContext()
        session.register_lance("kept", path)
        for index in session.lance_indexes("kept").to_pylist():
            if index["unusable"] is None:
                session.optimize_lance_index("kept", index["name"], progress=False)

    def source(self) -> str:
        return "\n".join(
            [
                "session = LanceSessionContext()",
                "session.register_lance('kept', path)",
                "for index in session.lance_indexes('kept').to_pylist():",
                "    if index['unusable'] is None:",
                "        session.optimize_lance_index('kept', index['name'], progress=False)",
            ]
        )


@dataclass(frozen=True, slots=True)
class BuildLabels(_Change):
    column: str
    name: str

    def stored(self, path: Path) -> None:
        lance.dataset(path).create_scalar_index(
            self.column, "LABEL_LIST", name=self.name, replace=True
        )

    def source(self) -> str:
        return call_source(
            "lance.dataset(path).create_scalar_index",
            self.column,
            "LABEL_LIST",
            name=self.name,
            replace=True,
        )


@dataclass(frozen=True, slots=True)
class BuildElements(_Change):
    """A list element index in so many segments over the fragments from `low` to `high`.

    Both are shares of the fragments' number: 0 and 1 are all of them.
    """

    column: str
    keys: tuple[str, ...]
    name: str
    segments: int
    low: float
    high: float

    def stored(self, path: Path) -> None:
        dataset = lance.dataset(path)
        ids = [fragment.fragment_id for fragment in dataset.get_fragments()]
        ids = ids[int(self.low * len(ids)) : int(self.high * len(ids))]
        parts = [set(ids[n :: self.segments]) for n in range(self.segments)]
        built = [
            build_segment(dataset, self.column, self.keys, fragment_ids=part, progress=False)
            for part in parts
            if part
        ]
        if built:
            commit_segments(dataset, built, self.name, replace=True)

    def source(self) -> str:
        return "\n".join(
            [
                "from datafusion_lance.indexes.list_element.builder import (",
                "    build_segment, commit_segments)",
                "dataset = lance.dataset(path)",
                "ids = [fragment.fragment_id for fragment in dataset.get_fragments()]",
                f"ids = ids[int({self.low} * len(ids)) : int({self.high} * len(ids))]",
                f"parts = [set(ids[n::{self.segments}]) for n in range({self.segments})]",
                f"built = [build_segment(dataset, {self.column!r}, {self.keys!r},",
                "         fragment_ids=part, progress=False) for part in parts if part]",
                "if built:",
                f"    commit_segments(dataset, built, {self.name!r}, replace=True)",
            ]
        )


@dataclass(frozen=True, slots=True)
class BuildTexts(_Change):
    """A MinHash LSH index."""

    column: str
    signing: Signing
    name: str

    def stored(self, path: Path) -> None:
        config = IndexConfig("minhashlsh", parameters=self._parameters)
        lance.dataset(path).create_scalar_index(self.column, config, name=self.name, replace=True)

    @property
    def _parameters(self) -> dict[str, int]:
        names = ("num_hashes", "num_bands", "shingle_size")
        return dict(zip(names, self.signing, strict=True))

    def source(self) -> str:
        return "\n".join(
            [
                "from lance.indices import IndexConfig",
                f"config = IndexConfig('minhashlsh', parameters={self._parameters})",
                "lance.dataset(path).create_scalar_index("
                f"{self.column!r}, config, name={self.name!r}, replace=True)",
            ]
        )


@dataclass(frozen=True, slots=True)
class Age(_Change):
    """Gives a label list index another version: 0 stores no null lists, 99 is unknown."""

    name: str
    version: int

    def stored(self, path: Path) -> None:
        age_index(path, self.name, self.version)

    def source(self) -> str:
        return "\n".join(
            [
                "from tests.oracle.changes import age_index",
                call_source("age_index", "PATH", self.name, self.version).replace("'PATH'", "path"),
            ]
        )


def age_index(path: Any, name: str, version: int) -> None:
    """Commits an index again under another version of its format, its files untouched."""
    dataset = lance.dataset(path)
    (description,) = [one for one in dataset.describe_indices() if one.name == name]
    segments = [
        Index(
            uuid=segment.uuid,
            name=name,
            fields=description.fields,
            dataset_version=segment.dataset_version_at_last_update,
            fragment_ids=segment.fragment_ids,
            index_version=segment.index_version,
            index_details=(description.type_url, b""),
        )
        for segment in description.segments
    ]
    aged = [replace(segment, index_version=version) for segment in segments]
    operation = lance.LanceOperation.CreateIndex(aged, segments)
    lance.LanceDataset.commit(path, operation, read_version=dataset.version)


@dataclass(frozen=True, slots=True)
class CleanUp(_Change):
    """Deletes the files of past versions."""

    def stored(self, path: Path) -> None:
        lance.dataset(path).cleanup_old_versions(dt.timedelta(0), delete_unverified=True)

    def source(self) -> str:
        return "lance.dataset(path).cleanup_old_versions(timedelta(0), delete_unverified=True)"


# -- columns --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AddColumn(_Change):
    name: str

    def stored(self, path: Path) -> None:
        lance.dataset(path).add_columns({self.name: "key + 1"})

    def held(self, rows: pa.Table) -> pa.Table:
        return rows.append_column(
            pa.field(self.name, pa.int64(), nullable=False),
            pc.add(rows["key"], pa.scalar(1, pa.int64())),
        )

    def source(self) -> str:
        return call_source("lance.dataset(path).add_columns", {self.name: "key + 1"})


@dataclass(frozen=True, slots=True)
class Drop(_Change):
    column: str

    def stored(self, path: Path) -> None:
        lance.dataset(path).drop_columns([self.column])

    def held(self, rows: pa.Table) -> pa.Table:
        return rows.drop_columns([self.column])

    def columns(self, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        return tuple(column for column in columns if column.name != self.column)

    def source(self) -> str:
        return call_source("lance.dataset(path).drop_columns", [self.column])


@dataclass(frozen=True, slots=True)
class DropField(_Change):
    """Drops a field of a list's structs: an index that has it as a key is of no use then."""

    column: str
    field: str

    def stored(self, path: Path) -> None:
        lance.dataset(path).drop_columns([f"{self.column}.item.{self.field}"])

    def held(self, rows: pa.Table) -> pa.Table:
        at = rows.schema.get_field_index(self.column)
        lists = _combined(rows[self.column])
        structs = lists.values
        kept = [field for field in structs.type.fields if field.name != self.field]
        fields = [structs.field(field.name) for field in kept]
        structs = pa.StructArray.from_arrays(fields, fields=kept, mask=structs.is_null())
        shorter = pa.ListArray.from_arrays(lists.offsets, structs, mask=lists.is_null())
        return rows.set_column(at, pa.field(self.column, shorter.type), shorter)

    def columns(self, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        return tuple(
            column.without(self.field)
            if isinstance(column, Elements) and column.name == self.column
            else column
            for column in columns
        )

    def source(self) -> str:
        return call_source("lance.dataset(path).drop_columns", [f"{self.column}.item.{self.field}"])


@dataclass(frozen=True, slots=True)
class Rename(_Change):
    old: str
    new: str

    def stored(self, path: Path) -> None:
        renaming: Any = {"path": self.old, "name": self.new}
        lance.dataset(path).alter_columns(renaming)

    def held(self, rows: pa.Table) -> pa.Table:
        names = [self.new if name == self.old else name for name in rows.column_names]
        return rows.rename_columns(names)

    def columns(self, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        return tuple(
            replace(column, name=self.new)
            if isinstance(column, Labels | Texts) and column.name == self.old
            else column
            for column in columns
        )

    def source(self) -> str:
        return call_source(
            "lance.dataset(path).alter_columns", {"path": self.old, "name": self.new}
        )


def lived(first: pa.Table, changes: Iterable[Change]) -> pa.Table:
    """The rows after all changes."""
    for change in changes:
        first = change.held(first)
    return first
