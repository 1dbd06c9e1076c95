"""What is wrong with a file that cannot be read: it is damaged, or it is not there."""

from __future__ import annotations

from .dataset_files import DatasetFiles
from .errors import CorruptIndexError, MissingIndexFileError


def unreadable(files: DatasetFiles, relative: str, check: str) -> CorruptIndexError:
    """The error for a file that failed a check: MissingIndexFileError where the file is gone."""
    try:
        gone = not files.contains(relative)
    except Exception:  # where a store cannot be asked, nothing is known to be gone
        gone = False
    path = files.path(relative)
    return MissingIndexFileError(path) if gone else CorruptIndexError(path, check)
