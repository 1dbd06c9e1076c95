"""The specification's section Index Details."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from datafusion_lance.indexes.errors import UnsupportedVersionError, UnusableIndexError
from datafusion_lance.indexes.list_element.details import (
    TYPE_URL,
    ListElementIndexDetails,
    resolve_keys,
)
from datafusion_lance.indexes.manifest import Field, IndexSegment, LanceIndex, Manifest

FIELDS = (
    Field(0, -1, "id", "int64"),
    Field(3, -1, "detections", "list.struct"),
    Field(4, 3, "item", "struct"),
    Field(5, 4, "label", "string"),
    Field(6, 4, "confidence", "float"),
    Field(7, 4, "box", "struct"),
    Field(8, 7, "width", "float"),
)
DETAILS = ListElementIndexDetails((5, 6), ("label", "confidence"), ("string", "float"), 1)


def manifest(*fields: Field) -> Manifest:
    return Manifest(
        root="/table",
        version=2,
        digest="",
        reader_feature_flags=0,
        fragments=(),
        base_paths=(),
        fields=fields or FIELDS,
        indexes=(),
    )


def index(*details: ListElementIndexDetails | bytes, **changes: Any) -> LanceIndex:
    segments = tuple(
        replace(
            IndexSegment(
                uuid=str(number),
                name="detections_idx",
                field_ids=(3,),
                dataset_version=1,
                fragment_ids=frozenset((number,)),
                details_type_url=TYPE_URL,
                details=one if isinstance(one, bytes) else one.encode(),
                index_version=0,
                created_at=None,
                base_id=None,
                files=(),
            ),
            **changes,
        )
        for number, one in enumerate(details or (DETAILS,))
    )
    return LanceIndex("detections_idx", "ListElement", segments[0].field_ids, segments)


def refused(index: LanceIndex, *fields: Field) -> UnusableIndexError:
    with pytest.raises(UnusableIndexError) as error:
        resolve_keys(index, manifest(*fields))
    return error.value


def changed(field_id: int, **changes: Any) -> list[Field]:
    return [replace(f, **changes) if f.id == field_id else f for f in FIELDS]


def specified_message() -> Any:
    """The message class of the specification's text, written out by hand."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="s.proto", package="s", syntax="proto3")
    wrapped = file.message_type.add(name="Any")
    wrapped.field.add(name="type_url", number=1, type=kinds.TYPE_STRING, label=1)
    wrapped.field.add(name="value", number=2, type=kinds.TYPE_BYTES, label=1)
    message = file.message_type.add(name="ListElementIndexDetails")
    message.field.add(name="key_field_ids", number=1, type=kinds.TYPE_INT32, label=3)
    message.field.add(name="keys", number=2, type=kinds.TYPE_STRING, label=3)
    message.field.add(name="key_types", number=3, type=kinds.TYPE_STRING, label=3)
    encoding = file.enum_type.add(name="ListElementKeyEncoding")
    encoding.value.add(name="LIST_ELEMENT_KEY_ENCODING_UNSPECIFIED", number=0)
    encoding.value.add(name="LIST_ELEMENT_KEY_ENCODING_ARROW_ROW_V1", number=1)
    message.field.add(
        name="key_encoding",
        number=4,
        type=kinds.TYPE_ENUM,
        type_name=".s.ListElementKeyEncoding",
        label=1,
    )
    message.field.add(
        name="target_details", number=5, type=kinds.TYPE_MESSAGE, type_name=".s.Any", label=1
    )
    message.field.add(name="target_index_version", number=6, type=kinds.TYPE_UINT32, label=1)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("s.ListElementIndexDetails"))


def test_the_message_is_the_specification_s() -> None:
    message = specified_message().FromString(replace(DETAILS, built=((0, 1), (1, 2))).encode())
    assert list(message.key_field_ids) == [5, 6]
    assert list(message.keys) == ["label", "confidence"]
    assert list(message.key_types) == ["string", "float"]
    assert message.key_encoding == 1
    assert message.target_details.type_url == "/lance.table.BTreeIndexDetails"
    assert message.target_index_version == 1


def test_a_message_of_another_writer_is_read() -> None:
    message = specified_message()(
        key_field_ids=[5],
        keys=["label"],
        key_types=["string"],
        key_encoding=1,
        target_details={"type_url": "type.googleapis.com/lance.table.BTreeIndexDetails"},
        target_index_version=1,
    )
    details = ListElementIndexDetails.decode(message.SerializeToString())
    assert details.built is None
    (key,) = resolve_keys(index(details), manifest())
    assert (key.field_id, key.name) == (5, "label")


def test_details_come_back_as_they_were() -> None:
    for built in (None, (), ((0, 0), (7, 2**64 - 1))):
        details = replace(DETAILS, built=built)
        assert ListElementIndexDetails.decode(details.encode()) == details


