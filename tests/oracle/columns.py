"""Columns: how they are typed and drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from .kinds import Kind
from .texts import Texts

NULLS = 0.08


@dataclass(frozen=True, slots=True)
class Plain:
    """A column of single values."""

    name: str
    kind: Kind

    @property
    def type(self) -> pa.DataType:
        return self.kind.type

    def draw(self, random: np.random.Generator, rows: int) -> pa.Array:
        return self.kind.draw(random, rows, NULLS)


@dataclass(frozen=True, slots=True)
class Labels:
    """A column of lists of values: some NULL, some empty, some with NULLs and duplicates."""

    name: str
    kind: Kind
    large: bool

    @property
    def type(self) -> pa.DataType:
        return (pa.large_list if self.large else pa.list_)(self.kind.type)

    def draw(self, random: np.random.Generator, rows: int) -> pa.Array:
        lengths = random.integers(0, 5, rows)
        values = self.kind.draw(random, int(lengths.sum()), NULLS)
        return _lists(self.type, lengths, values, random)


@dataclass(frozen=True, slots=True)
class Elements:
    """A column of lists of structs, of whose fields `keys` are those of each of its indexes.

    Under a NULL element every field is NULL, as Lance gives it back.
    """

    name: str
    fields: tuple[tuple[str, Kind], ...]
    keys: tuple[tuple[str, ...], ...]

    @property
    def type(self) -> pa.DataType:
        return pa.list_(pa.struct([(name, kind.type) for name, kind in self.fields]))

    def kind_of(self, field: str) -> Kind:
        return dict(self.fields)[field]

    def without(self, field: str) -> Elements:
        return replace(self, fields=tuple(one for one in self.fields if one[0] != field))

    def draw(self, random: np.random.Generator, rows: int) -> pa.Array:
        lengths = random.integers(0, 4, rows)
        count = int(lengths.sum())
        missing = random.random(count) < NULLS
        fields = []
        for _, kind in self.fields:
            drawn = kind.draw(random, count, NULLS)
            places = pa.array(np.arange(count), mask=missing)
            fields.append(drawn.take(places))
        structs = pa.StructArray.from_arrays(
            fields, fields=list(self.type.value_type), mask=pa.array(missing)
        )
        return _lists(self.type, lengths, structs, random)


Column: TypeAlias = Plain | Labels | Elements | Texts


def _lists(
    kind: pa.DataType, lengths: np.ndarray, values: pa.Array, random: np.random.Generator
) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    nulls = pa.array(random.random(len(lengths)) < NULLS)
    if pa.types.is_large_list(kind):
        return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), values, mask=nulls)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=nulls)


def schema_of(columns: tuple[Column, ...]) -> pa.Schema:
    """The schema of a table of `columns` behind its key."""
    key = pa.field("key", pa.int64(), nullable=False)
    return pa.schema([key, *(pa.field(column.name, column.type) for column in columns)])


def rows_of(columns: tuple[Column, ...], random: np.random.Generator, keys: range) -> pa.Table:
    """Rows with the given keys."""
    arrays = [pa.array(keys, pa.int64())]
    arrays += [column.draw(random, len(keys)) for column in columns]
    return pa.table(arrays, schema=schema_of(columns))
