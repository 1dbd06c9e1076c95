"""`inspect`."""

from __future__ import annotations

import argparse
from typing import Any

from ..indexes.inspection import inspect_file
from .output import FORMATS, opened, write
from .usage import add_command, add_storage_options, storage_options

_EXAMPLES = """\
  datafusion-lance inspect images.lance/_indices/*/page_data.lance
  datafusion-lance inspect images.lance/_indices/*/page_lookup.lance --start 100 --rows 5
  datafusion-lance inspect images.lance/_indices/*/bitmap_page_lookup.lance --format json
"""


def add_commands(commands: Any) -> None:
    inspect = add_command(commands, "inspect", "show an index file in readable form", _EXAMPLES)
    inspect.add_argument("file", nargs="+", help="a file in a folder of a table's _indices")
    inspect.add_argument("--start", metavar="N", type=int, default=0, help="the first row (0)")
    inspect.add_argument("--rows", metavar="N", type=int, default=20, help="how many rows (20)")
    inspect.add_argument("--format", choices=FORMATS, default="table", help="of the rows (table)")
    inspect.add_argument("-o", "--output", metavar="FILE", help="write the rows there")
    add_storage_options(inspect)
    inspect.set_defaults(run=run_inspect)


def run_inspect(options: argparse.Namespace) -> None:
    for path in options.file:
        found = inspect_file(path, options.start, options.rows, storage_options(options))
        with opened(options.output) as sink:
            if options.format == "table":
                facts = [("path", path), *found.facts]
                sink.write("".join(f"{name}: {value}\n" for name, value in facts).encode())
            batches = iter(found.rows.to_batches())
            write(options.format, batches, found.rows.schema, sink, None)
