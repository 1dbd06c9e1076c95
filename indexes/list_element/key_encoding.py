"""Key Encoding: LIST_ELEMENT_KEY_ENCODING_ARROW_ROW_V1.

A tuple is the encodings of its keys, one after the other. Byte order is tuple order, NULL
before every value, and no key's encoding is the beginning of another's, so that all tuples
with the same first keys stand together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

AFTER: Final = b"\xff"
"""Appended to encoded keys it gives a byte string after every tuple that begins with them,
and before every other tuple after those: the next key would begin with 0, 1 or 2."""

_NULL: Final = 0
_VALUE: Final = 1
_EMPTY: Final = 1
_BLOCKS: Final = 2

_SHORT: Final = 8
"""Bytes in each of a value's first blocks."""
_SHORT_BLOCKS: Final = 4
_LONG: Final = 32
"""Bytes in each later block."""
_SHORT_BYTES: Final = _SHORT * _SHORT_BLOCKS
_MORE: Final = 0xFF
"""Follows a block that is not the last."""

_WORD: Final = 8
_KEEP: Final = np.array([(1 << (8 * n)) - 1 for n in range(_WORD + 1)], dtype=np.uint64)
"""Masks that keep the first n bytes of a little-endian word."""

# Where that many values repeat each other, each is encoded once and looked up.
_FEW: Final = 4
_SAMPLE: Final = 2048
_DISTINCT_IN_SAMPLE: Final = 1024

Bytes: TypeAlias = npt.NDArray[np.uint8]
Positions: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class KeyCodec(ABC):
    """How the values of one logical type are encoded.

    `arrow_type` is the type of the values; those of a string or binary type may come as
    its large or view variant, too.
    """

    logical_type: str
    arrow_type: pa.DataType

    @property
    @abstractmethod
    def null(self) -> bytes:
        """The encoding of NULL."""

    @abstractmethod
    def encode(self, values: pa.Array) -> pa.BinaryArray:
        """The encoding of each value; never NULL.

        Raises `TypeError` where the values are of another type.
        """

    @abstractmethod
    def decode(self, data: bytes, at: int) -> tuple[pa.Scalar, int]:
        """The value encoded at `at`, and where the next key begins.

        Raises `ValueError` for bytes that no value has as its encoding.
        """

    def _check(self, values: pa.Array) -> None:
        if values.type != self.arrow_type:
            raise TypeError(f"values of type {values.type} for a {self.logical_type} key")


