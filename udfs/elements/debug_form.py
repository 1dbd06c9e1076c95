"""Types read from the form in which a plan's `repr` shows them.

The nodes inside a subquery are out of Python's reach, but `repr` prints them, and with them the
type of every lambda variable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ...indexes.type_names import DECIMALS, PLAIN_TYPES

_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[\w.+-]+|[][(){},:])')
_ESCAPE = re.compile(r"\\(?:u\{([0-9a-fA-F]+)\}|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "0": "\0"}


@dataclass(frozen=True, slots=True)
class Node:
    """`Name(argument, …)` or `Name { field: value, … }`."""

    name: str
    arguments: tuple[Any, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)


def quoted(text: str) -> str:
    """Text as a string literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def read_node(text: str, position: int) -> tuple[Any, int]:
    """What stands at a position of a plan's `repr`, and where it ends.

    >>> read_node('Some(Timestamp(Microsecond, Some("UTC")))', 0)[0].name
    'Some'
    """
    token, position = _next(text, position)
    if token.startswith('"'):
        return _ESCAPE.sub(_unescape, token[1:-1]), position
    if token == "[":
        return _sequence(text, position, "]")
    if token == "{":
        return _mapping(text, position)
    following, after = _next(text, position)
    if following == "(":
        arguments, position = _sequence(text, after, ")")
        return Node(token, tuple(arguments)), position
    if following == "{":
        fields, position = _mapping(text, after)
        return Node(token, fields=fields), position
    return Node(token), position


def _next(text: str, position: int) -> tuple[str, int]:
    match = _TOKEN.match(text, position)
    if match is None:
        raise ValueError(f"not the form of a plan: {text[position : position + 40]!r}")
    return match.group(1), match.end()


def _unescape(match: re.Match[str]) -> str:
    code, plain = match.groups()
    return chr(int(code, 16)) if code else _ESCAPED.get(plain, plain)


def _sequence(text: str, position: int, end: str) -> tuple[list[Any], int]:
    values: list[Any] = []
    while True:
        token, after = _next(text, position)
        if token == end:
            return values, after
        if token == ",":
            position = after
            continue
        value, position = read_node(text, position)
        values.append(value)


def _mapping(text: str, position: int) -> tuple[dict[str, Any], int]:
    values: dict[str, Any] = {}
    while True:
        token, after = _next(text, position)
        if token == "}":
            return values, after
        if token == ",":
            position = after
            continue
        key, position = read_node(text, position)
        _, position = _next(text, position)
        values[key.name if isinstance(key, Node) else key], position = read_node(text, position)


_UNITS = {"Second": "s", "Millisecond": "ms", "Microsecond": "us", "Nanosecond": "ns"}


def arrow_type(node: Node) -> pa.DataType:
    """The type that a node names. Raises ValueError for one that pyarrow does not have."""
    name, arguments = node.name, node.arguments
    if name in PLAIN_TYPES:
        return PLAIN_TYPES[name]
    match name:
        case "Struct":
            return pa.struct([arrow_field(child) for child in arguments[0]])
        case "List":
            return pa.list_(arrow_field(arguments[0]))
        case "LargeList":
            return pa.large_list(arrow_field(arguments[0]))
        case "ListView":
            return pa.list_view(arrow_field(arguments[0]))
        case "LargeListView":
            return pa.large_list_view(arrow_field(arguments[0]))
        case "FixedSizeList":
            return pa.list_(arrow_field(arguments[0]), int(arguments[1].name))
        case "Map":
            key, value = arrow_field(arguments[0]).type
            return pa.map_(key, value, keys_sorted=arguments[1].name == "true")
        case "Dictionary":
            return pa.dictionary(arrow_type(arguments[0]), arrow_type(arguments[1]))
        case "RunEndEncoded":
            return pa.run_end_encoded(
                arrow_field(arguments[0]).type, arrow_field(arguments[1]).type
            )
        case "Timestamp":
            zone = arguments[1].arguments[0] if arguments[1].arguments else None
            return pa.timestamp(_UNITS[arguments[0].name], zone)
        case "Duration":
            return pa.duration(_UNITS[arguments[0].name])
        case "Time32":
            return pa.time32(_UNITS[arguments[0].name])
        case "Time64":
            return pa.time64(_UNITS[arguments[0].name])
        case "FixedSizeBinary":
            return pa.binary(int(arguments[0].name))
        case "Interval" if arguments[0].name == "MonthDayNano":
            return pa.month_day_nano_interval()
        case "Decimal32" | "Decimal64" | "Decimal128" | "Decimal256":
            return DECIMALS[name](int(arguments[0].name), int(arguments[1].name))
    raise ValueError(f"{name} is no type of pyarrow")


def arrow_field(node: Node) -> pa.Field:
    """The field that a node shows; what is at its default is not shown."""
    fields = node.fields
    return pa.field(
        fields.get("name", "item"),
        arrow_type(fields["data_type"]),
        nullable="nullable" in fields and fields["nullable"].name == "true",
        metadata=fields.get("metadata"),
    )
