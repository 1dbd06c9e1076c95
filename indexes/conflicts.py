"""Commits that lose a race against another writer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import lance
from lance.commit import CommitConflictError

from .errors import LanceIndexError

FASTER: Final = "another writer was faster, try again"
"""What there is to say of a race that is lost."""

_TRIES: Final = 3

Value = TypeVar("Value")


def is_conflict(error: Exception) -> bool:
    """Whether another writer was faster: pylance has an exception for it, but not everywhere."""
    return isinstance(error, CommitConflictError) or "commit conflict" in str(error).lower()


def with_retries(dataset: lance.LanceDataset, attempt: Callable[[], Value], lost: str) -> Value:
    """The value of `attempt`, which is made again from the newest version after a lost race.

    Raises `LanceIndexError` that says `lost` where other writers were faster every time, and
    what else `attempt` raises.
    """
    for number in range(_TRIES):
        try:
            return attempt()
        except Exception as error:
            if not is_conflict(error):
                raise
            if number == _TRIES - 1:
                raise LanceIndexError(f"{lost} ({str(error).split(', /')[0]})") from error
            dataset.checkout_latest()
    raise AssertionError
