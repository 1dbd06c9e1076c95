"""The program: its arguments, its exit code and what it says of an error."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from . import indexes, inspection, query
from .usage import UsageError

_EPILOG = """\
exit codes: 0 it went well, 1 an error, 2 wrong usage

examples:
  datafusion-lance sql -t images.lance "SELECT count(*) FROM images"
  datafusion-lance create-index images.lance detections -k label -k confidence
  datafusion-lance indexes images.lance
"""


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="datafusion-lance",
        description="Query Lance tables through their indexes, and look after the indexes.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {_version()}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for module in (query, indexes, inspection):
        module.add_commands(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command in `arguments`, by default the process's own; returns the exit code.

    Errors are one message on stderr. Wrong usage, help and version end the process.
    """
    options = make_parser().parse_args(arguments)
    try:
        failed = options.run(options)
        sys.stdout.flush()
        return int(failed or 0)
    except UsageError as error:
        return options.parser.error(str(error))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read the output has had enough. Python would flush stdout once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except SystemExit:
        raise
    except BaseException as error:  # a Rust panic is no Exception
        print(f"error: {error}", file=sys.stderr)
        return 1


def _version() -> str:
    try:
        return version("datafusion-lance")
    except PackageNotFoundError:
        return "of a source tree"