def test_keys_have_their_order_types_and_current_names() -> None:
    keys = resolve_keys(index(), manifest(*changed(5, name="class")))
    assert [(k.field_id, k.name, k.codec.logical_type) for k in keys] == [
        (5, "class", "string"),
        (6, "confidence", "float"),
    ]


def test_a_rename_that_gives_a_key_s_name_to_another_field_is_followed() -> None:
    fields = [replace(f, name={5: "confidence", 6: "label"}.get(f.id, f.name)) for f in FIELDS]
    assert [k.name for k in resolve_keys(index(), manifest(*fields))] == ["confidence", "label"]


def test_segments_written_on_either_side_of_a_rename_go_together() -> None:
    renamed = replace(DETAILS, keys=("class", "confidence"))
    assert len(resolve_keys(index(DETAILS, renamed), manifest())) == 2


def test_large_lists_are_indexed_too() -> None:
    assert resolve_keys(index(), manifest(*changed(3, logical_type="large_list.struct")))


def test_a_dropped_key_is_refused() -> None:
    error = refused(index(), *(f for f in FIELDS if f.id != 6))
    assert error.reason == "its key confidence is not in the table any more"


def test_a_moved_key_is_refused() -> None:
    error = refused(index(), *changed(6, parent_id=7))
    assert error.reason == "its key confidence is no field of the elements any more"


def test_a_retyped_key_is_refused() -> None:
    error = refused(index(), *changed(6, logical_type="double"))
    assert error.reason == "its key confidence was of type float, now it is double"


def test_a_key_of_a_type_without_encoding_is_refused() -> None:
    struct_key = replace(DETAILS, key_field_ids=(5, 7), key_types=("string", "struct"))
    assert "box of type struct has no encoding" in refused(index(struct_key)).reason


@pytest.mark.parametrize(
    "fields",
    [
        [f for f in FIELDS if f.id < 3],
        changed(3, logical_type="fixed_size_list:struct:2"),
        changed(4, logical_type="string"),
    ],
    ids=["dropped", "no list", "no structs"],
)
def test_a_column_that_is_no_list_of_structs_is_refused(fields: list[Field]) -> None:
    assert "no list of structs" in refused(index(), *fields).reason


@pytest.mark.parametrize("encoding", [0, 2])
def test_an_unknown_key_encoding_is_refused(encoding: int) -> None:
    error = refused(index(replace(DETAILS, key_encoding=encoding)))
    assert isinstance(error, UnsupportedVersionError)
    assert error.reason == f"its key encoding is {encoding}, not ARROW_ROW_V1"


def test_a_newer_version_is_refused() -> None:
    error = refused(index(index_version=1))
    assert isinstance(error, UnsupportedVersionError)
    assert error.reason == "its version is 1, and 0 is the newest that is read"


def test_a_target_that_stores_no_row_addresses_is_refused() -> None:
    error = refused(index(replace(DETAILS, target_index_version=0)))
    assert error.reason == "its target's version is 0: it stores no row addresses"


def test_a_newer_target_is_refused() -> None:
    error = refused(index(replace(DETAILS, target_index_version=2)))
    assert isinstance(error, UnsupportedVersionError)


def test_a_target_that_is_no_btree_is_refused() -> None:
    error = refused(index(replace(DETAILS, target_type_url="/lance.table.BitmapIndexDetails")))
    assert "not a BTree" in error.reason


@pytest.mark.parametrize(
    "details",
    [
        replace(DETAILS, key_field_ids=(), keys=(), key_types=()),
        replace(DETAILS, key_field_ids=(5, 5)),
        replace(DETAILS, key_types=("string",)),
    ],
    ids=["no key", "a key twice", "types that are not parallel"],
)
def test_key_fields_that_cannot_be_are_refused(details: ListElementIndexDetails) -> None:
    assert "its details name the key fields" in refused(index(details)).reason


@pytest.mark.parametrize("data", [b"\xff\xff\xff", b"\x0a\x05\x01", b"\x12\x01\xff"])
def test_details_that_do_not_parse_are_refused(data: bytes) -> None:
    assert "its details do not parse" in refused(index(data)).reason


@pytest.mark.parametrize(
    "other",
    [
        replace(DETAILS, key_field_ids=(6, 5), key_types=("float", "string")),
        replace(DETAILS, key_field_ids=(5,), keys=("label",), key_types=("string",)),
        replace(DETAILS, key_types=("string", "double")),
    ],
    ids=["another order", "fewer keys", "another type"],
)
def test_segments_with_different_keys_are_refused(other: ListElementIndexDetails) -> None:
    assert refused(index(DETAILS, other)).reason == "its segments have different keys"


def test_segments_on_different_columns_are_refused() -> None:
    both = index(DETAILS, DETAILS)
    other = replace(both.segments[1], field_ids=(0,))
    error = refused(replace(both, segments=(both.segments[0], other)))
    assert error.reason == "its segments are not on one and the same column"