@dataclass(frozen=True)
class FixedWidth(KeyCodec):
    """A byte 1 and the value's `width` bytes, or that many zeros and one for NULL."""

    width: int

    @property
    def null(self) -> bytes:
        return bytes(1 + self.width)

    @property
    def floating(self) -> bool:
        """Whether the values are floats, of which two are zero."""
        return pa.types.is_floating(self.arrow_type)

    def at_rank(self, rank: int) -> bytes:
        """The encoding of the value that so many values of the type are before: it is that number.

        A float has its rank in the total order, -0.0 right before 0.0.
        """
        return bytes((_VALUE,)) + rank.to_bytes(self.width, "big")

    @cached_property
    def zeros(self) -> tuple[bytes, ...]:
        """The encodings of -0.0 and 0.0, which are equal; none for values that are no floats."""
        if not self.floating:
            return ()
        return tuple(self.encode(pa.array([-0.0, 0.0], self.arrow_type)).to_pylist())

    @cached_property
    def _unsigned(self) -> np.dtype[Any]:
        return np.dtype(f"u{self.width}")

    def encode(self, values: pa.Array) -> pa.BinaryArray:
        return _rows_as_binary(self.encode_rows(values))

    def encode_rows(self, values: pa.Array) -> Bytes:
        """The encodings as the rows of a matrix, 1 + `width` bytes each."""
        self._check(values)
        rows = np.zeros((len(values), 1 + self.width), dtype=np.uint8)
        ordered = self._ordered(self._bits(values))
        rows[:, 1:] = (
            ordered.astype(self._unsigned.newbyteorder(">")).view(np.uint8).reshape(-1, self.width)
        )
        rows[:, 0] = _VALUE
        if values.null_count:
            rows[_nulls(values)] = _NULL
        return rows

    def _bits(self, values: pa.Array) -> npt.NDArray[Any]:
        if pa.types.is_boolean(values.type):
            return values.cast(pa.uint8()).fill_null(0).to_numpy()
        # Taken as integers before anything else: no NaN may change its bits.
        integers = values.view(pa.from_numpy_dtype(self._unsigned))
        return (integers.fill_null(0) if integers.null_count else integers).to_numpy()

    def _ordered(self, bits: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The bits as unsigned integers in the order of the values; see `_plain`."""
        kind = self._unsigned.type
        if self._is_unsigned:
            return bits
        sign = kind(1 << (8 * self.width - 1))
        if not self.floating:
            return bits ^ sign
        return np.where(bits & sign, ~bits, bits ^ sign)

    def _plain(self, ordered: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The inverse of `_ordered`."""
        kind = self._unsigned.type
        if self._is_unsigned:
            return ordered
        sign = kind(1 << (8 * self.width - 1))
        if not self.floating:
            return ordered ^ sign
        return np.where(ordered & sign, ordered ^ sign, ~ordered)

    @property
    def _is_unsigned(self) -> bool:
        return pa.types.is_boolean(self.arrow_type) or pa.types.is_unsigned_integer(self.arrow_type)

    def decode(self, data: bytes, at: int) -> tuple[pa.Scalar, int]:
        end = at + 1 + self.width
        encoded = data[at:end]
        if len(encoded) != 1 + self.width or encoded[0] > _VALUE:
            raise ValueError(f"no {self.logical_type} key at byte {at}")
        if encoded[0] == _NULL:
            if any(encoded):
                raise ValueError(f"a NULL key with a value at byte {at}")
            return pa.scalar(None, self.arrow_type), end
        ordered = np.frombuffer(encoded, self._unsigned.newbyteorder(">"), offset=1)
        plain = np.atleast_1d(self._plain(ordered.astype(self._unsigned)))
        if pa.types.is_boolean(self.arrow_type):
            if plain[0] > 1:
                raise ValueError(f"a boolean key that is neither 0 nor 1 at byte {at}")
            return pa.scalar(bool(plain[0])), end
        return pa.array(plain).view(self.arrow_type)[0], end


@dataclass(frozen=True)
class Blocks(KeyCodec):
    """The bytes of a string or binary value in blocks, each followed by a length."""

    @property
    def null(self) -> bytes:
        return bytes((_NULL,))

    def _check(self, values: pa.Array) -> None:
        text = pa.types.is_string(self.arrow_type) or pa.types.is_large_string(self.arrow_type)
        takes = _TEXT if text else _BINARY
        if values.type not in takes:
            raise TypeError(f"values of type {values.type} for a {self.logical_type} key")

    def encode(self, values: pa.Array) -> pa.BinaryArray:
        self._check(values)
        if pa.types.is_string_view(values.type):
            values = values.cast(pa.large_string())
        elif pa.types.is_binary_view(values.type):
            values = values.cast(pa.large_binary())
        if len(values) <= _FEW:
            plain = values.cast(pa.binary()).to_pylist()
            return pa.array([self._one(value) for value in plain], pa.binary())
        if len(values) > _SAMPLE:
            sample = values.slice(len(values) // 2, _SAMPLE)
            if len(sample.unique()) <= _DISTINCT_IN_SAMPLE:
                coded = values.dictionary_encode(null_encoding="encode")
                return _blocks_of(coded.dictionary).take(coded.indices)
        return _blocks_of(values)

    def _one(self, value: bytes | None) -> bytes:
        """The encoding of one value, where an array of them would not pay."""
        if value is None:
            return self.null
        parts = [bytes((_BLOCKS if value else _EMPTY,))]
        at = 0
        while at < len(value):
            size = _SHORT if at < _SHORT_BYTES else _LONG
            block, at = value[at : at + size], at + size
            parts += [block.ljust(size, b"\0"), bytes((_MORE if at < len(value) else len(block),))]
        return b"".join(parts)

    def decode(self, data: bytes, at: int) -> tuple[pa.Scalar, int]:
        kind = data[at] if at < len(data) else None
        at += 1
        if kind == _NULL:
            return pa.scalar(None, self.arrow_type), at
        parts: list[bytes] = []
        while kind == _BLOCKS:
            size = _SHORT if len(parts) < _SHORT_BLOCKS else _LONG
            length = data[at + size] if at + size < len(data) else 0
            whole = length == _MORE
            if not whole and not 0 < length <= size:
                raise ValueError(f"a block of no known length at byte {at}")
            if not whole and any(data[at + length : at + size]):
                raise ValueError(f"a block padded with other bytes than 0 at byte {at}")
            parts.append(data[at : at + (size if whole else length)])
            at += size + 1
            if not whole:
                break
        else:
            if kind != _EMPTY:
                raise ValueError(f"no {self.logical_type} key at byte {at - 1}")
        value = b"".join(parts)
        return pa.scalar(value, pa.binary()).cast(self.arrow_type), at


_TEXT: Final = (pa.string(), pa.large_string(), pa.string_view())
_BINARY: Final = (pa.binary(), pa.large_binary(), pa.binary_view())

_CODECS: Final[tuple[KeyCodec, ...]] = (
    FixedWidth("bool", pa.bool_(), 1),
    FixedWidth("int8", pa.int8(), 1),
    FixedWidth("int16", pa.int16(), 2),
    FixedWidth("int32", pa.int32(), 4),
    FixedWidth("int64", pa.int64(), 8),
    FixedWidth("uint8", pa.uint8(), 1),
    FixedWidth("uint16", pa.uint16(), 2),
    FixedWidth("uint32", pa.uint32(), 4),
    FixedWidth("uint64", pa.uint64(), 8),
    FixedWidth("float", pa.float32(), 4),
    FixedWidth("double", pa.float64(), 8),
    FixedWidth("date32:day", pa.date32(), 4),
    FixedWidth("date64:ms", pa.date64(), 8),
    Blocks("string", pa.string()),
    Blocks("large_string", pa.large_string()),
    Blocks("binary", pa.binary()),
    Blocks("large_binary", pa.large_binary()),
)
_UNITS: Final = ("s", "ms", "us", "ns")
_NO_ZONE: Final = "-"

LOGICAL_TYPES: Final = (
    *(codec.logical_type for codec in _CODECS),
    "timestamp of any unit and zone",
)
"""The logical types that have an encoding, as errors name them."""


def key_codec(logical_type: str) -> KeyCodec | None:
    """The codec of a Lance logical type, None where it has no encoding."""
    for codec in _CODECS:
        if codec.logical_type == logical_type:
            return codec
    kind, _, rest = logical_type.partition(":")
    unit, _, zone = rest.partition(":")
    if kind != "timestamp" or unit not in _UNITS or not zone:
        return None
    return FixedWidth(logical_type, pa.timestamp(unit, None if zone == _NO_ZONE else zone), 8)


def encode_tuples(codecs: Sequence[KeyCodec], columns: Sequence[pa.Array]) -> pa.BinaryArray:
    """The encoded tuple of each row of `columns`, one column for each key; never NULL.

    Raises `TypeError` where a column is of another type than its key, and
    `pyarrow.ArrowException` where the encodings together have 2 GiB or more.
    """
    pieces: list[pa.BinaryArray] = []
    for fixed, group in groupby(
        zip(codecs, columns, strict=True), key=lambda pair: isinstance(pair[0], FixedWidth)
    ):
        pairs = list(group)
        if fixed:
            rows = [c.encode_rows(v) for c, v in pairs if isinstance(c, FixedWidth)]
            pieces.append(_rows_as_binary(np.hstack(rows)))
        else:
            pieces.extend(codec.encode(values) for codec, values in pairs)
    return join(pieces)


def join(pieces: Sequence[pa.BinaryArray]) -> pa.BinaryArray:
    """The binary values of `pieces`, of one length, joined row by row."""
    if len(pieces) == 1:
        return pieces[0]
    return pc.binary_join_element_wise(*pieces, b"")


def decode_tuple(codecs: Iterable[KeyCodec], encoded: bytes) -> tuple[pa.Scalar, ...]:
    """The values of one encoded tuple, for inspection.

    Raises `ValueError` where `encoded` is not the encoding of exactly such a tuple.
    """
    values: list[pa.Scalar] = []
    at = 0
    for codec in codecs:
        value, at = codec.decode(encoded, at)
        values.append(value)
    if at != len(encoded):
        raise ValueError(f"{len(encoded) - at} bytes after the last key")
    return tuple(values)


def _rows_as_binary(rows: Bytes) -> pa.BinaryArray:
    """Each row of a matrix as a binary value."""
    count, width = rows.shape
    if count * width > np.iinfo(np.int32).max:
        raise pa.ArrowCapacityError(f"{count} encoded tuples of {width} bytes are too many")
    return _binary(np.arange(count + 1, dtype=np.int32) * np.int32(width), rows)


def _binary(offsets: npt.NDArray[np.int32], data: Bytes) -> pa.BinaryArray:
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.BinaryArray.from_buffers(pa.binary(), len(offsets) - 1, buffers)


def _nulls(values: pa.Array) -> npt.NDArray[np.bool_]:
    return values.is_null().to_numpy(zero_copy_only=False)


def _blocks_of(values: pa.Array) -> pa.BinaryArray:
    """The block encoding of string or binary values."""
    starts, lengths, data = _layout(values)
    short_blocks = np.minimum((lengths + (_SHORT - 1)) // _SHORT, _SHORT_BLOCKS)
    long_blocks = (np.maximum(lengths - _SHORT_BYTES, 0) + (_LONG - 1)) // _LONG
    offsets = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(1 + (_SHORT + 1) * short_blocks + (_LONG + 1) * long_blocks, out=offsets[1:])
    if offsets[-1] > np.iinfo(np.int32).max:
        raise pa.ArrowCapacityError(f"{offsets[-1]} bytes of encoded keys are too many")
    # With a word to spare, so that every word that is looked at is inside.
    out = np.zeros(int(offsets[-1]) + _WORD, dtype=np.uint8)
    first = offsets[:-1]
    out[first] = np.where(lengths > 0, _BLOCKS, _EMPTY).astype(np.uint8)
    if values.null_count:
        out[first[_nulls(values)]] = _NULL
    rows = np.flatnonzero(lengths)
    begin, left, place = starts, lengths, first + 1
    if len(rows) < len(lengths):
        begin, left, place = begin[rows], left[rows], place[rows]
    for _ in range(_SHORT_BLOCKS):
        if not len(left):
            break
        _copy_blocks(data, begin, left, out, place, _SHORT)
        rows = np.flatnonzero(left > _SHORT)
        begin, left, place = begin[rows] + _SHORT, left[rows] - _SHORT, place[rows] + _SHORT + 1
    if len(left):
        # A value may have thousands of long blocks: all of them are copied at once.
        blocks = (left + (_LONG - 1)) // _LONG
        number = np.arange(blocks.sum()) - np.repeat(np.cumsum(blocks) - blocks, blocks)
        begin, left, place = (np.repeat(each, blocks) for each in (begin, left, place))
        _copy_blocks(
            data,
            begin + number * _LONG,
            left - number * _LONG,
            out,
            place + number * (_LONG + 1),
            _LONG,
        )
    return _binary(offsets.astype(np.int32), out)


def _layout(values: pa.Array) -> tuple[Positions, Positions, Bytes]:
    """Where each string or binary value starts, its length (0 for NULL), and the bytes.

    The bytes have a block of zeros after them.
    """
    wide = pa.types.is_large_string(values.type) or pa.types.is_large_binary(values.type)
    _, offset_buffer, data_buffer = values.buffers()
    offsets = np.zeros(1, dtype=np.int64)
    if len(values):
        every = np.frombuffer(offset_buffer, dtype=np.int64 if wide else np.int32)
        offsets = every[values.offset : values.offset + len(values) + 1].astype(np.int64)
    data = np.zeros(int(offsets[-1] - offsets[0]) + _LONG, dtype=np.uint8)
    if data_buffer is not None:
        used = np.frombuffer(data_buffer, dtype=np.uint8)[offsets[0] : offsets[-1]]
        data[: len(used)] = used
    lengths = np.diff(offsets)
    if values.null_count:
        lengths[_nulls(values)] = 0
    return offsets[:-1] - offsets[0], lengths, data


def _copy_blocks(
    data: Bytes, begin: Positions, left: Positions, out: Bytes, place: Positions, size: int
) -> None:
    """Copy a block of `size` bytes from each `begin` to each `place`, and its length after it.

    `left` is how much of the value is left there, 1 or more; the block ends in zeros where
    that is less than `size`.
    """
    # Eight bytes at a time, at any address: a view of all overlapping words of the bytes.
    words, targets = _words(data), _words(out)
    for at in range(0, size, _WORD):
        kept = np.clip(left - at, 0, _WORD)
        targets[place + at] = words[begin + at] & _KEEP[kept]
    out[place + size] = np.where(left > size, _MORE, left).astype(np.uint8)


def _words(data: Bytes) -> npt.NDArray[np.uint64]:
    return np.ndarray((len(data) - _WORD + 1,), dtype="<u8", buffer=data, strides=(1,))
