"""Index Details: the ListElementIndexDetails message, and its key fields found again.

Field ids are what a key is found by: the index follows a rename, and is not used where a
key is gone, elsewhere or of another type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ..errors import UnsupportedVersionError, UnusableIndexError
from ..manifest import Field, IndexSegment, LanceIndex, Manifest
from ..message_set import MessageSet
from .key_encoding import KeyCodec, key_codec

KIND: Final = "ListElement"
TYPE_URL: Final = "/lance.index.pb.ListElementIndexDetails"
TARGET_TYPE_URL: Final = "/lance.table.BTreeIndexDetails"
NEWEST_VERSION: Final = 0
"""Of the list element index itself."""
NEWEST_TARGET_VERSION: Final = 1
"""Of the BTree; from version 1 on it stores row addresses."""

KEY_ENCODING_ARROW_ROW_V1: Final = 1
"""LIST_ELEMENT_KEY_ENCODING_ARROW_ROW_V1; 0 is UNSPECIFIED. The specification names the
values of the enumeration without their numbers."""

_LISTS: Final = ("list", "list.struct", "large_list", "large_list.struct")
_STRUCT: Final = "struct"

# `built` is this package's own, far from the numbers that the format may use next: readers
# of the format skip it. The specification's fields are the first six.
_MESSAGES: Final[Mapping[str, Mapping[str, tuple[int, str]]]] = {
    "ListElementIndexDetails": {
        "key_field_ids": (1, "int32*"),
        "keys": (2, "string*"),
        "key_types": (3, "string*"),
        "key_encoding": (4, "uint32"),
        "target_details": (5, "Any"),
        "target_index_version": (6, "uint32"),
        "built": (52501, "Built"),
    },
    "Any": {"type_url": (1, "string"), "value": (2, "bytes")},
    "Built": {"fragment_ids": (1, "uint64*"), "key_files": (2, "fixed64*")},
}
_SET: Final = MessageSet("datafusion_lance.list_element", _MESSAGES)


@dataclass(frozen=True, slots=True)
class Key:
    """One key field as it is now: its current name, and how its values are encoded."""

    field_id: int
    name: str
    codec: KeyCodec


@dataclass(frozen=True, slots=True)
class ListElementIndexDetails:
    """The details of one segment, in the specification's words.

    `built` maps each fragment that the segment was built from to a fingerprint of the data
    files that held the keys, see `coverage`; None where another writer left it out.
    """

    key_field_ids: tuple[int, ...]
    keys: tuple[str, ...]
    key_types: tuple[str, ...]
    target_index_version: int
    key_encoding: int = KEY_ENCODING_ARROW_ROW_V1
    target_type_url: str = TARGET_TYPE_URL
    target_details: bytes = b""
    built: tuple[tuple[int, int], ...] | None = None

    @classmethod
    def decode(cls, data: bytes) -> ListElementIndexDetails:
        """The details in a message; raises `ValueError` where `data` is none."""
        message = _SET.parse("ListElementIndexDetails", data)
        built = None
        if message.HasField("built"):
            built = tuple(zip(message.built.fragment_ids, message.built.key_files, strict=True))
        return cls(
            key_field_ids=tuple(message.key_field_ids),
            keys=tuple(message.keys),
            key_types=tuple(message.key_types),
            key_encoding=message.key_encoding,
            target_type_url=message.target_details.type_url,
            target_details=message.target_details.value,
            target_index_version=message.target_index_version,
            built=built,
        )

    def encode(self) -> bytes:
        """The message; equal details give equal bytes."""
        built = None
        if self.built is not None:
            built = {
                "fragment_ids": [fragment for fragment, _ in self.built],
                "key_files": [files for _, files in self.built],
            }
        return _SET.serialize(
            "ListElementIndexDetails",
            key_field_ids=self.key_field_ids,
            keys=self.keys,
            key_types=self.key_types,
            key_encoding=self.key_encoding,
            target_details={"type_url": self.target_type_url, "value": self.target_details},
            target_index_version=self.target_index_version,
            built=built,
        )


def details_of(segment: IndexSegment) -> ListElementIndexDetails:
    """A segment's details, checked as far as they say themselves whether they can be used.

    Raises `UnusableIndexError`, and of it `UnsupportedVersionError` for a newer format.
    """
    name = segment.name
    if segment.index_version > NEWEST_VERSION:
        raise UnsupportedVersionError(
            name,
            f"its version is {segment.index_version}, and {NEWEST_VERSION} is the newest "
            "that is read",
        )
    try:
        details = ListElementIndexDetails.decode(segment.details)
    except ValueError as error:
        raise UnusableIndexError(name, f"its details do not parse: {error}") from error
    if details.key_encoding != KEY_ENCODING_ARROW_ROW_V1:
        raise UnsupportedVersionError(
            name, f"its key encoding is {details.key_encoding}, not ARROW_ROW_V1"
        )
    if details.target_type_url.rsplit("/", 1)[-1] != TARGET_TYPE_URL.rsplit("/", 1)[-1]:
        raise UnusableIndexError(name, f"its target is {details.target_type_url!r}, not a BTree")
    if details.target_index_version < 1:
        raise UnusableIndexError(
            name,
            f"its target's version is {details.target_index_version}: it stores no row addresses",
        )
    if details.target_index_version > NEWEST_TARGET_VERSION:
        raise UnsupportedVersionError(
            name,
            f"its target's version is {details.target_index_version}, and "
            f"{NEWEST_TARGET_VERSION} is the newest that is read",
        )
    ids = details.key_field_ids
    if not ids or len(set(ids)) != len(ids) or len(details.key_types) != len(ids):
        raise UnusableIndexError(
            name, f"its details name the key fields {list(ids)} of types {list(details.key_types)}"
        )
    return details


def resolve_keys(index: LanceIndex, manifest: Manifest) -> tuple[Key, ...]:
    """The keys of an index, in key order, as the table's version has them.

    Raises `UnusableIndexError` where a key, the column or a segment is not as all segments
    of the index say together, and as `details_of` does.
    """
    if len(index.field_ids) != 1:
        raise UnusableIndexError(index.name, f"it is on {len(index.field_ids)} fields, not on one")
    every = [details_of(segment) for segment in index.segments]
    first = every[0]
    for segment, details in zip(index.segments, every, strict=True):
        if segment.field_ids != index.field_ids or segment.details_type_url != (
            index.segments[0].details_type_url
        ):
            raise UnusableIndexError(index.name, "its segments are not on one and the same column")
        if (details.key_field_ids, details.key_types) != (first.key_field_ids, first.key_types):
            raise UnusableIndexError(index.name, "its segments have different keys")
    fields = {field.id: field for field in manifest.fields}
    element = element_struct(manifest.fields, index.field_ids[0])
    if element is None:
        raise UnusableIndexError(
            index.name, f"field {index.field_ids[0]} is no list of structs any more"
        )
    ids, names = first.key_field_ids, first.keys
    if len(names) != len(ids):
        names = tuple(f"with field id {field_id}" for field_id in ids)
    return tuple(
        _resolved(index.name, fields.get(field_id), element, was_named, was_of_type)
        for field_id, was_named, was_of_type in zip(ids, names, first.key_types, strict=True)
    )


def element_struct(fields: Iterable[Field], column_id: int) -> Field | None:
    """The struct inside a List or LargeList column; None where it is no list of structs."""
    column, inside = None, []
    for field in fields:
        if field.id == column_id:
            column = field
        elif field.parent_id == column_id:
            inside.append(field)
    if column is None or column.logical_type not in _LISTS or len(inside) != 1:
        return None
    return inside[0] if inside[0].logical_type == _STRUCT else None


def _resolved(index: str, field: Field | None, element: Field, name: str, kind: str) -> Key:
    if field is None:
        raise UnusableIndexError(index, f"its key {name} is not in the table any more")
    if field.parent_id != element.id:
        raise UnusableIndexError(index, f"its key {name} is no field of the elements any more")
    if field.logical_type != kind:
        raise UnusableIndexError(
            index, f"its key {field.name} was of type {kind}, now it is {field.logical_type}"
        )
    codec = key_codec(kind)
    if codec is None:
        raise UnusableIndexError(index, f"its key {field.name} of type {kind} has no encoding")
    return Key(field.id, field.name, codec)
