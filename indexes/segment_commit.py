"""Segments that are built and not committed yet, and their commit in one step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import lance
from lance.bitmap import Bitmap
from lance.dataset import Index, IndexFile

from .cancellation import uninterrupted
from .conflicts import is_conflict
from .dataset_files import DatasetFiles
from .errors import InvalidArgumentError, LanceIndexError
from .index_names import chosen_name, replaced
from .leftovers import is_marked, mark_waiting, remove, unmark
from .manifest import (
    IndexSegment,
    absolute,
    own_files,
    read_manifest,
    segments_of_all_versions,
)


@dataclass(frozen=True, slots=True)
class BuiltSegment:
    """A segment of an index whose files are written and which no version of the table lists yet.

    A value that can be pickled and sent to another process. `dataset_version` is the version it
    was built from; `files` are in the table's `_indices/<uuid>/`, with their sizes in bytes.
    `type_url` and `details` are the message that describes the index, `index_version` is that of
    its files.
    """

    uuid: str
    column_id: int
    type_url: str
    details: bytes
    index_version: int
    dataset_version: int
    fragment_ids: tuple[int, ...]
    files: tuple[tuple[str, int], ...]


def commit(
    dataset: lance.LanceDataset,
    name: str,
    segments: Sequence[BuiltSegment],
    replaced: Sequence[IndexSegment],
) -> None:
    """Commit segments in the place of others, rebased by Lance over other writers' versions.

    Segments of that name that are not replaced stay. `dataset` is at the new version afterwards.
    Raises `CommitConflictError` where something in between does not go with the index.
    """
    now = datetime.now(UTC)
    removed = [_listed(old) for old in replaced]
    added = [
        Index(
            uuid=segment.uuid,
            name=name,
            fields=[segment.column_id],
            dataset_version=segment.dataset_version,
            fragment_ids=Bitmap(segment.fragment_ids),
            index_version=segment.index_version,
            created_at=now,
            files=[IndexFile(path, size) for path, size in segment.files],
            index_details=(segment.type_url, segment.details),
        )
        for segment in segments
    ]
    operation = lance.LanceOperation.CreateIndex(added, removed)
    read_version = min(segment.dataset_version for segment in segments)
    # Else pylance might be interrupted and go on: it must be sure whether it was done.
    with uninterrupted():
        lance.LanceDataset.commit(dataset, operation, read_version=read_version)
    dataset.checkout_latest()
    files = own_files(dataset)
    for segment in segments:
        unmark(files, segment.uuid)


def commit_segments(
    dataset: lance.LanceDataset,
    segments: Sequence[BuiltSegment],
    name: str | None = None,
    replace: bool = False,
) -> None:
    """Commit segments built apart as one index; `dataset` is at the new version afterwards.

    They are of one kind, on the same column, and share no fragment. The files stay where the
    commit fails, so that it can be tried again.

    Raises `InvalidArgumentError` where the segments do not go together or the name is in use, and
    `LanceIndexError` where files of theirs are gone, or another writer has changed the table in a
    way that does not go with the index since the first of them was built (a compaction of their
    fragments, an overwrite, an index of the same name).
    """
    if not segments:
        raise InvalidArgumentError("segments", [], "one segment or more")
    first = segments[0]
    for segment in segments:
        if segment.column_id != first.column_id:
            raise InvalidArgumentError(
                "segments", segment.column_id, f"segments on the field {first.column_id}"
            )
        if segment.type_url != first.type_url:
            raise InvalidArgumentError(
                "segments", segment.type_url, f"segments of the type {first.type_url}"
            )
    ids = [fragment for segment in segments for fragment in segment.fragment_ids]
    if len(set(ids)) != len(ids):
        raise InvalidArgumentError("segments", sorted(ids), "segments that share no fragment")
    dataset.checkout_latest()
    manifest = read_manifest(dataset)
    column = next((field.name for field in manifest.fields if field.id == first.column_id), None)
    if column is None:
        raise InvalidArgumentError("segments", first.column_id, "segments on a column of the table")
    chosen = chosen_name(manifest, column, name, replace)
    files = DatasetFiles.at(dataset, absolute(manifest.root))
    for segment in segments:
        if not is_marked(files, segment.uuid):
            raise _gone(chosen, segment)
        # Anew, so that no upkeep finds it old; not as this process's, which may end before.
        mark_waiting(files, segment.uuid)
        if not all(files.contains(f"_indices/{segment.uuid}/{path}") for path, _ in segment.files):
            raise _gone(chosen, segment)
    try:
        commit(dataset, chosen, segments, replaced(manifest, chosen))
    except Exception as error:
        if not is_conflict(error):
            raise
        what = str(error).split(", /")[0]
        raise LanceIndexError(
            f"index {chosen!r} was not created: another writer was faster, build it again ({what})"
        ) from error


def _gone(index: str, segment: BuiltSegment) -> LanceIndexError:
    return LanceIndexError(
        f"index {index!r} was not created: segment {segment.uuid} is committed, or its files are "
        f"gone"
    )


def built_by_pylance(index: Index) -> BuiltSegment:
    """What pylance says of a segment that it has built and not committed.

    Raises `LanceIndexError` where it lacks a part.
    """
    if index.index_details is None or index.files is None:
        raise LanceIndexError(f"pylance does not tell the details and files of {index.uuid}")
    (column_id,) = index.fields
    type_url, details = index.index_details
    return BuiltSegment(
        uuid=index.uuid,
        column_id=column_id,
        type_url=type_url,
        details=details,
        index_version=index.index_version,
        dataset_version=index.dataset_version,
        fragment_ids=tuple(index.fragment_ids),
        files=tuple((file.path, file.size_bytes) for file in index.files),
    )


def _listed(segment: IndexSegment) -> Index:
    return Index(
        uuid=segment.uuid,
        name=segment.name,
        fields=list(segment.field_ids),
        dataset_version=segment.dataset_version,
        fragment_ids=Bitmap(segment.fragment_ids),
        index_version=segment.index_version,
        base_id=segment.base_id,
    )


@contextmanager
def removed_on_error(dataset: lance.LanceDataset, *uuids: str) -> Iterator[list[str]]:
    """Remove the files of segments where anything fails; more of them can be added to the list.

    Those that any version names are kept: a commit may be done and what follows it fail, and
    another writer may have replaced the index already.
    """
    every = list(uuids)
    try:
        yield every
    except BaseException:
        # What fails here hides nothing: an upkeep removes the files later.
        with suppress(Exception):
            _remove(dataset, every)
        raise


def _remove(dataset: lance.LanceDataset, uuids: Sequence[str]) -> None:
    named = segments_of_all_versions(dataset)
    files = own_files(dataset)
    for uuid in uuids:
        if uuid in named:
            unmark(files, uuid)
        else:
            remove(files, uuid)
