"""The exceptions of this package: one hierarchy, rooted in `LanceIndexError`."""

from __future__ import annotations


class LanceIndexError(Exception):
    """Base class of every error that this package raises itself."""


class CorruptIndexError(LanceIndexError):
    """A file of an index fails a check of its specification.

    `file` is the file's path, `check` the failed check, in words.
    """

    def __init__(self, file: str, check: str) -> None:
        super().__init__(f"corrupt index file {file}: {check}")
        self.file = file
        self.check = check


class MissingIndexFileError(CorruptIndexError):
    """A file that the table names is not there."""

    def __init__(self, file: str) -> None:
        super().__init__(file, "it is not there")
        self.args = (
            f"missing index file {file}: the version of the table that is registered names it. "
            "refresh moves the table to its newest version; an index without its files there "
            "has to be built again",
        )


class UnusableIndexError(LanceIndexError):
    """A sound index that cannot answer here; `reason` says why.

    Never reaches a query that has another way to be answered: the rewriter turns it
    into a note and the query runs without the index.
    """

    def __init__(self, index: str, reason: str) -> None:
        super().__init__(f"index {index!r} cannot be used: {reason}")
        self.index = index
        self.reason = reason


class UnsupportedVersionError(UnusableIndexError):
    """An index written in a format version that this package does not read."""


class InvalidArgumentError(LanceIndexError, ValueError):
    """An argument out of its range: names it, what it got and what it takes."""

    def __init__(self, argument: str, got: object, takes: str) -> None:
        super().__init__(f"{argument}: got {_shown(got)}, takes {takes}")
        self.argument = argument
        self.got = got
        self.takes = takes


class StatementError(LanceIndexError, ValueError):
    """A statement on indexes that cannot run; says so as DataFusion says it of its own."""


def _shown(got: object) -> str:
    """The value; of a DataFrame, whose `repr` runs its query, only the type."""
    name = type(got).__name__
    return f"a {name}" if name.endswith("DataFrame") else repr(got)
