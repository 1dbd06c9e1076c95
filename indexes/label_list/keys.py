"""The posting keys of a label list: looked up by value, floats by their bits."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

# Beyond so many needles one pass over the keys is faster than a search for each needle.
_SEARCHED_ONE_BY_ONE: Final = 256

Ordered: TypeAlias = "npt.NDArray[np.uint64] | pa.LargeBinaryArray"
"""Values brought to a form in which equal bits are equal values and the order is Lance's:
unsigned integers for what has at most 64 bits, else byte strings."""


def ordered(values: pa.Array) -> Ordered:
    """`values`, which hold no NULL, in their ordered form.

    Integers, dates, times, timestamps and durations keep their order, floats take IEEE's
    total order (-NaN < -inf < -0.0 < 0.0 < inf < NaN, each NaN by its own bits), strings
    and binaries compare as bytes, decimals as numbers. Dictionaries are decoded. Raises
    `TypeError` for a nested type.
    """
    kind = values.type
    if pa.types.is_dictionary(kind):
        return ordered(values.dictionary_decode())
    if pa.types.is_null(kind):
        return np.empty(0, dtype=np.uint64)
    if pa.types.is_boolean(kind):
        return values.cast(pa.uint8()).to_numpy().astype(np.uint64)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return values.cast(pa.large_string()).cast(pa.large_binary())
    if pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind):
        return _fixed_width(values)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return values.cast(pa.large_binary())
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return values.cast(pa.large_binary())
    if pa.types.is_nested(kind) or kind.bit_width > 64:
        raise TypeError(f"{kind} is no type of labels")
    bits = _bits(values, np.dtype(f"u{kind.bit_width // 8}"))
    if pa.types.is_unsigned_integer(kind):
        return bits.astype(np.uint64)
    sign = np.uint64(1 << (kind.bit_width - 1))
    wide = bits.astype(np.uint64)
    if not pa.types.is_floating(kind):
        return wide ^ sign
    every = np.uint64((1 << kind.bit_width) - 1)
    return np.where(wide & sign, wide ^ every, wide | sign)


def bit_patterns(values: pa.Array) -> tuple[object, ...]:
    """`values` as hashable Python values, equal where the bits are equal."""
    form = ordered(values)
    return tuple(form.tolist() if isinstance(form, np.ndarray) else form.to_pylist())


def same_family(left: pa.DataType, right: pa.DataType) -> bool:
    """Whether values of both types have ordered forms that mean the same."""
    return _family(left) == _family(right)


def _family(kind: pa.DataType) -> object:
    if pa.types.is_dictionary(kind):
        return _family(kind.value_type)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "text"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return "binary"
    return kind


class PostingKeys:
    """The keys of one index file, of which each stands once, NULL perhaps too.

    Raises `ValueError` where a key stands twice.
    """

    __slots__ = ("_positions", "_values", "null_position", "size", "type")

    def __init__(self, keys: pa.Array) -> None:
        self.type = keys.type
        self.size = len(keys)
        nulls = np.flatnonzero(_is_null(keys))
        if len(nulls) > 1:
            raise ValueError("the key NULL stands twice")
        self.null_position: int | None = int(nulls[0]) if len(nulls) else None
        # Where each of the values stands in the file; None where they stand from 0 on.
        self._positions: npt.NDArray[np.int64] | None = None
        values = keys
        if self.null_position is not None:
            positions = np.delete(np.arange(len(keys), dtype=np.int64), nulls)
            self._positions = positions
            # Lance puts NULL first, and a slice is no copy.
            values = keys[1:] if self.null_position == 0 else keys.take(pa.array(positions))
        form = ordered(values)
        if not _ascends(form):
            form = self._sort(form)
        self._values = _Numbers(form) if isinstance(form, np.ndarray) else _ByteStrings(form)

    def _sort(self, form: Ordered) -> Ordered:
        if isinstance(form, np.ndarray):
            order = np.argsort(form, kind="stable")
            form = form[order]
        else:
            order = pc.sort_indices(form).to_numpy().astype(np.int64)
            form = form.take(pa.array(order))
        self._positions = order if self._positions is None else self._positions[order]
        if not _ascends(form):
            raise ValueError("a key stands twice")
        return form

    @property
    def nbytes(self) -> int:
        """The bytes that the keys take in memory."""
        positions = 0 if self._positions is None else self._positions.nbytes
        return self._values.nbytes + positions

    def positions(self, labels: pa.Array) -> npt.NDArray[np.int64]:
        """Where each label stands in the file; -1 for one that does not. No NULLs.

        Raises `TypeError` where the labels are of another type than the keys.
        """
        if not same_family(labels.type, self.type):
            raise TypeError(f"labels of type {labels.type} for keys of type {self.type}")
        found = self._values.positions(ordered(labels))
        if self._positions is None or len(self._positions) == 0:
            return found
        return np.where(found < 0, found, self._positions[found])


class _Numbers:
    """Ascending unsigned integers."""

    def __init__(self, values: npt.NDArray[np.uint64]) -> None:
        self._values = values

    @property
    def nbytes(self) -> int:
        return self._values.nbytes

    def positions(self, needles: Ordered) -> npt.NDArray[np.int64]:
        """Where each needle stands, -1 for none."""
        if len(self._values) == 0:
            return np.full(len(needles), -1, dtype=np.int64)
        wanted = np.asarray(needles, dtype=np.uint64)
        at = np.searchsorted(self._values, wanted)
        hit = self._values[np.minimum(at, len(self._values) - 1)] == wanted
        return np.where(hit, at, -1)


class _ByteStrings(Sequence[bytes]):
    """Ascending byte strings, read in place: a Python list of a million takes 60 ms to make."""

    def __init__(self, values: pa.LargeBinaryArray) -> None:
        self._array = values
        _, offsets, data = values.buffers()
        start = values.offset
        self._offsets = memoryview(offsets).cast("B").cast("q")[start : start + len(values) + 1]
        self._data = memoryview(data) if data is not None else memoryview(b"")

    @property
    def nbytes(self) -> int:
        return self._offsets.nbytes + len(self._data)

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, index: Any) -> Any:
        return bytes(self._data[self._offsets[index] : self._offsets[index + 1]])

    def positions(self, needles: Ordered) -> npt.NDArray[np.int64]:
        """Where each needle stands, -1 for none."""
        assert not isinstance(needles, np.ndarray)
        found = np.full(len(needles), -1, dtype=np.int64)
        if len(needles) > _SEARCHED_ONE_BY_ONE:
            # Each needle once: the search for keys among needles finds one of several equal ones.
            coded = needles.dictionary_encode()
            which = pc.index_in(self._array, value_set=coded.dictionary)
            hits = np.flatnonzero(~_is_null(which))
            of_distinct = np.full(len(coded.dictionary), -1, dtype=np.int64)
            of_distinct[which.take(pa.array(hits)).to_numpy()] = hits
            return of_distinct[coded.indices.to_numpy()]
        for needle, value in enumerate(needles.to_pylist()):
            at = bisect_left(self, value)
            if at < len(self) and self[at] == value:
                found[needle] = at
        return found


def _bits(values: pa.Array, unsigned: np.dtype[Any]) -> npt.NDArray[Any]:
    data = values.buffers()[1]
    if data is None or len(values) == 0:
        return np.empty(0, dtype=unsigned)
    return np.frombuffer(data, dtype=unsigned)[values.offset : values.offset + len(values)]


def _fixed_width(values: pa.Array) -> pa.LargeBinaryArray:
    """Decimals as big-endian bytes that order as numbers, fixed-size binaries as they are."""
    width = values.type.bit_width // 8
    data = values.buffers()[1]
    start, end = values.offset * width, (values.offset + len(values)) * width
    cells = np.frombuffer(data or b"", dtype=np.uint8)[start:end].reshape(len(values), width)
    if pa.types.is_decimal(values.type):
        cells = cells[:, ::-1].copy()
        cells[:, 0] ^= 0x80
    offsets = np.arange(len(values) + 1, dtype=np.int64) * width
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(cells))]
    return pa.Array.from_buffers(pa.large_binary(), len(values), buffers)


def _ascends(form: Ordered) -> bool:
    if len(form) < 2:
        return True
    if isinstance(form, np.ndarray):
        return bool(np.all(form[1:] > form[:-1]))
    return bool(pc.all(pc.greater(form[1:], form[:-1])).as_py())


def _is_null(values: pa.Array) -> npt.NDArray[np.bool_]:
    return values.is_null().to_numpy(zero_copy_only=False)
