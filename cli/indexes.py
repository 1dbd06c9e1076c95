"""`indexes`, `create-index`, `drop-index`, `optimize` and `check`."""

from __future__ import annotations

import argparse
import json
import sys
from itertools import chain
from typing import Any

from ..engine import LanceSessionContext
from ..engine.index_check import CHECKED
from .output import FORMATS, opened, write
from .usage import UsageError, add_command, add_storage_options, pair, storage_options

_TABLE = "t"
_KINDS = {"list-element": "LIST_ELEMENT", "label-list": "LABEL_LIST", "minhash-lsh": "MINHASHLSH"}
_PARAMETERS = {
    "list-element": ("keys", "sort_memory"),
    "label-list": (),
    "minhash-lsh": ("num_hashes", "num_bands", "shingle_size", "tokenizer"),
}

_INDEXES_EXAMPLES = """\
  datafusion-lance indexes images.lance
  datafusion-lance indexes --format json images.lance
"""
_CREATE_EXAMPLES = """\
  datafusion-lance create-index images.lance tags
  datafusion-lance create-index images.lance detections -k label -k confidence
  datafusion-lance create-index images.lance tags --name by_tag --replace
  datafusion-lance create-index docs.lance text --kind minhash-lsh --num-bands 32 \\
      --tokenizer base_tokenizer=icu
"""
_OPTIMIZE_EXAMPLES = """\
  datafusion-lance optimize images.lance
  datafusion-lance optimize images.lance detections_idx
"""
_CHECK_EXAMPLES = """\
  datafusion-lance check images.lance
  datafusion-lance check images.lance detections_idx || echo "build it again"
"""
_DROP_EXAMPLES = """\
  datafusion-lance drop-index images.lance detections_idx
"""


def add_commands(commands: Any) -> None:
    listing = add_command(commands, "indexes", "list the indexes of a table", _INDEXES_EXAMPLES)
    _add_path(listing)
    listing.add_argument("--format", choices=FORMATS, default="table", help="of the list (table)")
    listing.add_argument("-o", "--output", metavar="FILE", help="write the list there")
    listing.set_defaults(run=run_indexes)

    create = add_command(
        commands, "create-index", "build an index on a column of a table", _CREATE_EXAMPLES
    )
    _add_path(create)
    create.add_argument("column", help="its name as it is in the schema")
    create.add_argument(
        "--kind",
        choices=_KINDS,
        help="of the index; without it list-element where there are keys, else label-list",
    )
    create.add_argument(
        "-k",
        "--key",
        dest="keys",
        metavar="KEY",
        action="append",
        help="a field of the structs in the list, for a list element index; "
        "given again in the order of the keys",
    )
    create.add_argument("--name", help="of the index (the column's with _idx)")
    create.add_argument("--replace", action="store_true", help="the index may exist")
    create.add_argument(
        "--sort-memory",
        metavar="MIB",
        type=int,
        help="of entries sorted at once, for a list element index (256)",
    )
    for name in ("num-hashes", "num-bands", "shingle-size"):
        create.add_argument(f"--{name}", metavar="N", type=int, help="of a MinHash LSH index")
    create.add_argument(
        "--tokenizer",
        metavar="KEY=VALUE",
        action="append",
        type=pair,
        help="a setting of the tokenizer of a MinHash LSH index; may be given again",
    )
    create.set_defaults(run=run_create)

    drop = add_command(commands, "drop-index", "take an index off a table", _DROP_EXAMPLES)
    _add_path(drop)
    drop.add_argument("name", help="of the index")
    drop.add_argument("--if-exists", action="store_true", help="it may be missing")
    drop.set_defaults(run=run_drop)

    optimize = add_command(
        commands, "optimize", "bring indexes up to date with their table", _OPTIMIZE_EXAMPLES
    )
    _add_path(optimize)
    optimize.add_argument("name", nargs="?", help="of the index (all of the table's)")
    optimize.set_defaults(run=run_optimize)

    check = add_command(
        commands, "check", "prove indexes against the rows of their table", _CHECK_EXAMPLES
    )
    _add_path(check)
    check.add_argument(
        "name",
        nargs="?",
        help="of the index (all list element, label list and MinHash LSH indexes)",
    )
    check.set_defaults(run=run_check)


def _add_path(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", help="the table's path or URL")
    add_storage_options(parser)


def _session(options: argparse.Namespace) -> LanceSessionContext:
    session = LanceSessionContext()
    session.register_lance(_TABLE, options.path, storage_options=storage_options(options))
    return session


def run_indexes(options: argparse.Namespace) -> None:
    rows = _session(options).lance_indexes(_TABLE).drop("table")
    with opened(options.output) as sink:
        write(options.format, iter(rows.to_arrow_table().to_batches()), rows.schema(), sink, None)


def run_create(options: argparse.Namespace) -> None:
    kind = options.kind or ("list-element" if options.keys else "label-list")
    parameters: dict[str, Any] = {
        name: getattr(options, name)
        for name in chain.from_iterable(_PARAMETERS.values())
        if getattr(options, name) is not None
    }
    for name in parameters:
        if name not in _PARAMETERS[kind]:
            option = "key" if name == "keys" else name.replace("_", "-")
            raise UsageError(f"--{option} is of no {kind} index")
    if "sort_memory" in parameters:
        parameters["sort_memory"] <<= 20
    if "tokenizer" in parameters:
        settings = parameters["tokenizer"]
        parameters["tokenizer"] = {setting: _value(text) for setting, text in settings}
    _session(options).create_lance_index(
        _TABLE,
        options.column,
        _KINDS[kind],
        name=options.name,
        replace=options.replace,
        **parameters,
    )
    if sys.stderr.isatty():
        print(f"created {options.name or options.column + '_idx'}", file=sys.stderr)


def _value(text: str) -> Any:
    """A setting's value: a number, true or false, or the text."""
    try:
        return json.loads(text.lower())
    except ValueError:
        return text


def run_drop(options: argparse.Namespace) -> None:
    _session(options).drop_lance_index(_TABLE, options.name, options.if_exists)


def run_optimize(options: argparse.Namespace) -> None:
    _session(options).optimize_lance_index(_TABLE, options.name)


def run_check(options: argparse.Namespace) -> int:
    """1 where an index is not sound."""
    session = _session(options)
    listed = session.lance_indexes(_TABLE).to_pylist()
    names = [row["name"] for row in listed if row["kind"] in CHECKED]
    checks = [
        session.check_lance_index(_TABLE, name)
        for name in (names if options.name is None else [options.name])
    ]
    for check in checks:
        print(check)
    return int(not all(check.sound for check in checks))
