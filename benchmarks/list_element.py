"""`any_element` on a million rows: datafusion-lance beside other readers of the same Lance table.

    python benchmarks/list_element.py [--rows N ...] [--runs N] [--tables FOLDER] [--json FILE]

With several `--rows` the same numbers of hits are looked for in tables of several sizes. Each
contender reads the same files, its caches warm, in turns with the others. Before anything is
timed, all have to give the same answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import lance
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from datafusion_lance.engine import LanceSessionContext
from measure import Timing, command_line, interleaved, print_ratios, print_versions, write_report
from tables import FOLDER, images

OURS = "datafusion-lance"
HITS = (30, 250)
INDEX = "detections_idx"


@dataclass(frozen=True, slots=True)
class Condition:
    """Elements with a label, of a confidence above a bound."""

    label: str
    bound: float


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


def contenders(path: Path, condition: Condition) -> dict[str, Callable[[], Any]]:
    """By name, what gives the ids of the rows with an element that meets the condition."""
    dataset = lance.dataset(path)
    session = LanceSessionContext()
    session.register_lance("images", path)
    scanning = LanceSessionContext(use_indexes=False)
    scanning.register_lance("images", path)
    duck = duckdb.connect()
    duck.register("images", dataset)
    label, bound = condition.label, condition.bound
    element = pl.element().struct
    meets = (element.field("label") == label) & (element.field("confidence") > bound)

    def ours(session: LanceSessionContext) -> pa.Table:
        predicate = f"label = ''{label}'' AND confidence > {bound!r}"
        query = f"SELECT id FROM images WHERE any_element(detections, '{predicate}')"
        return session.sql(query).to_arrow_table()

    def duckdb_scan() -> pa.Table:
        found = f"lambda x: x.label = '{label}' AND x.confidence > {bound!r}"
        query = f"SELECT id FROM images WHERE len(list_filter(detections, {found})) > 0"
        return duck.sql(query).to_arrow_table()

    def polars_scan() -> pa.Table:
        rows = pl.scan_pyarrow_dataset(dataset).filter(
            pl.col("detections").list.eval(meets).list.any()
        )
        return rows.select("id").collect().to_arrow()

    return {
        OURS: lambda: ours(session),
        "DataFusion, no index": lambda: ours(scanning),
        "DuckDB": duckdb_scan,
        "Polars": polars_scan,
    }


def indexed(rows: int, folder: Path) -> Path:
    """The path of the table of `rows` rows, with a list element index on `detections`."""
    path = images(rows, folder)
    session = LanceSessionContext()
    session.register_lance("images", path)
    session.create_lance_index(
        "images",
        "detections",
        "LIST_ELEMENT",
        keys=["label", "confidence"],
        name=INDEX,
        replace=True,
    )
    return path


def run(path: Path, runs: int) -> dict[str, dict[str, Timing]]:
    """Timings by case and contender."""
    dataset = lance.dataset(path)
    rows = dataset.count_rows()
    print(f"{rows:,} rows in {len(dataset.get_fragments())} fragments, {path}")
    timings = {}
    for hits in HITS:
        title = f"id where any_element: {hits} elements in {rows:,} rows"
        competing = contenders(path, condition_of(dataset, hits))
        expected = np.sort(competing[OURS]()["id"].to_numpy()).tolist()
        assert 0.9 * hits <= len(expected) <= hits, title
        for name, contender in competing.items():
            found = np.sort(contender()["id"].to_numpy()).tolist()
            assert found == expected, f"{name} differs on {title}"
        timings[title] = interleaved(competing, runs)
        print_ratios(title, timings[title], OURS)
    return timings


def main() -> None:
    arguments = command_line("any_element on a Lance table", runs=41)
    arguments.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    arguments.add_argument("--tables", type=Path, default=FOLDER, help="where tables are kept")
    given = arguments.parse_args()
    print_versions()
    timings: dict[str, dict[str, Timing]] = {}
    for rows in given.rows:
        timings |= run(indexed(rows, given.tables), given.runs)
    write_report(given.json, timings)


if __name__ == "__main__":
    main()
