"""Rows by an element: datafusion-lance beside other readers of the same Lance table.

Nothing else has an index that answers it. Before anything is timed, all give the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckdb
import lance
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from cold import first_runs
from datafusion_lance.engine import LanceSessionContext
from report import Case, Goal
from tables import images
from turns import Here, in_turns

GROUP = "list element"
OURS = "datafusion-lance"
INDEX = "detections_idx"
GOALS = {30: Goal(1 / 60), 250: Goal(1 / 30)}
GROWTH = Goal(1.3)


@dataclass(frozen=True, slots=True)
class Condition:
    """Elements with a label, of a confidence above a bound."""

    label: str
    bound: float

    @property
    def sql(self) -> str:
        predicate = f"label = ''{self.label}'' AND confidence > {self.bound!r}"
        return f"SELECT id FROM images WHERE any_element(detections, '{predicate}')"


def condition_of(dataset: lance.LanceDataset, hits: int) -> Condition:
    """A condition that as many elements meet: a fifth or less of those with its label."""
    detections = dataset.to_table(columns=["detections"])["detections"].combine_chunks()
    labels, confidences = detections.flatten().flatten()[:2]
    counts = labels.value_counts()
    often = counts.filter(pc.greater_equal(counts.field("counts"), 5 * hits))
    rarest = pc.sort_indices(often.field("counts"))[0].as_py()
    label = often.field("values")[rarest].as_py()
    held = np.sort(confidences.filter(pc.equal(labels, label)).to_numpy())
    bound = (float(held[-hits - 1]) + float(held[-hits])) / 2
    return Condition(label, bound)


def session(path: Path, condition: Condition, *, use_indexes: bool) -> Callable[[], pa.Table]:
    context = LanceSessionContext(use_indexes=use_indexes)
    context.register_lance("images", path)
    return lambda: context.sql(condition.sql).to_arrow_table()


def duckdb_scan(path: Path, condition: Condition) -> Callable[[], pa.Table]:
    duck = duckdb.connect()
    duck.register("images", lance.dataset(path))
    found = f"lambda x: x.label = '{condition.label}' AND x.confidence > {condition.bound!r}"
    query = f"SELECT id FROM images WHERE len(list_filter(detections, {found})) > 0"
    return lambda: duck.sql(query).to_arrow_table()


def polars_scan(path: Path, condition: Condition) -> Callable[[], pa.Table]:
    dataset = lance.dataset(path)
    element = pl.element().struct
    meets = (element.field("label") == condition.label) & (
        element.field("confidence") > condition.bound
    )

    def asked() -> pa.Table:
        rows = pl.scan_pyarrow_dataset(dataset).filter(
            pl.col("detections").list.eval(meets).list.any()
        )
        return rows.select("id").collect().to_arrow()

    return asked


OPENERS: dict[str, Callable[[Path, Condition], Callable[[], pa.Table]]] = {
    OURS: partial(session, use_indexes=True),
    "DataFusion, no index": partial(session, use_indexes=False),
    "DuckDB": duckdb_scan,
    "Polars": polars_scan,
}


def indexed(rows: int, folder: Path) -> Path:
    """The path of the table of `rows` rows, with a list element index on `detections`."""
    path = images(rows, folder)
    context = LanceSessionContext()
    context.register_lance("images", path)
    if INDEX not in context.lance_indexes("images").to_pydict()["name"]:
        context.create_lance_index(
            "images", "detections", "LIST_ELEMENT", keys=["label", "confidence"], progress=False
        )
    return path


def ids(found: pa.Table) -> list[int]:
    return np.sort(found["id"].to_numpy()).tolist()


def cases(path: Path, runs: int, cold_runs: int) -> Iterator[Case]:
    """Warm beside scans; cold beside the one that has its index ready at once, DataFusion."""
    dataset = lance.dataset(path)
    rows = dataset.count_rows()
    for hits, goal in GOALS.items():
        condition = condition_of(dataset, hits)
        title = f"{hits} elements of {rows:,} rows"
        competing = {name: Here(opener(path, condition)) for name, opener in OPENERS.items()}
        expected = ids(competing[OURS].answer())
        assert 0.9 * hits <= len(expected) <= hits, title
        for name, contender in competing.items():
            assert ids(contender.answer()) == expected, f"{name} differs on {title}"
        yield Case(GROUP, title, in_turns(competing, runs), OURS, goal)
        if cold_runs:
            openers = {name: partial(opener, path, condition) for name, opener in OPENERS.items()}
            yield Case(GROUP, title, first_runs(openers, cold_runs), OURS, caches="cold")


def growth_cases(small: Path, large: Path, runs: int) -> Iterator[Case]:
    """As many hits in a large table beside itself in a small one."""
    datasets = [lance.dataset(path) for path in (small, large)]
    few, many = (f"{dataset.count_rows():,} rows" for dataset in datasets)
    for hits in GOALS:
        competing = {
            name: Here(session(path, condition_of(dataset, hits), use_indexes=True))
            for name, path, dataset in zip((few, many), (small, large), datasets, strict=True)
        }
        yield Case(GROUP, f"{hits} elements of {many}", in_turns(competing, runs), many, GROWTH)
