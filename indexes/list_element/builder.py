"""Builds a list element index: encodes and sorts a column's elements, writes, commits.

Files are written first and the index is committed last, in one step: a build that ends
anywhere before leaves the table as it was.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock
from typing import Final
from uuid import uuid4

import lance
import pyarrow as pa
from lance.bitmap import Bitmap
from lance.commit import CommitConflictError
from lance.dataset import Index, IndexFile
from tqdm import tqdm

from ..dataset_files import DatasetFiles
from ..errors import InvalidArgumentError, LanceIndexError
from ..leftovers import mark, unmark
from ..manifest import Field, IndexSegment, Manifest, absolute, read_manifest
from .btree_files import PAGE_DATA_SCHEMA
from .btree_writer import write_btree
from .coverage import record
from .details import (
    NEWEST_TARGET_VERSION,
    NEWEST_VERSION,
    TYPE_URL,
    Key,
    ListElementIndexDetails,
    element_struct,
)
from .entries import entries
from .external_sort import externally_sorted
from .key_encoding import LOGICAL_TYPES, key_codec

SORT_MEMORY: Final = 256 << 20
"""Bytes that the sort may hold, unless told otherwise."""

_LEAST_SORT_MEMORY: Final = 32 << 20
_SORTERS: Final = 2
_TRIES: Final = 3
_BATCH_ROWS: Final = 16_384
_BATCH_BYTES: Final = 16 << 20
_READ_AHEAD_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class BuiltSegment:
    """A segment whose files are written and which no version of the table lists yet.

    A value that can be sent to another process. `dataset_version` is the version it was
    built from; `files` are in the table's `_indices/<uuid>/`, with their sizes in bytes.
    """

    uuid: str
    column_id: int
    details: ListElementIndexDetails
    dataset_version: int
    fragment_ids: tuple[int, ...]
    files: tuple[tuple[str, int], ...]


def create_list_element(
    dataset: lance.LanceDataset,
    column: str,
    keys: Sequence[str],
    name: str | None = None,
    replace: bool = False,
    *,
    fragment_ids: Collection[int] | None = None,
    sort_memory: int = SORT_MEMORY,
    progress: bool = True,
) -> None:
    """Index `keys`, fields of the structs in a list column, in the order given.

    `dataset` is at the new version afterwards. `name` is `<column>_idx` unless given; with
    `replace` an index of that name is replaced. `fragment_ids` restricts the index to some
    fragments. `sort_memory` is how many bytes of entries are sorted at once, which takes
    about as much again; what is beyond goes through temporary files. `progress` shows a bar
    on a terminal.

    Where another writer compacts the table or creates an index of the same name meanwhile,
    the build begins again from the new version, up to three times.

    Raises `InvalidArgumentError` for arguments that do not fit the table, a name in use
    among them, and `LanceIndexError` where other writers were faster every time.
    """
    for attempt in range(_TRIES):
        manifest = read_manifest(dataset)
        chosen = _chosen_name(manifest, column, name, replace)
        segment = build_segment(
            dataset,
            column,
            keys,
            fragment_ids=fragment_ids,
            sort_memory=sort_memory,
            progress=progress,
        )
        try:
            with removed_on_error(dataset, segment.uuid):
                commit(dataset, chosen, (segment,), _replaced(manifest, chosen))
        except CommitConflictError as error:
            if attempt == _TRIES - 1:
                raise _lost(chosen, error) from error
            dataset.checkout_latest()
        else:
            return


def build_segment(
    dataset: lance.LanceDataset,
    column: str,
    keys: Sequence[str],
    *,
    fragment_ids: Collection[int] | None = None,
    sort_memory: int = SORT_MEMORY,
    progress: bool = True,
) -> BuiltSegment:
    """Write the files of one segment over some fragments, or all, without committing it.

    Segments can be built apart, by other processes too, and committed together with
    `commit_segments`. Raises `InvalidArgumentError` as `create_list_element` does; then, as
    after any failure, the files are removed again.
    """
    manifest = read_manifest(dataset)
    column_id, resolved = _resolve(manifest, column, keys)
    fragments = _fragments(dataset, fragment_ids)
    if sort_memory < _LEAST_SORT_MEMORY:
        raise InvalidArgumentError(
            "sort_memory", sort_memory, f"{_LEAST_SORT_MEMORY} bytes or more"
        )
    ids = tuple(fragment.fragment_id for fragment in fragments)
    key_ids = tuple(key.field_id for key in resolved)
    details = ListElementIndexDetails(
        key_field_ids=key_ids,
        keys=tuple(key.name for key in resolved),
        key_types=tuple(key.codec.logical_type for key in resolved),
        target_index_version=NEWEST_TARGET_VERSION,
        built=record(manifest, ids, key_ids),
    )
    uuid = str(uuid4())
    files = DatasetFiles.at(dataset, absolute(manifest.root))
    with removed_on_error(dataset, uuid), _bar(fragments, column, progress) as bar:
        mark(files, uuid)
        parts = _Entries(dataset, column, resolved, fragments, bar).parts(_sorters())
        batches = externally_sorted(parts, PAGE_DATA_SCHEMA, sort_memory)
        written = write_btree(files, f"_indices/{uuid}", batches)
    return BuiltSegment(uuid, column_id, details, manifest.version, ids, written)


def commit_segments(
    dataset: lance.LanceDataset,
    segments: Sequence[BuiltSegment],
    name: str | None = None,
    replace: bool = False,
) -> None:
    """Commit segments built apart as one index; `dataset` is at the new version afterwards.

    They are over the same keys of the same column and share no fragment. The files stay
    where the commit fails, so that it can be tried again.

    Raises `InvalidArgumentError` where the segments do not go together or the name is in
    use, and `LanceIndexError` where another writer has changed the table in a way that does
    not go with the index since the first of them was built (a compaction of their
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
        if segment.details.key_field_ids != first.details.key_field_ids or (
            segment.details.key_types != first.details.key_types
        ):
            raise InvalidArgumentError(
                "segments", segment.details.keys, f"segments with the keys {first.details.keys}"
            )
    ids = [fragment for segment in segments for fragment in segment.fragment_ids]
    if len(set(ids)) != len(ids):
        raise InvalidArgumentError("segments", sorted(ids), "segments that share no fragment")
    dataset.checkout_latest()
    manifest = read_manifest(dataset)
    columns = {field.id: field.name for field in manifest.fields}
    column = columns.get(first.column_id)
    if column is None:
        raise InvalidArgumentError("segments", first.column_id, "segments on a column of the table")
    chosen = _chosen_name(manifest, column, name, replace)
    try:
        commit(dataset, chosen, segments, _replaced(manifest, chosen))
    except CommitConflictError as error:
        raise _lost(chosen, error) from error


# -- arguments ----------------------------------------------------------------------------


def _resolve(manifest: Manifest, column: str, keys: Sequence[str]) -> tuple[int, tuple[Key, ...]]:
    """The column's field id and the key fields; `InvalidArgumentError` where they do not fit."""
    columns = {field.name: field for field in manifest.fields if field.parent_id == -1}
    found = columns.get(column)
    if found is None:
        raise InvalidArgumentError("column", column, f"a column of the table: {', '.join(columns)}")
    element = element_struct(manifest.fields, found.id)
    if element is None:
        raise InvalidArgumentError(
            "column", f"{column}: {found.logical_type}", "a List or LargeList of structs"
        )
    if isinstance(keys, str) or not keys:
        raise InvalidArgumentError("keys", keys, "a list of one field name or more")
    inside = {field.name: field for field in manifest.fields if field.parent_id == element.id}
    resolved = tuple(_key(column, key, inside) for key in keys)
    if len(set(keys)) != len(keys):
        raise InvalidArgumentError("keys", list(keys), "each field once")
    return found.id, resolved


def _key(column: str, name: str, inside: dict[str, Field]) -> Key:
    field = inside.get(name) if isinstance(name, str) else None
    if field is None:
        raise InvalidArgumentError(
            "keys", name, f"direct fields of the elements of {column}: {', '.join(inside)}"
        )
    codec = key_codec(field.logical_type)
    if codec is None:
        raise InvalidArgumentError(
            "keys", f"{name}: {field.logical_type}", f"fields of type {', '.join(LOGICAL_TYPES)}"
        )
    return Key(field.id, field.name, codec)


def _fragments(
    dataset: lance.LanceDataset, wanted: Collection[int] | None
) -> list[lance.LanceFragment]:
    every = {fragment.fragment_id: fragment for fragment in dataset.get_fragments()}
    if wanted is None:
        return list(every.values())
    unknown = sorted(set(wanted) - every.keys())
    if unknown or not wanted:
        raise InvalidArgumentError(
            "fragment_ids", unknown or list(wanted), f"fragments of the table: {sorted(every)}"
        )
    return [fragment for fragment_id, fragment in every.items() if fragment_id in wanted]


def _chosen_name(manifest: Manifest, column: str, name: str | None, replace: bool) -> str:
    if name is not None and not name:
        raise InvalidArgumentError("name", name, "a name, or None for the column's name and _idx")
    chosen = name if name is not None else f"{column}_idx"
    if not replace and any(index.name == chosen for index in manifest.indexes):
        raise InvalidArgumentError("name", chosen, "a name that no index has yet, or replace=True")
    return chosen


# -- reading the column -------------------------------------------------------------------


class _Entries:
    """The entries of a column, dealt out to several threads as they ask for more."""

    def __init__(
        self,
        dataset: lance.LanceDataset,
        column: str,
        keys: Sequence[Key],
        fragments: list[lance.LanceFragment],
        bar: tqdm,
    ) -> None:
        self._keys = keys
        self._bar = bar
        self._lock = Lock()
        self._batches: Iterator[pa.RecordBatch] = iter(())
        if fragments:
            self._batches = dataset.scanner(
                columns=[column],
                fragments=fragments,
                with_row_address=True,
                batch_size=_BATCH_ROWS,
                batch_size_bytes=_BATCH_BYTES,
                batch_readahead=1,
                fragment_readahead=1,
                io_buffer_size=_READ_AHEAD_BYTES,
            ).to_batches()

    def parts(self, count: int) -> list[Iterator[pa.RecordBatch]]:
        """As many iterators over the entries; together they give each entry once."""
        return [self._part() for _ in range(count)]

    def _part(self) -> Iterator[pa.RecordBatch]:
        while (batch := self._next()) is not None:
            yield from entries(batch.column(0), batch.column("_rowaddr"), self._keys)

    def _next(self) -> pa.RecordBatch | None:
        with self._lock:
            batch = next(self._batches, None)
            if batch is not None:
                self._bar.update(len(batch))
            return batch


def _sorters() -> int:
    return min(_SORTERS, os.cpu_count() or 1)


@contextmanager
def _bar(fragments: Sequence[lance.LanceFragment], column: str, progress: bool) -> Iterator[tqdm]:
    rows = sum(fragment.count_rows() for fragment in fragments)
    # With None, tqdm is quiet where stderr is no terminal.
    with tqdm(
        total=rows, desc=f"indexing {column}", unit=" rows", disable=None if progress else True
    ) as bar:
        yield bar


# -- committing ---------------------------------------------------------------------------


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
            index_version=NEWEST_VERSION,
            created_at=now,
            files=[IndexFile(path, size) for path, size in segment.files],
            index_details=(TYPE_URL, segment.details.encode()),
        )
        for segment in segments
    ]
    read_version = min(segment.dataset_version for segment in segments)
    lance.LanceDataset.commit(
        dataset, lance.LanceOperation.CreateIndex(added, removed), read_version=read_version
    )
    dataset.checkout_latest()
    files = DatasetFiles.at(dataset, absolute(dataset.uri))
    for segment in segments:
        unmark(files, segment.uuid)


def _replaced(manifest: Manifest, name: str) -> list[IndexSegment]:
    """The segments of the index of that name, which a new one may replace; none is none."""
    return [s for index in manifest.indexes if index.name == name for s in index.segments]


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


def _lost(name: str, error: Exception) -> LanceIndexError:
    what = str(error).split(", /")[0]
    return LanceIndexError(
        f"index {name!r} was not created: another writer was faster, build it again ({what})"
    )


@contextmanager
def removed_on_error(dataset: lance.LanceDataset, *uuids: str) -> Iterator[list[str]]:
    """Remove the files of segments where anything fails; more of them can be added to the list.

    Those that the table names are kept: a commit may be done and what follows it fail.
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
    newest = read_manifest(dataset.checkout_version(dataset.latest_version))
    named = {segment.uuid for index in newest.indexes for segment in index.segments}
    files = DatasetFiles.at(dataset, absolute(newest.root))
    for uuid in uuids:
        if uuid not in named:
            files.delete_folder(f"_indices/{uuid}")
