"""Builds a list element index: encodes and sorts a column's elements, writes, commits.

Files are written first and the index is committed last, in one step: a build that ends
anywhere before leaves the table as it was.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from threading import Lock
from typing import Final
from uuid import uuid4

import lance
import pyarrow as pa

from .. import segment_commit
from ..cancellation import cancellable
from ..conflicts import FASTER, with_retries
from ..dataset_files import DatasetFiles
from ..errors import InvalidArgumentError
from ..fragment_choice import chosen_fragments
from ..index_names import chosen_name, replaced
from ..leftovers import mark
from ..manifest import Field, Manifest, absolute, read_manifest
from ..progress import Progress
from ..segment_commit import BuiltSegment, commit, removed_on_error
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
_BATCH_ROWS: Final = 16_384
_BATCH_BYTES: Final = 16 << 20
_READ_AHEAD_BYTES: Final = 64 << 20


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

    def attempt() -> None:
        manifest = read_manifest(dataset)
        chosen = chosen_name(manifest, column, name, replace)
        with removed_on_error(dataset) as written:
            segment = build_segment(
                dataset,
                column,
                keys,
                fragment_ids=fragment_ids,
                sort_memory=sort_memory,
                progress=progress,
            )
            written.append(segment.uuid)
            commit(dataset, chosen, (segment,), replaced(manifest, chosen))

    lost = f"the index on {column!r} was not created: {FASTER}"
    cancellable(lambda: with_retries(dataset, attempt, lost))


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

    It is marked as being built by this process until it is committed. Raises
    `InvalidArgumentError` as `create_list_element` does; then, as after any failure, the files
    are removed again.
    """
    manifest = read_manifest(dataset)
    column_id, resolved = _resolve(manifest, column, keys)
    fragments = chosen_fragments(dataset, fragment_ids)
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
    rows = sum(fragment.count_rows() for fragment in fragments)
    with (
        removed_on_error(dataset, uuid),
        Progress(f"indexing {column}", rows, "rows", progress) as bar,
    ):
        mark(files, uuid)
        parts = _Entries(dataset, column, resolved, fragments, bar).parts(_sorters())
        batches = externally_sorted(parts, PAGE_DATA_SCHEMA, sort_memory)
        written = write_btree(files, f"_indices/{uuid}", bar.watched(batches))
    return BuiltSegment(
        uuid=uuid,
        column_id=column_id,
        type_url=TYPE_URL,
        details=details.encode(),
        index_version=NEWEST_VERSION,
        dataset_version=manifest.version,
        fragment_ids=ids,
        files=written,
    )


def commit_segments(
    dataset: lance.LanceDataset,
    segments: Sequence[BuiltSegment],
    name: str | None = None,
    replace: bool = False,
) -> None:
    """`segment_commit.commit_segments`, for segments that have the same keys.

    Raises `InvalidArgumentError` where they have not.
    """
    every = [ListElementIndexDetails.decode(segment.details) for segment in segments]
    for details in every:
        same = (every[0].key_field_ids, every[0].key_types)
        if (details.key_field_ids, details.key_types) != same:
            raise InvalidArgumentError(
                "segments", details.keys, f"segments with the keys {every[0].keys}"
            )
    segment_commit.commit_segments(dataset, segments, name, replace)


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


# -- reading the column -------------------------------------------------------------------


class _Entries:
    """The entries of a column, dealt out to several threads as they ask for more."""

    def __init__(
        self,
        dataset: lance.LanceDataset,
        column: str,
        keys: Sequence[Key],
        fragments: list[lance.LanceFragment],
        bar: Progress,
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
