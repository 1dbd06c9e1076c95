"""A world's tables at one moment, in a session and in plain DataFusion."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from datafusion import SessionConfig, SessionContext, udf

from datafusion_lance.engine import LanceSessionContext
from datafusion_lance.udfs.minhash.definitions import function_of

from .changes import lived
from .columns import Column
from .texts import GIVEN, Signing
from .worlds import Life, World
from .writing import write_fragments


@dataclass(frozen=True, slots=True)
class Moment:
    """After how many changes of `t` it is asked, and as it was after how many (None: of all)."""

    changes: int
    past: int | None = None

    @property
    def shown(self) -> int:
        return self.changes if self.past is None else self.past


@dataclass(frozen=True, slots=True)
class Sessions:
    """Two that are to give the same answers, and what the two tables hold.

    Run without its indexes, `indexed` is to give the same answers once more; it has `t` with
    its row ids, too, as `r`. `signings` are those of the MinHash indexes of `t`.
    """

    indexed: LanceSessionContext
    memory: SessionContext
    columns: dict[str, tuple[Column, ...]]
    rows: dict[str, pa.Table]
    signings: tuple[Signing, ...]


class Situation:
    """Lives a world in a folder, moment by moment.

    The session of the newest version lives on and is refreshed; that of the past is new.
    """

    def __init__(self, world: World, folder: Path) -> None:
        self._world = world
        self._folder = folder
        self._versions: list[int] = []
        self._newest: LanceSessionContext | None = None

    def at(self, moment: Moment) -> Sessions:
        """The sessions at a moment; later moments come later."""
        world = self._world
        if not self._versions:
            begin(world.u, self.path("u"))
            for change in world.u.changes:
                change.stored(self.path("u"))
            begin(world.t, self.path("t"))
            self._versions.append(lance.dataset(self.path("t")).version)
        for change in world.t.changes[len(self._versions) - 1 : moment.changes]:
            change.stored(self.path("t"))
            self._versions.append(lance.dataset(self.path("t")).version)
        indexed = self._at_newest() if moment.past is None else self._at(moment.past)
        rows = {
            "t": lived(world.t.first, world.t.changes[: moment.shown]),
            "u": lived(world.u.first, world.u.changes),
        }
        columns = {
            "t": world.t.columns_after(moment.shown),
            "u": world.u.columns_after(len(world.u.changes)),
        }
        signings = self._signings(moment)
        return Sessions(indexed, memory_of(rows, world), columns, rows, signings)

    def _signings(self, moment: Moment) -> tuple[Signing, ...]:
        shown = lance.dataset(self.path("t"), version=self._versions[moment.shown])
        details = [one.details for one in shown.describe_indices() if "MinHash" in one.type_url]
        return tuple((d["num_hashes"], d["num_bands"], d["shingle_size"]) for d in details)

    def path(self, table: str) -> Path:
        return self._folder / f"{table}.lance"

    def _at_newest(self) -> LanceSessionContext:
        if self._newest is None:
            self._newest = self._at(None)
        self._newest.refresh("t")
        self._newest.refresh("r")
        return self._newest

    def _at(self, past: int | None) -> LanceSessionContext:
        session = LanceSessionContext(config_of(self._world))
        version = None if past is None else self._versions[past]
        session.register_lance("t", self.path("t"), version=version)
        session.register_lance("r", self.path("t"), version=version, row_id=True)
        session.register_lance("u", self.path("u"))
        register_own_function(session, self._world)
        return session


def begin(life: Life, path: Path) -> None:
    write_fragments(path, life.first, life.rows_per_fragment, life.stable_row_ids)


def config_of(world: World) -> SessionConfig:
    """In DuckDB's dialect, whose arrow makes lambdas."""
    config = SessionConfig().with_target_partitions(world.target_partitions)
    config = config.with_batch_size(world.batch_size)
    return config.set("datafusion.sql_parser.dialect", "duckdb")


def memory_of(rows: dict[str, pa.Table], world: World) -> SessionContext:
    """Plain DataFusion over the rows, with the functions of texts, of which it has none."""
    context = SessionContext(config_of(world))
    for name, table in rows.items():
        empty = pa.RecordBatch.from_pylist([], schema=table.schema)
        context.register_record_batches(name, [table.combine_chunks().to_batches() or [empty]])
    for base in ("minhash_distance", "minhash_similarity"):
        for given in ((), *GIVEN):
            context.register_udf(function_of(base, given).udf)
    register_own_function(context, world)
    return context


def register_own_function(context: SessionContext, world: World) -> None:
    """A function of the user's in the place of DataFusion's: TRUE on lists of even length."""
    if world.own_function is None:
        return
    (column,) = [one for one in world.t.columns if one.name == "a"]
    kinds = [column.type, pa.list_(column.type.value_type)]
    own: Any = udf(_is_even_length, kinds, pa.bool_(), "immutable", world.own_function)
    context.register_udf(own)


def _is_even_length(lists: pa.Array, _others: pa.Array) -> pa.Array:
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False)
    return pa.array(lengths % 2 == 0, mask=lists.is_null().to_numpy(zero_copy_only=False))
