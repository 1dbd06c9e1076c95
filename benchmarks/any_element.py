"""`any_element` without an index: its evaluation beside DataFusion's own `array_any_match`.

    python benchmarks/any_element.py [--rows N] [--runs N] [--json FILE]

Both scan the same rows in memory, about four structs a row. Without null elements both give the
same answer, which is checked before anything is timed; `any_element` masks each field that it
reads, since it is also right where there are some. What a statement costs before it runs is timed
on its own.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from datafusion import DataFrame, SessionConfig, SessionContext

from datafusion_lance.engine import LanceSessionContext
from measure import Timing, command_line, interleaved, print_ratios, print_versions, write_report
from tables import detections

OURS = "any_element"
THEIRS = "array_any_match"

PREDICATES = {
    "a number": ("confidence > 0.9999", "e['confidence'] > 0.9999"),
    "a text and a number": (
        "label = 'label_0007' AND confidence > 0.99",
        "e['label'] = 'label_0007' AND e['confidence'] > 0.99",
    ),
    "a list of floats": ("confidence IN (0, 0.5)", "e['confidence'] IN (0, 0.5)"),
    "three numbers": (
        "x < 3 AND y < 3 OR confidence IS NULL",
        "e['x'] < 3 AND e['y'] < 3 OR e['confidence'] IS NULL",
    ),
}


def in_memory(rows: int) -> pa.Table:
    """Rows of an id and a list of structs."""
    lists = detections(rows, np.random.default_rng(20))
    return pa.table({"id": pa.array(np.arange(rows)), "detections": lists})


def sessions(rows: pa.Table) -> tuple[LanceSessionContext, SessionContext]:
    """One that has `any_element` and one whose dialect has lambdas, over the same rows."""
    dialect = SessionConfig().set("datafusion.sql_parser.dialect", "duckdb")
    ours, theirs = LanceSessionContext(), SessionContext(dialect)
    for session in (ours, theirs):
        session.register_record_batches("images", [rows.to_batches(max_chunksize=65_536)])
    return ours, theirs


def run(rows: pa.Table, runs: int) -> dict[str, dict[str, Timing]]:
    """Timings by case and contender."""
    structs = len(rows["detections"].combine_chunks().values)
    print(f"{rows.num_rows:,} rows with {structs:,} structs in memory")
    ours, theirs = sessions(rows)
    timings: dict[str, dict[str, Timing]] = {}
    for name, (predicate, body) in PREDICATES.items():
        text = predicate.replace("'", "''")
        statements: dict[str, Callable[[], DataFrame]] = {
            OURS: lambda text=text: ours.sql(
                f"SELECT id FROM images WHERE any_element(detections, '{text}')"
            ),
            THEIRS: lambda body=body: theirs.sql(
                f"SELECT id FROM images WHERE array_any_match(detections, e -> {body})"
            ),
        }
        found = {by: sorted(plan().to_pydict()["id"]) for by, plan in statements.items()}
        assert found[OURS] == found[THEIRS], name
        title = f"id where {predicate}: {len(found[OURS]):,} rows ({name})"
        timings[title] = interleaved(
            {by: lambda plan=plan: plan().to_arrow_table() for by, plan in statements.items()}, runs
        )
        print_ratios(title, timings[title], OURS)
        if len(timings) == 1:
            title = "planning the statement alone"
            timings[title] = interleaved(statements, runs * 10)
            print_ratios(title, timings[title], OURS)
    return timings


def main() -> None:
    arguments = command_line("any_element in memory", runs=41)
    arguments.add_argument("--rows", type=int, default=1_000_000)
    given = arguments.parse_args()
    print_versions()
    timings = run(in_memory(given.rows), given.runs)
    write_report(given.json, timings)


if __name__ == "__main__":
    main()
