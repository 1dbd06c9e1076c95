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

import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import lance

from .cancellation import uninterrupted
from .dataset_files import DatasetFiles
from .manifest import own_files, segments_of_all_versions
from .owner import has_ended, is_running, this_process

MARK: Final = "unfinished.datafusion-lance"
"""The file's name; in it is the time of its making, in seconds since 1970, and its owner."""

KEPT_SECONDS: Final = 7 * 24 * 3600
"""No build takes so long; Lance's own cleanup keeps files as long that no version names."""


_BEGUN: Final = f"{MARK} "
"""How the folder's name begins, on local disks, until the mark is in it, and while it is removed;
the segment and the owner follow. So there are no files without one or the other."""


def mark(files: DatasetFiles, uuid: str) -> None:
    """Says that the segment is being built, by this process."""
    begun, folder = _local_folders(files, uuid)
    if begun is None or folder is None or folder.exists():
        _write(files, uuid, this_process())
        return
    with uninterrupted():
        begun.mkdir(parents=True)
        (begun / MARK).write_bytes(_content(this_process()))
        begun.rename(folder)


def mark_waiting(files: DatasetFiles, uuid: str) -> None:
    """Says that it is built, and that any process may commit it."""
    _write(files, uuid, "")


def is_marked(files: DatasetFiles, uuid: str) -> bool:
    """Whether it is built and not committed yet, as far as is known."""
    return files.contains(f"_indices/{uuid}/{MARK}")


def unmark(files: DatasetFiles, uuid: str) -> None:
    """Says that it is committed."""
    files.delete(f"_indices/{uuid}/{MARK}")


def remove(files: DatasetFiles, uuid: str) -> None:
    """Removes all files of a segment, with its mark last."""
    begun, folder = _local_folders(files, uuid)
    if begun is not None and folder is not None:
        with uninterrupted(), suppress(FileNotFoundError):
            folder.rename(begun)
            shutil.rmtree(begun, ignore_errors=True)
        return
    for relative in files.list(f"_indices/{uuid}"):
        if not relative.endswith(f"/{MARK}"):
            files.delete(relative)
    unmark(files, uuid)


def _local_folders(files: DatasetFiles, uuid: str) -> tuple[Path | None, Path | None]:
    """Where a local segment is while it has no mark, and then."""
    begun = f"{_BEGUN}{uuid} {this_process()}".rstrip()
    return files.local_path(f"_indices/{begun}"), files.local_path(f"_indices/{uuid}")


def _write(files: DatasetFiles, uuid: str, owner: str) -> None:
    with uninterrupted():
        files.write(f"_indices/{uuid}/{MARK}", _content(owner))


def _content(owner: str) -> bytes:
    return f"{int(time.time())} {owner}".encode()


def remove_leftovers(
    dataset: lance.LanceDataset, kept_seconds: int = KEPT_SECONDS
) -> tuple[str, ...]:
    """Removes the files of builds that were killed; returns the uuids of their segments.

    Those alone that this package has begun and that no version of the table names: at once where
    the process has ended that this machine ran, else after `kept_seconds`, but never while this
    machine runs the process.
    """
    files = own_files(dataset)
    _remove_begun(files, kept_seconds)
    left = [
        path
        for path in files.list("_indices")
        if path.endswith(f"/{MARK}") and _is_left(files, path, kept_seconds)
    ]
    if not left:
        return ()
    # Read after the processes were seen to have ended: it has all that they have committed.
    named = segments_of_all_versions(dataset)
    removed: list[str] = []
    for path in left:
        uuid = path.split("/")[-2]
        if uuid in named:
            unmark(files, uuid)
        # Another process may be about to commit what has waited for so long.
        elif _is_left(files, path, kept_seconds):
            remove(files, uuid)
            removed.append(uuid)
    return tuple(removed)


def _is_left(files: DatasetFiles, path: str, kept_seconds: int) -> bool:
    # Another upkeep may be faster, and what is no time is nobody's mark.
    with suppress(OSError, ValueError):
        made, _, owner = files.read(path).decode().partition(" ")
        if time.time() - int(made) > kept_seconds:
            # Clocks are set, and a process may have been stopped for long.
            return not is_running(owner)
        # To another machine's storage, what a process has sent may be under way after its end.
        return files.local_path(path) is not None and has_ended(owner)
    return False


def _remove_begun(files: DatasetFiles, kept_seconds: int) -> None:
    """Removes local folders that a process has begun to make or to remove, and has ended."""
    indexes = files.local_path("_indices")
    if indexes is None:
        return
    for folder in indexes.glob(f"{_BEGUN}*"):
        with suppress(FileNotFoundError):
            owner = folder.name.removeprefix(_BEGUN).partition(" ")[2]
            if has_ended(owner) or time.time() - folder.stat().st_mtime > kept_seconds:
                shutil.rmtree(folder, ignore_errors=True)
