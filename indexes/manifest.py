"""A table version's metadata, read from its manifest: fragments, base paths, indexes.

pylance lists only the index types that it knows; the manifest names them all.
"""

from __future__ import annotations

import struct
import uuid as uuids
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import lance
from pyroaring import BitMap

from . import manifest_messages
from .dataset_files import DatasetFiles
from .errors import CorruptIndexError, LanceIndexError
from .unreadable import unreadable

_LENGTH: Final = struct.Struct("<I")
_TRAILER: Final = struct.Struct("<QHH4s")
_MAGIC: Final = b"LANC"
_DETACHED: Final = 1 << 63
_STABLE_ROW_IDS: Final = 2
_TOMBSTONE: Final = -2
_LAST_VERSION: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class DeletionFile:
    """The file that lists a fragment's deleted offsets; `path` is relative to its base."""

    path: str
    roaring: bool
    deleted_rows: int
    base_id: int | None


@dataclass(frozen=True, slots=True)
class Overlay:
    """New values for some cells of a fragment, laid over its data files at a version."""

    field_ids: frozenset[int]
    committed_version: int


@dataclass(frozen=True, slots=True)
class Fragment:
    """One fragment of a table version.

    `physical_rows` counts deleted rows too. `files` are the names of its data files, each
    with the ids of the fields in it. `row_ids` is the encoded sequence of a table with
    stable row ids, else None; `external_row_ids` says that it is in a file of its own.
    """

    id: int
    physical_rows: int
    files: tuple[tuple[str, frozenset[int]], ...]
    deletion_file: DeletionFile | None
    row_ids: bytes | None
    external_row_ids: bool
    overlays: tuple[Overlay, ...]

    @property
    def has_tombstones(self) -> bool:
        """Whether a column was rewritten in place, and its former data is still there."""
        return any(_TOMBSTONE in held for _, held in self.files)

    def holders(self, field_ids: frozenset[int]) -> frozenset[str]:
        """The data files that hold any of the fields."""
        return frozenset(name for name, held in self.files if not held.isdisjoint(field_ids))

    def first_holds(self, field_ids: frozenset[int]) -> bool:
        """Whether the fragment's first data file holds all that it has of the fields."""
        return self.holders(field_ids) <= {name for name, _ in self.files[:1]}


@dataclass(frozen=True, slots=True)
class Field:
    """One field of the schema, nested ones too; `parent_id` is -1 for a column."""

    id: int
    parent_id: int
    name: str
    logical_type: str


