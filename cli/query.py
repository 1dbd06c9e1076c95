"""`sql` and `explain`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from datafusion import DataFrame

from ..engine import LanceSessionContext
from .output import FORMATS, opened, write
from .prompt import Prompt
from .statements import statements
from .tables import add_table_options, session_of
from .usage import UsageError, add_command

_TERMINAL_ROWS = 40

_SQL_EXAMPLES = """\
  datafusion-lance sql -t images.lance "SELECT id FROM images WHERE array_has(tags, 'night')"
  datafusion-lance sql -t photos=s3://bucket/images.lance --format csv "SELECT * FROM photos"
  datafusion-lance sql -t images.lance --format parquet -o cars.parquet \\
      "SELECT id FROM images WHERE any_element(detections, 'label = ''car''')"
  datafusion-lance sql -t images.lance < statements.sql
  datafusion-lance sql -t images.lance          (a prompt)
"""

_EXPLAIN_EXAMPLES = """\
  datafusion-lance explain -t images.lance "SELECT id FROM images WHERE array_has(tags, 'night')"
  datafusion-lance explain -t images.lance --analyze "SELECT count(*) FROM images"
"""


def add_commands(commands: Any) -> None:
    sql = add_command(commands, "sql", "run SQL, or open a prompt for it", _SQL_EXAMPLES)
    sql.add_argument(
        "statement",
        nargs="?",
        help="statements, with ; between them; without any they are read from standard input, "
        "at a terminal with a prompt",
    )
    add_table_options(sql)
    sql.add_argument("--format", choices=FORMATS, default="table", help="of the rows (table)")
    sql.add_argument("-o", "--output", metavar="FILE", help="write the rows there")
    sql.add_argument(
        "--rows",
        metavar="N",
        type=int,
        help=f"print at most N rows of a table ({_TERMINAL_ROWS} at a terminal, else all)",
    )
    sql.set_defaults(run=run_sql)

    explain = add_command(
        commands, "explain", "show how a query is run, and what the indexes do", _EXPLAIN_EXAMPLES
    )
    explain.add_argument("statement", help="a query")
    add_table_options(explain)
    explain.add_argument("--analyze", action="store_true", help="run it and show what it did")
    explain.add_argument(
        "--format", choices=("indent", "tree", "pgjson", "graphviz"), help="of the plan (indent)"
    )
    explain.set_defaults(run=run_explain)


def run_sql(options: argparse.Namespace) -> None:
    if options.rows is not None and options.rows < 0:
        raise UsageError("--rows takes a number of rows, 0 or more")
    session = session_of(options)
    if options.statement is None and sys.stdin.isatty():
        Prompt(lambda text: _run(session, text, options)).run()
        return
    text = sys.stdin.read() if options.statement is None else options.statement
    every = statements(text)
    if options.output is not None and len(every) != 1:
        raise UsageError(f"--output takes the rows of one statement; there are {len(every)}")
    for statement in every:
        _run(session, statement, options)


def run_explain(options: argparse.Namespace) -> None:
    session = session_of(options)
    words = ["EXPLAIN"]
    if options.analyze:
        words.append("ANALYZE")
    if options.format:
        words.append(f"FORMAT {options.format}")
    for row in session.sql(" ".join([*words, options.statement])).to_pylist():
        print(f"{row['plan_type']}:\n{row['plan'].rstrip()}")


def _run(session: LanceSessionContext, statement: str, options: argparse.Namespace) -> None:
    frame = session.sql(statement)
    schema = frame.schema()
    if not schema.names:
        # DDL, which has run.
        return
    rows = options.rows
    if rows is None and options.output is None and sys.stdout.isatty():
        rows = _TERMINAL_ROWS
    with opened(options.output) as sink:
        write(options.format, _batches(frame, schema), schema, sink, rows)


def _batches(frame: DataFrame, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in frame.execute_stream():
        columns = batch.to_pyarrow().columns
        yield pa.record_batch(columns, schema=schema)
