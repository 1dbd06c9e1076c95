"""What the commands have in common: wrong usage, help texts, storage options."""

from __future__ import annotations

import argparse
from typing import Any


class UsageError(Exception):
    """Arguments that do not go together; ends the program as argparse's own errors do."""


def add_command(commands: Any, name: str, summary: str, examples: str) -> argparse.ArgumentParser:
    """A command whose help text ends with examples."""
    parser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(parser=parser)
    return parser


def add_storage_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--storage-option",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        type=pair,
        help="an option of Lance's for the object store, such as aws_region=eu-central-1; "
        "may be given again",
    )


def storage_options(options: argparse.Namespace) -> dict[str, str] | None:
    return dict(options.storage_option) or None


def pair(text: str) -> tuple[str, str]:
    """The type of an argument KEY=VALUE."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"got {text!r}, takes KEY=VALUE")
    return key, value
