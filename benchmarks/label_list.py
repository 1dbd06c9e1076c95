"""`array_has` on a million rows: datafusion-lance beside other readers of the same Lance table.

    python benchmarks/label_list.py [--rows N] [--runs N] [--tables FOLDER] [--json FILE]

Each contender reads the same files, its caches warm, in turns with the others. Before anything is
timed, all have to give the same answer.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import lance
import numpy as np
import polars as pl
import pyarrow as pa

from datafusion_lance.engine import LanceSessionContext
from measure import Timing, command_line, interleaved, print_ratios, print_versions, write_report
from tables import FOLDER, images

OURS = "datafusion-lance"
FEW, MANY = 118, 354_000  # rows in a million


def label_nearest(dataset: lance.LanceDataset, rows: int) -> tuple[str, int]:
    """The label that nearest to `rows` rows have, and how many have it."""
    tags = dataset.to_table(columns=["tags"])["tags"].combine_chunks()
    pairs = pa.table({"row": tags.value_parent_indices(), "label": tags.flatten()})
    counts = pairs.group_by("label").aggregate([("row", "count_distinct")]).sort_by("label")
    hits = counts["row_count_distinct"].to_numpy()
    nearest = int(np.abs(hits - rows).argmin())
    return counts["label"][nearest].as_py(), int(hits[nearest])


def contenders(path: Path, label: str, count: bool) -> dict[str, Callable[[], Any]]:
    """By name, what gives the ids (or, with `count`, the number) of the rows that have `label`."""
    wanted = "count(*)" if count else "id"
    condition = f"array_has(tags, '{label}')"
    dataset = lance.dataset(path)
    session = LanceSessionContext()
    session.register_lance("images", path)
    scanning = LanceSessionContext(use_indexes=False)
    scanning.register_lance("images", path)
    duck = duckdb.connect()
    duck.register("images", dataset)
    has_label = pl.col("tags").list.contains(label)

    def ours(session: LanceSessionContext) -> pa.Table:
        return session.sql(f"SELECT {wanted} FROM images WHERE {condition}").to_arrow_table()

    def pylance() -> pa.Table | int:
        if count:
            return dataset.count_rows(condition)
        return dataset.to_table(columns=["id"], filter=condition)

    def pylance_sql() -> pa.Table:
        query = dataset.sql(f"SELECT {wanted} FROM dataset WHERE {condition}").build()
        return pa.Table.from_batches(query.to_batch_records())

    def duckdb_scan() -> pa.Table:
        sql = f"SELECT {wanted} FROM images WHERE list_contains(tags, '{label}')"
        return duck.sql(sql).to_arrow_table()

    def polars_scan() -> pa.Table:
        rows = pl.scan_pyarrow_dataset(dataset).filter(has_label)
        return rows.select(pl.len() if count else pl.col("id")).collect().to_arrow()

    return {
        OURS: lambda: ours(session),
        "pylance scan": pylance,
        "pylance ds.sql": pylance_sql,
        "DataFusion, no index": lambda: ours(scanning),
        "DuckDB": duckdb_scan,
        "Polars": polars_scan,
    }


def answer(result: pa.Table | int) -> list[int]:
    """A contender's result in a form that compares: sorted ids, or the one count."""
    if isinstance(result, int):
        return [result]
    return np.sort(result.column(0).to_numpy()).tolist()


def run(path: Path, runs: int) -> dict[str, dict[str, Timing]]:
    """Timings by case and contender."""
    dataset = lance.dataset(path)
    rows = dataset.count_rows()
    print(f"{rows:,} rows in {len(dataset.get_fragments())} fragments, {path}")
    timings = {}
    for share in (FEW, MANY):
        label, hits = label_nearest(dataset, share * rows // 1_000_000)
        for count in (False, True):
            title = f"{'COUNT(*)' if count else 'id'} where array_has: {hits:,} rows"
            competing = contenders(path, label, count)
            expected = answer(competing[OURS]())
            assert (expected == [hits]) if count else (len(expected) == hits), title
            for name, contender in competing.items():
                assert answer(contender()) == expected, f"{name} differs on {title}"
            timings[title] = interleaved(competing, runs)
            print_ratios(title, timings[title], OURS)
    return timings


def main() -> None:
    arguments = command_line("array_has on a Lance table", runs=41)
    arguments.add_argument("--rows", type=int, default=1_000_000)
    arguments.add_argument("--tables", type=Path, default=FOLDER, help="where tables are kept")
    given = arguments.parse_args()
    print_versions()
    timings = run(images(given.rows, given.tables), given.runs)
    write_report(given.json, timings)


if __name__ == "__main__":
    main()
