"""Rows by a label: datafusion-lance beside other readers of the same Lance table.

Lance and DataFusion are asked with `array_has_any`, DuckDB and Polars in the form that is fastest
there. Each contender reads the same files. Before anything is timed, all give the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import lance
import numpy as np
import polars as pl
import pyarrow as pa

from cold import first_runs
from datafusion_lance.engine import LanceSessionContext
from ffi_process import FFI, FfiProcess, FfiStatement
from report import Case, Goal
from turns import Contender, Here, in_turns

GROUP = "label list"
MANY_GROUP = "label list, 1,000,000 labels"
OURS, SCAN, SQL = "datafusion-lance", "pylance scan", "pylance ds.sql"


@dataclass(frozen=True, slots=True)
class Lookup:
    """`SELECT wanted`, which is a column, `*` or `count(*)`, of the rows that have a label."""

    wanted: str
    label: str

    @property
    def counts(self) -> bool:
        return self.wanted == "count(*)"

    @property
    def condition(self) -> str:
        return f"array_has_any(tags, ['{self.label}'])"

    def sql(self, table: str = "images", condition: str | None = None) -> str:
        return f"SELECT {self.wanted} FROM {table} WHERE {condition or self.condition}"


def label_nearest(dataset: lance.LanceDataset, rows: int) -> tuple[str, int]:
    """The label that nearest to `rows` rows have, and how many have it."""
    tags = dataset.to_table(columns=["tags"])["tags"].combine_chunks()
    pairs = pa.table({"row": tags.value_parent_indices(), "label": tags.flatten()})
    counts = pairs.group_by("label").aggregate([("row", "count_distinct")]).sort_by("label")
    hits = counts["row_count_distinct"].to_numpy()
    nearest = int(np.abs(hits - rows).argmin())
    return counts["label"][nearest].as_py(), int(hits[nearest])


def session(path: Path, lookup: Lookup, *, use_indexes: bool) -> Callable[[], pa.Table]:
    context = LanceSessionContext(use_indexes=use_indexes)
    context.register_lance("images", path)
    return lambda: context.sql(lookup.sql()).to_arrow_table()


def pylance(path: Path, lookup: Lookup) -> Callable[[], pa.Table | int]:
    dataset = lance.dataset(path)
    if lookup.counts:
        return lambda: dataset.count_rows(lookup.condition)
    columns = None if lookup.wanted == "*" else [lookup.wanted]
    return lambda: dataset.to_table(columns=columns, filter=lookup.condition)


def pylance_sql(path: Path, lookup: Lookup) -> Callable[[], pa.Table]:
    dataset = lance.dataset(path)

    def asked() -> pa.Table:
        query = dataset.sql(lookup.sql("dataset")).build()
        return pa.Table.from_batches(query.to_batch_records())

    return asked


def duckdb_scan(path: Path, lookup: Lookup) -> Callable[[], pa.Table]:
    duck = duckdb.connect()
    duck.register("images", lance.dataset(path))
    sql = lookup.sql(condition=f"list_contains(tags, '{lookup.label}')")
    return lambda: duck.sql(sql).to_arrow_table()


def polars_scan(path: Path, lookup: Lookup) -> Callable[[], pa.Table]:
    dataset = lance.dataset(path)
    wanted = pl.len() if lookup.counts else pl.col(lookup.wanted)

    def asked() -> pa.Table:
        rows = pl.scan_pyarrow_dataset(dataset)
        has_label = pl.col("tags").list.contains(lookup.label)
        return rows.filter(has_label).select(wanted).collect().to_arrow()

    return asked


OPENERS: dict[str, Callable[[Path, Lookup], Callable[[], Any]]] = {
    OURS: partial(session, use_indexes=True),
    SCAN: pylance,
    SQL: pylance_sql,
    "DataFusion, no index": partial(session, use_indexes=False),
    "DuckDB": duckdb_scan,
    "Polars": polars_scan,
}
INDEXED = (OURS, SCAN, SQL)
"""Those that use the index; only they are timed cold, since it is nothing to a scan."""


def answer(result: pa.Table | int) -> list[int]:
    """A contender's result in a form that compares: sorted ids, or the one count."""
    if isinstance(result, int):
        return [result]
    return np.sort(result.column(0).to_numpy()).tolist()


def contenders(path: Path, lookup: Lookup, ffi: FfiProcess | None) -> dict[str, Contender]:
    """By name, what gives the rows, with its caches warm."""
    competing: dict[str, Contender] = {
        name: Here(opener(path, lookup)) for name, opener in OPENERS.items()
    }
    if ffi is not None:
        competing[FFI] = FfiStatement(ffi, lookup.sql())
    expected = answer(competing[OURS].answer())
    for name, contender in competing.items():
        if answer(contender.answer()) != expected:
            raise AssertionError(f"{name} differs on {lookup}")
    return competing


def lookups(path: Path, shares: Mapping[tuple[str, int], Goal | None]) -> Iterator[tuple[Any, ...]]:
    """The lookups, their titles and goals; a share is of a million rows."""
    dataset = lance.dataset(path)
    rows = dataset.count_rows()
    for (wanted, share), goal in shares.items():
        label, hits = label_nearest(dataset, share * rows // 1_000_000)
        columns = "all columns" if wanted == "*" else wanted
        yield Lookup(wanted, label), f"{columns}, {hits:,} of {rows:,} rows", goal


NARROW = {
    ("id", 118): Goal(1.3, SCAN),
    ("count(*)", 118): None,
    ("id", 354_000): Goal(0.5),
    ("count(*)", 354_000): Goal(0.15, SQL),
}
WIDE = {("*", 3_981): Goal(1.0)}
MANY = {("id", 118): None, ("id", 30_000): None}


def cases(
    path: Path,
    shares: Mapping[tuple[str, int], Goal | None],
    runs: int,
    cold_runs: int,
    ffi: FfiProcess | None,
    group: str = GROUP,
) -> Iterator[Case]:
    """Warm, and for those that use an index cold."""
    for lookup, title, goal in lookups(path, shares):
        competing = contenders(path, lookup, ffi)
        yield Case(group, title, in_turns(competing, runs), OURS, goal)
        if cold_runs:
            openers = {name: partial(OPENERS[name], path, lookup) for name in INDEXED}
            yield Case(group, title, first_runs(openers, cold_runs), OURS, caches="cold")
