"""The tables that a command reads, and the session that reads them."""

from __future__ import annotations

import argparse
import re
from pathlib import PurePosixPath

from ..engine import LanceSessionContext
from ..engine.index_listing import readable
from .usage import UsageError, add_storage_options, storage_options

# A name in SQL, so that a path may have an equals sign of its own.
_NAMED = re.compile(r"""((?:\w+|"(?:[^"]|"")+")(?:\.(?:\w+|"(?:[^"]|"")+")){0,2})=(.+)""")


def add_table_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-t",
        "--table",
        metavar="[NAME=]PATH",
        action="append",
        default=[],
        help="a Lance table, by its path or URL; without a name it is called after its folder. "
        "May be given again",
    )
    parser.add_argument(
        "--no-indexes", action="store_true", help="read the tables without any index"
    )
    add_storage_options(parser)


def session_of(options: argparse.Namespace) -> LanceSessionContext:
    """A session with the tables that the options name."""
    session = LanceSessionContext(use_indexes=not options.no_indexes)
    for given in options.table:
        named = _NAMED.fullmatch(given)
        name, path = named.groups() if named else (_called(given), given)
        session.register_lance(name, path, storage_options=storage_options(options))
    return session


def _called(path: str) -> str:
    name = PurePosixPath(path.rstrip("/")).stem
    if not name:
        raise UsageError(f"--table {path}: give the table a name, NAME=PATH")
    return readable((name,))
