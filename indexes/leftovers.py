"""Segments whose files are written, or half written, and that nobody will commit.

A build puts a mark beside its files before it writes the first of them, and takes it away
once the segment is committed. A mark that stays tells of a build that was killed, or that is
still at work. In it is when it was made, and by which process.

A process that has ended commits nothing any more, so what it left is removed by the next upkeep
that can see this: on the same machine, and since it was last started. No clock would do for
the others, as a lease that a build renews: a machine may sleep between the last look at its lease
and its commit, and Lance has no commit that asks for a file. They are removed after a time in
which Lance's own cleanup takes files for unused, too.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Final

import lance

from .dataset_files import DatasetFiles
from .manifest import absolute, segments_of_all_versions
from .owner import has_ended, this_process

MARK: Final = "unfinished.datafusion-lance"
"""The file's name; in it is the time of its making, in seconds since 1970, and its owner."""

KEPT_SECONDS: Final = 7 * 24 * 3600
"""No build takes so long; Lance's own cleanup keeps files as long that no version names."""


def mark(files: DatasetFiles, uuid: str) -> None:
    """Says that the segment is being built, by this process."""
    _write(files, uuid, this_process())


def mark_waiting(files: DatasetFiles, uuid: str) -> None:
    """Says that it is built, and that any process may commit it."""
    _write(files, uuid, "")


def is_marked(files: DatasetFiles, uuid: str) -> bool:
    """Whether it is built and not committed yet, as far as is known."""
    return files.contains(f"_indices/{uuid}/{MARK}")


def unmark(files: DatasetFiles, uuid: str) -> None:
    """Says that it is committed."""
    files.delete(f"_indices/{uuid}/{MARK}")


def _write(files: DatasetFiles, uuid: str, owner: str) -> None:
    files.write(f"_indices/{uuid}/{MARK}", f"{int(time.time())} {owner}".encode())


def remove_leftovers(
    dataset: lance.LanceDataset, kept_seconds: int = KEPT_SECONDS
) -> tuple[str, ...]:
    """Removes the files of builds that were killed; returns the uuids of their segments.

    Those alone that this package has begun and that no version of the table names: at once where
    the process has ended that this machine ran, else after `kept_seconds`.
    """
    files = DatasetFiles.at(dataset, absolute(dataset.uri))
    left = [
        path.split("/")[-2]
        for path in files.list("_indices")
        if path.endswith(f"/{MARK}") and _is_left(files, path, kept_seconds)
    ]
    if not left:
        return ()
    # Read after the processes were seen to have ended: it has all that they have committed.
    named = segments_of_all_versions(dataset)
    for uuid in left:
        if uuid in named:
            unmark(files, uuid)
        else:
            files.delete_folder(f"_indices/{uuid}")
    return tuple(uuid for uuid in left if uuid not in named)


def _is_left(files: DatasetFiles, path: str, kept_seconds: int) -> bool:
    # Another upkeep may be faster, and what is no time is nobody's mark.
    with suppress(OSError, ValueError):
        made, _, owner = files.read(path).decode().partition(" ")
        if time.time() - int(made) > kept_seconds:
            return True
        # To another machine's storage, what a process has sent may be under way after its end.
        return files.local_path(path) is not None and has_ended(owner)
    return False
