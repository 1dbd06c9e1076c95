"""Protobuf messages described in code, a table of fields for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

_Field = descriptor_pb2.FieldDescriptorProto

_SCALARS: Final[Mapping[str, Any]] = {
    "bool": _Field.TYPE_BOOL,
    "bytes": _Field.TYPE_BYTES,
    "fixed64": _Field.TYPE_FIXED64,
    "int32": _Field.TYPE_INT32,
    "int64": _Field.TYPE_INT64,
    "string": _Field.TYPE_STRING,
    "uint32": _Field.TYPE_UINT32,
    "uint64": _Field.TYPE_UINT64,
}


class MessageSet:
    """Messages that refer to each other by name.

    `messages` maps each message to its fields, and each field to its number and type: a
    scalar's or a message's name, with "?" where presence counts and "*" where it repeats.
    The descriptors live in a pool of their own, so that they never meet another package's
    copy of the same messages.
    """

    def __init__(self, package: str, messages: Mapping[str, Mapping[str, tuple[int, str]]]) -> None:
        pool = descriptor_pool.DescriptorPool()
        pool.Add(_file_descriptor(package, messages))
        self._classes = {
            name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}"))
            for name in messages
        }

    def parse(self, message_name: str, data: bytes) -> Any:
        """The message in `data`; raises `ValueError` where it is not one.

        Typed as `Any`: its attributes are the fields of that message.
        """
        try:
            return self._classes[message_name].FromString(data)
        except DecodeError as error:
            raise ValueError(f"no {message_name} message") from error

    def serialize(self, message_name: str, **fields: Any) -> bytes:
        """The bytes of a message; the same fields always give the same bytes."""
        return self._classes[message_name](**fields).SerializeToString(deterministic=True)


def unknown_fields(message: Message) -> tuple[int, ...]:
    """The numbers of the fields, of the message and of those in it, that its table lacks."""
    found = [field.field_number for field in UnknownFieldSet(message)]
    for _, value in message.ListFields():
        if isinstance(value, Message):
            found += unknown_fields(value)
    return tuple(sorted(found))


def _file_descriptor(
    package: str, messages: Mapping[str, Mapping[str, tuple[int, str]]]
) -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(
        name=f"{package.replace('.', '/')}.proto", package=package, syntax="proto3"
    )
    for message_name, fields in messages.items():
        message = file.message_type.add(name=message_name)
        for field_name, (number, kind) in fields.items():
            field = message.field.add(name=field_name, number=number)
            base = kind.rstrip("?*")
            field.label = _Field.LABEL_REPEATED if kind.endswith("*") else _Field.LABEL_OPTIONAL
            if base in _SCALARS:
                field.type = _SCALARS[base]
            else:
                field.type = _Field.TYPE_MESSAGE
                field.type_name = f".{package}.{base}"
            if kind.endswith("?"):
                # proto3 tells an absent scalar from a zero by a oneof of its own.
                field.proto3_optional = True
                field.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{field_name}")
    return file