@dataclass(frozen=True, slots=True)
class IndexSegment:
    """One entry of the manifest's index section: an index over some fragments.

    `fragment_ids` are the fragments that the metadata claims, existing or not.
    `base_id` names the base path that holds the files, None the table's own root.
    """

    uuid: str
    name: str
    field_ids: tuple[int, ...]
    dataset_version: int
    fragment_ids: frozenset[int]
    details_type_url: str
    details: bytes
    index_version: int
    created_at: int | None
    base_id: int | None
    files: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class LanceIndex:
    """All segments of one name: together one index.

    `kind` is the details' type without its ending, such as 'LabelList', 'BTree',
    'ListElement' or 'MinHashLsh'; empty where the metadata has no details.
    """

    name: str
    kind: str
    field_ids: tuple[int, ...]
    segments: tuple[IndexSegment, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """One version of a table.

    `root` is the folder that its own files are in. `base_paths` maps the id of a base path
    to its path and whether that is the root of a dataset. `digest` is one of the manifest's
    bytes: no two versions of any table share it. `indexes_unread` says why the
    indexes could not be read (a table in memory), if so.
    """

    root: str
    digest: str
    version: int
    reader_feature_flags: int
    fragments: tuple[Fragment, ...]
    base_paths: tuple[tuple[int, str, bool], ...]
    fields: tuple[Field, ...]
    indexes: tuple[LanceIndex, ...]
    indexes_unread: str | None = None

    @property
    def stable_row_ids(self) -> bool:
        """Whether rows keep their ids when they move."""
        return bool(self.reader_feature_flags & _STABLE_ROW_IDS)

    def subtree(self, field_ids: tuple[int, ...]) -> frozenset[int]:
        """The fields and all fields inside them."""
        inside = set(field_ids)
        # The schema lists a field before those inside it.
        for field in self.fields:
            if field.parent_id in inside:
                inside.add(field.id)
        return frozenset(inside)

    def base(self, base_id: int | None) -> tuple[str, bool]:
        """The path of a base and whether it is a dataset's root; `LanceIndexError` if unknown."""
        if base_id is None:
            return self.root, True
        for known, path, is_root in self.base_paths:
            if known == base_id:
                return path, is_root
        raise LanceIndexError(f"the manifest of {self.root} names no base path {base_id}")


def read_indexes(dataset: lance.LanceDataset) -> tuple[LanceIndex, ...]:
    """Every index of the dataset's version, of types known to pylance or not.

    Raises `LanceIndexError` where the manifest cannot be read again, and
    `CorruptIndexError` where it is not as Lance writes it.
    """
    manifest = read_manifest(dataset)
    if manifest.indexes_unread is not None:
        raise LanceIndexError(manifest.indexes_unread)
    return manifest.indexes


def read_manifest(dataset: lance.LanceDataset) -> Manifest:
    """The metadata of the version that `dataset` is opened at.

    Raises `CorruptIndexError` where the manifest is not as Lance writes it.
    """
    # What pylance has read itself, as it hands it to another process when pickled. Only
    # the index section is not in it.
    opened: bytes = dataset._ds.serialized_manifest()
    message = manifest_messages.parse("Manifest", opened)
    uri = absolute(dataset.uri)
    for root in _roots(uri, message.branch):
        files = DatasetFiles.at(dataset, root)
        for name in _names(message.version):
            if files.contains(name):
                file = _ManifestFile.read(files, name)
                # On another branch a version may have the same number.
                if file.message == opened:
                    return _manifest(opened, root, file.indexes(message))
    reason = f"the manifest of version {message.version} of {uri} cannot be found again"
    return replace(_manifest(opened, uri, ()), indexes_unread=reason)


def read_past_manifest(dataset: lance.LanceDataset, root: str, version: int) -> Manifest | None:
    """The metadata of another version, under `root`; None where that is gone.

    Raises `CorruptIndexError` where it is not as Lance writes it.
    """
    files = DatasetFiles.at(dataset, root)
    for name in _names(version):
        if files.contains(name):
            file = _ManifestFile.read(files, name)
            return _manifest(file.message, root, ())
    return None


def own_files(dataset: lance.LanceDataset) -> DatasetFiles:
    """The files that the dataset writes beside, which are a branch's own where it is on one."""
    return DatasetFiles.at(dataset, absolute(read_manifest(dataset).root))


def segments_of_all_versions(dataset: lance.LanceDataset) -> frozenset[str]:
    """The uuids of the index segments that any version of its branch names which is still there.

    Raises `CorruptIndexError` where a manifest is not as Lance writes it.
    """
    files = own_files(dataset)
    found: set[str] = set()
    for name in files.list("_versions"):
        if name.endswith(".manifest"):
            file = _ManifestFile.read(files, name)
            indexes = file.indexes(manifest_messages.parse("Manifest", file.message))
            found.update(segment.uuid for index in indexes for segment in index.segments)
    return frozenset(found)


def _manifest(data: bytes, root: str, indexes: tuple[LanceIndex, ...]) -> Manifest:
    message = manifest_messages.parse("Manifest", data)
    return Manifest(
        root=root,
        digest=blake2b(data, digest_size=16).hexdigest(),
        version=message.version,
        reader_feature_flags=message.reader_feature_flags,
        fragments=tuple(_fragment(fragment) for fragment in message.fragments),
        fields=tuple(Field(f.id, f.parent_id, f.name, f.logical_type) for f in message.fields),
        base_paths=tuple((b.id, b.path, b.is_dataset_root) for b in message.base_paths),
        indexes=indexes,
    )


def _names(version: int) -> Iterator[str]:
    """The names that a version's manifest may have: detached, or of scheme V2 or V1."""
    if version & _DETACHED:
        yield f"_versions/d{version}.manifest"
        return
    yield f"_versions/{_LAST_VERSION - version:020}.manifest"
    yield f"_versions/{version}.manifest"


def _roots(uri: str, branch: str) -> Iterator[str]:
    """The folders that may hold the version: a checkout across branches keeps the old URI."""
    yield uri
    trunk = uri.split("/tree/")[0]
    if branch:
        yield f"{uri}/tree/{branch}"
        yield f"{trunk}/tree/{branch}"
    yield trunk


@dataclass(frozen=True, slots=True)
class _ManifestFile:
    """A manifest file: index section and Manifest message, each after its u32 length.

    At the file's end stand the position of the message (u64), two version numbers (u16)
    and `LANC`.
    """

    path: str
    data: bytes
    message: bytes

    @classmethod
    def read(cls, files: DatasetFiles, name: str) -> _ManifestFile:
        path = files.path(name)
        try:
            data = files.read(name)
        except OSError as error:
            raise unreadable(files, name, f"it opens: {error}") from error
        if len(data) < _TRAILER.size or not data.endswith(_MAGIC):
            raise CorruptIndexError(path, "no LANC at its end")
        position, _, _, _ = _TRAILER.unpack(data[-_TRAILER.size :])
        return cls(path, data, _prefixed(path, data, position, "the Manifest message"))

    def indexes(self, message: Any) -> tuple[LanceIndex, ...]:
        """The indexes that the index section lists, segments of one name together."""
        if not message.HasField("index_section"):
            return ()
        data = _prefixed(self.path, self.data, message.index_section, "the IndexSection message")
        try:
            section = manifest_messages.parse("IndexSection", data)
            segments = [_segment(metadata) for metadata in section.indices]
        except (ValueError, IndexError) as error:
            raise CorruptIndexError(self.path, f"the IndexSection message: {error}") from error
        by_name: dict[str, list[IndexSegment]] = {}
        for segment in segments:
            by_name.setdefault(segment.name, []).append(segment)
        return tuple(
            LanceIndex(
                name=name,
                kind=_kind(of_name[0].details_type_url),
                field_ids=of_name[0].field_ids,
                segments=tuple(of_name),
            )
            for name, of_name in by_name.items()
        )


def _prefixed(path: str, data: bytes, position: int, what: str) -> bytes:
    """The bytes after the u32 length at `position`, of that length."""
    start = position + _LENGTH.size
    if start <= len(data):
        (size,) = _LENGTH.unpack_from(data, position)
        if start + size <= len(data):
            return data[start : start + size]
    raise CorruptIndexError(path, f"{what} ends outside the file")


def _segment(metadata: Any) -> IndexSegment:
    bitmap: bytes = metadata.fragment_bitmap
    return IndexSegment(
        uuid=str(uuids.UUID(bytes=metadata.uuid.uuid)),
        name=metadata.name,
        field_ids=tuple(metadata.fields),
        dataset_version=metadata.dataset_version,
        # Very old indexes do not say what they cover; then nothing is taken as covered.
        fragment_ids=frozenset(BitMap.deserialize(bitmap)) if bitmap else frozenset(),
        details_type_url=metadata.index_details.type_url,
        details=metadata.index_details.value,
        index_version=metadata.index_version,
        created_at=metadata.created_at if metadata.HasField("created_at") else None,
        base_id=metadata.base_id if metadata.HasField("base_id") else None,
        files=tuple((file.path, file.size_bytes) for file in metadata.files),
    )


def _kind(type_url: str) -> str:
    """'LabelList' for '/lance.table.LabelListIndexDetails'."""
    return type_url.rsplit("/", 1)[-1].rsplit(".", 1)[-1].removesuffix("IndexDetails")


def _fragment(message: Any) -> Fragment:
    return Fragment(
        id=message.id,
        physical_rows=message.physical_rows,
        deletion_file=_deletion_file(message) if message.HasField("deletion_file") else None,
        files=tuple((file.path, frozenset(file.fields)) for file in message.files),
        row_ids=message.inline_row_ids if message.HasField("inline_row_ids") else None,
        external_row_ids=message.HasField("external_row_ids"),
        overlays=tuple(
            Overlay(frozenset(overlay.data_file.fields), overlay.committed_version)
            for overlay in message.overlays
        ),
    )


def _deletion_file(fragment: Any) -> DeletionFile:
    file = fragment.deletion_file
    roaring = file.file_type == 1
    ending = "bin" if roaring else "arrow"
    return DeletionFile(
        path=f"_deletions/{fragment.id}-{file.read_version}-{file.id}.{ending}",
        roaring=roaring,
        deleted_rows=file.num_deleted_rows,
        base_id=file.base_id if file.HasField("base_id") else None,
    )


def absolute(uri: str) -> str:
    """`uri`, with a relative local path made absolute: the working folder may change."""
    parts = urlsplit(uri)
    return uri if parts.scheme else str(Path(uri).absolute())
