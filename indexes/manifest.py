"""A table version's metadata, read from its manifest: fragments, base paths, indexes.

pylance lists only the index types that it knows; the manifest names them all.
"""

from __future__ import annotations

import struct
import uuid as uuids
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import lance
from pyroaring import BitMap

from . import manifest_messages
from .dataset_files import DatasetFiles
from .errors import CorruptIndexError, LanceIndexError

_LENGTH: Final = struct.Struct("<I")
_TRAILER: Final = struct.Struct("<QHH4s")
_MAGIC: Final = b"LANC"
_DETACHED: Final = 1 << 63
_LAST_VERSION: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class ExternalFile:
    """A range of a file that holds what the manifest does not hold itself."""

    path: str
    offset: int
    size: int


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

    `physical_rows` counts deleted rows too. `row_ids` and `last_updated` are the encoded
    sequences of a table with stable row ids, else None.
    """

    id: int
    physical_rows: int
    deletion_file: DeletionFile | None
    row_ids: bytes | ExternalFile | None
    last_updated: bytes | ExternalFile | None
    overlays: tuple[Overlay, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of the schema, nested ones too; `parent_id` is -1 for a column."""

    id: int
    parent_id: int
    name: str


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
    to its path and whether that is the root of a dataset.
    """

    root: str
    version: int
    fragments: tuple[Fragment, ...]
    base_paths: tuple[tuple[int, str, bool], ...]
    fields: tuple[Field, ...]
    indexes: tuple[LanceIndex, ...]

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

    Raises as `read_manifest` does.
    """
    return read_manifest(dataset).indexes


def read_manifest(dataset: lance.LanceDataset) -> Manifest:
    """The metadata of the version that `dataset` is opened at.

    Raises `LanceIndexError` where the manifest cannot be read again from where the dataset
    is (a table in memory), and `CorruptIndexError` where it is not as Lance writes it.
    """
    # What pylance has read itself, as it hands it to another process when pickled. Only
    # the index section is not in it.
    opened: bytes = dataset._ds.serialized_manifest()
    message = manifest_messages.parse("Manifest", opened)
    files, name = _find(dataset, message, opened)
    return Manifest(
        root=files.base,
        version=message.version,
        fragments=tuple(_fragment(fragment) for fragment in message.fragments),
        fields=tuple(Field(f.id, f.parent_id, f.name) for f in message.fields),
        base_paths=tuple((b.id, b.path, b.is_dataset_root) for b in message.base_paths),
        indexes=_indexes(message, files, name),
    )


def _find(
    dataset: lance.LanceDataset, message: Any, opened: bytes
) -> tuple[DatasetFiles, str]:
    """The manifest file that holds exactly the bytes `opened`, and the folder it is under."""
    names = tuple(_names(message.version))
    for root in _roots(absolute(dataset.uri), message.branch):
        files = DatasetFiles.at(dataset, root)
        for name in names:
            if files.contains(name) and _message_in(files, name) == opened:
                return files, name
    raise LanceIndexError(
        f"the manifest of version {message.version} of {dataset.uri} cannot be found again"
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


def _message_in(files: DatasetFiles, name: str) -> bytes:
    """The Manifest message in a manifest file, as bytes."""
    data = files.read(name)
    check = "not a manifest: no LANC at its end"
    if len(data) >= _TRAILER.size:
        position, _, _, magic = _TRAILER.unpack(data[-_TRAILER.size :])
        if magic == _MAGIC:
            check = "the manifest message ends outside the file"
            if position + _LENGTH.size <= len(data):
                (size,) = _LENGTH.unpack_from(data, position)
                start = position + _LENGTH.size
                if start + size <= len(data):
                    return data[start : start + size]
    raise CorruptIndexError(files.path(name), check)


def _indexes(message: Any, files: DatasetFiles, name: str) -> tuple[LanceIndex, ...]:
    if not message.HasField("index_section"):
        return ()
    position = message.index_section
    try:
        (size,) = _LENGTH.unpack(files.read_range(name, position, _LENGTH.size))
        data = files.read_range(name, position + _LENGTH.size, size)
        section = manifest_messages.parse("IndexSection", data)
        segments = [_segment(metadata) for metadata in section.indices]
    except (OSError, ValueError) as error:
        raise CorruptIndexError(files.path(name), f"the index section: {error}") from error
    by_name: dict[str, list[IndexSegment]] = {}
    for segment in segments:
        by_name.setdefault(segment.name, []).append(segment)
    return tuple(
        LanceIndex(
            name=index_name,
            kind=_kind(of_name[0].details_type_url),
            field_ids=of_name[0].field_ids,
            segments=tuple(of_name),
        )
        for index_name, of_name in by_name.items()
    )


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
        row_ids=_sequence(message, "row_ids"),
        last_updated=_sequence(message, "last_updated_at_versions"),
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


def _sequence(fragment: Any, what: str) -> bytes | ExternalFile | None:
    if fragment.HasField(f"inline_{what}"):
        return getattr(fragment, f"inline_{what}")
    if fragment.HasField(f"external_{what}"):
        external = getattr(fragment, f"external_{what}")
        return ExternalFile(external.path, external.offset, external.size)
    return None


def absolute(uri: str) -> str:
    """`uri`, with a relative local path made absolute: the working folder may change."""
    parts = urlsplit(uri)
    return uri if parts.scheme else str(Path(uri).absolute())
