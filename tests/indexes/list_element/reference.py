"""The specification's Key Encoding and Accelerated Queries once more, value by value.

Written from the text, with `struct`, and without anything of `datafusion_lance`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

FIXED: dict[str, tuple[str, int]] = {
    "int8": (">B", 8),
    "int16": (">H", 16),
    "int32": (">I", 32),
    "int64": (">Q", 64),
    "uint8": (">B", 0),
    "uint16": (">H", 0),
    "uint32": (">I", 0),
    "uint64": (">Q", 0),
    "date32:day": (">I", 32),
    "date64:ms": (">Q", 64),
    "timestamp:us:-": (">Q", 64),
}
FLOATS = {"float": (">f", ">I", 32), "double": (">d", ">Q", 64)}


def encode(kind: str, value: Any) -> bytes:
    """The encoding of one key; dates and timestamps are given as their stored integers."""
    if kind == "bool":
        return b"\0\0" if value is None else bytes((1, value))
    if kind in FIXED:
        form, bits = FIXED[kind]
        if value is None:
            return bytes(1 + struct.calcsize(form))
        # Two's complement with the top bit inverted is the value shifted up by half the range.
        return b"\1" + struct.pack(form, value + (1 << bits >> 1) if bits else value)
    if kind in FLOATS:
        as_float, as_int, bits = FLOATS[kind]
        if value is None:
            return bytes(1 + bits // 8)
        (pattern,) = struct.unpack(as_int, struct.pack(as_float, value))
        sign = 1 << (bits - 1)
        flipped = pattern ^ ((1 << bits) - 1) if pattern & sign else pattern ^ sign
        return b"\1" + struct.pack(as_int, flipped)
    if value is None:
        return b"\0"
    data = value.encode() if isinstance(value, str) else value
    if not data:
        return b"\1"
    out, sizes = b"\2", [8, 8, 8, 8]
    while data:
        size = sizes.pop() if sizes else 32
        block, data = data[:size], data[size:]
        out += block.ljust(size, b"\0") + bytes((0xFF if data else len(block),))
    return out


def encode_tuple(kinds: Sequence[str], values: Sequence[Any]) -> bytes:
    """The encodings of the keys, one after the other."""
    return b"".join(encode(kind, value) for kind, value in zip(kinds, values, strict=True))


def any_element(elements: list[Any] | None, predicate: Callable[[Any], bool | None]) -> bool | None:
    """TRUE, FALSE or NULL (None) for a row, from the predicate's value on each element."""
    if elements is None:
        return None
    values = [predicate(element) for element in elements]
    if True in values:
        return True
    return None if None in values else False


def conjunction(values: Sequence[bool | None]) -> bool | None:
    """AND in SQL's three-valued logic."""
    if False in values:
        return False
    return None if None in values else True
