"""Reading rows by address, by a masked scan, and as the package chooses, from 1 row to all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from unittest.mock import patch

import lance
import numpy as np
import pyarrow as pa

from datafusion_lance.engine import row_fetch
from datafusion_lance.engine.row_fetch import RowReader
from datafusion_lance.indexes.cache import ReaderCache
from datafusion_lance.indexes.row_set import RowSet
from datafusion_lance.indexes.snapshot import Snapshot
from report import number, print_table
from turns import clocked

COLUMNS = {"owner": "int64", "caption": "text", "vector": "128 floats", "detections": "structs"}
GOAL = 1.2
GIVEN_UP = 4.0
"""A way that takes so many times as long as the other is not tried with more rows."""


@dataclass(frozen=True, slots=True)
class Point:
    """Milliseconds, the least of some runs; NaN where a way was given up before."""

    column: str
    rows: int
    take: float
    scan: float
    ours: float

    @property
    def ratio(self) -> float:
        """Ours to the better of both."""
        return self.ours / float(np.nanmin([self.take, self.scan]))


def sweep(path: Path, runs: int) -> Iterator[Point]:
    """Random rows of a wide table, three steps for each power of ten; nothing is kept in memory."""
    dataset = lance.dataset(path)
    stored = dataset.count_rows()
    starts = [(f.fragment_id << 32, f.count_rows()) for f in dataset.get_fragments()]
    every = np.concatenate([start + np.arange(rows, dtype=np.uint64) for start, rows in starts])
    rng = np.random.default_rng(60)
    steps = [step * 10**power for power in range(9) for step in (1, 2, 5)]
    for column in COLUMNS:
        schema = pa.schema([dataset.schema.field(column)])
        reader = RowReader(Snapshot(dataset, ReaderCache(0)))
        before: Point | None = None
        for wanted in (*(step for step in steps if step < stored), stored):
            chosen = np.sort(rng.choice(every, wanted, replace=False)).astype(np.uint64)
            rows = RowSet.from_addresses(chosen)
            ways = {"take": _always(False), "scan": _always(True), "ours": nullcontext()}
            least = dict.fromkeys(ways, float("nan"))
            for run in range(runs):
                # What runs after a scan finds its caches full of it: each way comes first, too.
                for way, choosing in list(ways.items())[:: 1 if run % 2 == 0 else -1]:
                    if before is not None and _given_up(before, way):
                        continue
                    with choosing:
                        taken = clocked(partial(_read, reader, rows, schema))
                    least[way] = float(np.fmin(least[way], taken))
            before = Point(column, wanted, **least)
            yield before


def _read(reader: RowReader, rows: RowSet, schema: pa.Schema) -> None:
    for _ in reader.fetch(rows, schema, None):
        pass


def _always(scan: bool) -> AbstractContextManager[object]:
    return patch.object(row_fetch, "by_scan", lambda costs, wanted, stored: scan)


def _given_up(before: Point, way: str) -> bool:
    if way == "take":
        return bool(np.isnan(before.take) or before.take > GIVEN_UP * before.scan)
    return False


def print_worst(points: list[Point]) -> None:
    """A row for each column: where our choice is worst."""
    rows = []
    for column, kind in COLUMNS.items():
        one = max((p for p in points if p.column == column), key=lambda point: point.ratio)
        verdict = "met" if one.ratio <= GOAL else "MISSED"
        measured = (number(one.take), number(one.scan), number(one.ours), f"{one.ratio:.2f}")
        rows.append((kind, f"{one.rows:,}", *measured, verdict))
    header = ("worst choice", "rows", "take ms", "scan ms", "ours ms", "ratio", f"≤ {GOAL}")
    print_table("fetch: ours / the better way, from 1 row to all", header, rows)
