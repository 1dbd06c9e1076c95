"""Lists, structs and maps as bytes that compare like the values they stand for.

Arrow has no kernels that compare nested values; DataFusion compares them element by element,
child by child, NULL before every value, a shorter list before a longer one that it begins, and
floats by their bits' order (so that, unlike at top level, -0.0 is below 0.0). Here each value
becomes a byte string with that order, built for whole arrays at once:

| value | bytes |
| --- | --- |
| NULL | `00` |
| any other | `01`, then its payload |
| fixed-width number, time, decimal, boolean | big-endian, sign bit flipped |
| text, binary | each `00` as `00 ff`, then `00 00` |
| list, map | `01` and the element, for each element; then `00` |
| struct | the children |
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def order_preserving_bytes(values: pa.Array) -> pa.LargeBinaryArray:
    """One byte string for each value, none of them null, in the values' order."""
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if isinstance(values, pa.DictionaryArray):
        values = values.dictionary_decode()
    if pa.types.is_null(values.type):
        return _repeated(b"\x00", len(values))
    present = _joined(_repeated(b"\x01", len(values)), _payload(values))
    return pc.if_else(pc.is_valid(values), present, pa.scalar(b"\x00", pa.large_binary()))


def _payload(values: pa.Array) -> pa.LargeBinaryArray:
    kind = values.type
    if pa.types.is_struct(kind):
        # flatten() makes the children of a null struct null, which field() does not.
        children = [order_preserving_bytes(child) for child in values.flatten()]
        return _joined(*children) if children else _repeated(b"", len(values))
    if pa.types.is_fixed_size_list(kind):
        elements = pc.if_else(pc.is_valid(values), kind.list_size, 0)
        return _lists(np.asarray(elements), values.flatten())
    if pa.types.is_nested(kind):
        lists = _as_list(values)
        lengths = lists.value_lengths().fill_null(0)
        return _lists(np.asarray(lengths), lists.flatten())
    if _is_bytes(kind):
        escaped = pc.replace_substring(values.cast(pa.large_binary()), b"\x00", b"\x00\xff")
        return _joined(_not_null(escaped), _repeated(b"\x00\x00", len(values)))
    return _fixed_width(values)


def _as_list(values: pa.Array) -> pa.Array:
    if not pa.types.is_map(values.type):
        return values
    entries = pa.struct([values.type.key_field, values.type.item_field])
    return values.cast(pa.list_(pa.field("entries", entries, nullable=False)))


def _is_bytes(kind: pa.DataType) -> bool:
    # Both views and large types; fixed-size binary as well, it only costs two more bytes.
    return (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def _lists(lengths: np.ndarray, elements: pa.Array) -> pa.LargeBinaryArray:
    """The lists' payloads; `elements` are those of all lists, one list after the other."""
    marked = _joined(_repeated(b"\x01", len(elements)), order_preserving_bytes(elements))
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    byte_offsets = np.frombuffer(marked.buffers()[1], np.int64)
    offset = marked.offset
    list_offsets = byte_offsets[offset : offset + len(marked) + 1][starts]
    joined = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(lengths), [None, pa.py_buffer(list_offsets), marked.buffers()[2]]
    )
    return _joined(joined, _repeated(b"\x00", len(lengths)))


def _fixed_width(values: pa.Array) -> pa.LargeBinaryArray:
    kind = values.type
    if pa.types.is_boolean(kind):
        values, kind = values.cast(pa.uint8()), pa.uint8()
    width = kind.bit_width // 8
    data = values.buffers()[1]
    if data is None or len(values) == 0:
        return _repeated(b"\x00" * width, len(values))
    first = values.offset * width
    raw = np.frombuffer(data, np.uint8)[first : first + len(values) * width]
    big_endian = raw.reshape(len(values), width)[:, ::-1].copy()
    if pa.types.is_floating(kind):
        negative = big_endian[:, 0] >= 0x80
        big_endian[negative] ^= 0xFF
        big_endian[~negative, 0] ^= 0x80
    elif not pa.types.is_unsigned_integer(kind):
        big_endian[:, 0] ^= 0x80
    offsets = np.arange(len(values) + 1, dtype=np.int64) * width
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(big_endian)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(values), buffers)


def _repeated(value: bytes, count: int) -> pa.LargeBinaryArray:
    return pa.repeat(pa.scalar(value, pa.large_binary()), count)


def _not_null(values: pa.Array) -> pa.Array:
    return values.fill_null(b"")


def _joined(*parts: pa.Array) -> pa.LargeBinaryArray:
    separator = pa.scalar(b"", pa.large_binary())
    return pc.binary_join_element_wise(*parts, separator)
