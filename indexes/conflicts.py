"""Telling a lost race from other failures of a commit."""

from __future__ import annotations

from lance.commit import CommitConflictError


def is_conflict(error: Exception) -> bool:
    """Whether another writer was faster: pylance has an exception for it, but not everywhere."""
    return isinstance(error, CommitConflictError) or "commit conflict" in str(error).lower()
