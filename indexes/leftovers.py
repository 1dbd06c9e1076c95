"""Segments whose files are written, or half written, and that nobody will commit.

A build puts a mark beside its files before it writes the first of them, and takes it away
once the segment is committed. A mark that stays tells of a build that was killed, or that is
still at work.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Final

import lance

from .dataset_files import DatasetFiles
from .manifest import absolute, segments_of_all_versions

MARK: Final = "unfinished.datafusion-lance"
"""The file's name; in it is the time of its making, in seconds since 1970."""

KEPT_SECONDS: Final = 7 * 24 * 3600
"""No build takes so long; Lance's own cleanup keeps files as long that no version names."""


def mark(files: DatasetFiles, uuid: str) -> None:
    """Says that the segment is being built."""
    files.write(f"_indices/{uuid}/{MARK}", str(int(time.time())).encode())


def unmark(files: DatasetFiles, uuid: str) -> None:
    """Says that it is committed."""
    files.delete(f"_indices/{uuid}/{MARK}")


def remove_leftovers(
    dataset: lance.LanceDataset, kept_seconds: int = KEPT_SECONDS
) -> tuple[str, ...]:
    """Removes the files of builds that were killed; returns the uuids of their segments.

    Those alone that this package has begun longer than `kept_seconds` ago and that no version
    of the table names.
    """
    files = DatasetFiles.at(dataset, absolute(dataset.uri))
    old: list[str] = []
    for path in files.list("_indices"):
        if path.endswith(f"/{MARK}"):
            # Another upkeep may be faster, and what is no time is nobody's mark.
            with suppress(OSError, ValueError):
                if time.time() - int(files.read(path)) > kept_seconds:
                    old.append(path.split("/")[-2])
    if not old:
        return ()
    named = segments_of_all_versions(dataset)
    for uuid in old:
        if uuid in named:
            unmark(files, uuid)
        else:
            files.delete_folder(f"_indices/{uuid}")
    return tuple(uuid for uuid in old if uuid not in named)
