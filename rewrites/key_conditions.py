"""What a predicate compares a key with, as conditions on the key's own type.

DataFusion compares in a common type, to which it casts the *key* where the literal's type is
the wider one: `CAST(confidence AS Float64) > 0.9`. An index holds keys in their own type, so
the literal is taken back to it: each condition here finds exactly the keys for which
DataFusion's comparison of the cast key is TRUE. A literal that no key can equal finds nothing.

Every function takes `casts`, the types that the key is cast to, from the innermost on, and a
literal of the last of them (of the key's type where there is none). It gives None where the
casts are not known to be monotone, such as those from numbers to text. It gives None, too,
where a cast raises on some value of the key's type (a Date32 key as Timestamp(ns), before
1677 or after 2262), since a search does not evaluate it on the rows that it does not find.
With `partial` those casts are bound as well, to exactly the keys on which none of them raises
and the comparison is TRUE. DataFusion's own optimizer drops such casts in the same way:
`CAST(k AS SMALLINT) = 5` becomes `k = 5`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import isnan
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..indexes.errors import InvalidArgumentError
from ..indexes.list_element.key_encoding import Blocks, FixedWidth, KeyCodec
from ..indexes.list_element.key_range import ENUMERATION_LIMIT, Between, In
from .monotone_casts import MonotoneCast, monotone_cast, preimage, succeeds
from .ordinals import Ordinals, ordinal_of, ordinal_range, ordinals_of, values_at

OPERATORS: Final = ("<", "<=", ">", ">=")
"""The comparisons that are ranges."""

_ZEROS: Final = (-1, 0)
"""The ordinals of -0.0 and 0.0, which are equal."""

_LISTED: Final = 256
"""How many keys that equal one literal are listed where a range would do: unlike a range,
listed keys may come first in an index, and others after them."""


def equal_to(
    codec: KeyCodec, casts: Sequence[pa.DataType], values: pa.Array, *, partial: bool = False
) -> In | Between | None:
    """The keys that equal one of `values` after `casts`: a range where many equal one value.

    -0.0 and 0.0 are equal, at any number of values. A NaN equals the NaN of the same bits;
    None for NaN after a cast. Also None where the keys are several ranges that are too many
    keys to list. Raises `ValueError` for a NULL among the values.

    >>> from ..indexes.list_element.key_encoding import key_codec
    >>> equal_to(key_codec("int8"), [pa.int64()], pa.array([1, 300])).describe("k")
    'k = 1'
    """
    if values.null_count:
        raise ValueError("IN with a NULL is not answered from the keys")
    if isinstance(codec, Blocks):
        if not _same_bytes(codec, casts, values.type):
            return None
        return In(codec, In.of(_stored(codec, values.type), values).encoded)
    if not casts and values.type == codec.arrow_type:
        return In.of(codec, values)
    assert isinstance(codec, FixedWidth)
    steps = _bound(codec, casts, values.type, partial)
    if steps is None or (steps and _any_nan(values)):
        return None
    least, greatest = preimage(steps, *_equals(values))
    kept = least <= greatest
    return _keys(codec, least[kept], greatest[kept])


def compared_with(
    codec: KeyCodec,
    casts: Sequence[pa.DataType],
    operator: str,
    value: pa.Scalar,
    *,
    partial: bool = False,
) -> Between | None:
    """The keys for which `key operator value` is TRUE after `casts`; `operator` of `OPERATORS`.

    NaN is above every number, or below where its sign bit is set; None for NaN after a cast.
    Raises `ValueError` for NULL, and `InvalidArgumentError` for another operator.

    >>> from ..indexes.list_element.key_encoding import key_codec
    >>> compared_with(key_codec("float"), [pa.float64()], ">", pa.scalar(0.9)).describe("k")
    'k > 0.9'
    >>> compared_with(key_codec("int32"), [pa.float64()], "<", pa.scalar(2.5)).describe("k")
    'k < 3'
    """
    if operator not in OPERATORS:
        raise InvalidArgumentError("operator", operator, ", ".join(OPERATORS))
    if not value.is_valid:
        raise ValueError("a range with a NULL is not answered from the keys")
    if isinstance(codec, Blocks):
        if not _same_bytes(codec, casts, value.type):
            return None
        raw = _range_of(_stored(codec, value.type), operator, value)
        return Between(codec, raw.low, raw.high)
    assert isinstance(codec, FixedWidth)
    steps = _bound(codec, casts, value.type, partial)
    image = ordinal_range(value.type)
    if steps is None or image is None or (steps and _is_nan(value)):
        return None
    first = last = ordinal_of(value)
    if pa.types.is_floating(value.type) and first in _ZEROS:
        first, last = _ZEROS
    least, greatest = {
        "<": (image[0], first - 1),
        "<=": (image[0], last),
        ">": (last + 1, image[1]),
        ">=": (first, image[1]),
    }[operator]
    if not steps:
        return _between(codec, least, greatest, open_ends="=" not in operator)
    ends = (np.array([end], dtype=object) for end in (least, greatest))
    (low,), (high,) = preimage(steps, *ends)
    return _between(codec, low, high, open_ends="=" not in operator)


def starting_with(codec: KeyCodec, prefix: str | bytes) -> Between | None:
    """The keys of text, or the binary keys, that begin with `prefix`; every key with an empty one.

    None for keys of another type. Binary keys do not begin with text: DataFusion casts them to
    text first, and raises where they are none.

    >>> from ..indexes.list_element.key_encoding import key_codec
    >>> starting_with(key_codec("string"), "ca").describe("k")
    "k >= 'ca' AND k < 'cb'"
    """
    if not isinstance(codec, Blocks):
        return None
    if isinstance(prefix, bytes):
        return Between.starting_with(codec, prefix)
    return Between.starting_with(codec, prefix.encode()) if _is_text(codec.arrow_type) else None


# -- keys of text and binary keys ---------------------------------------------------------


def _same_bytes(codec: Blocks, casts: Sequence[pa.DataType], literal: pa.DataType) -> bool:
    """Whether the casts keep every key's bytes, by which text and binary values compare.

    Text is cast to binary as it is; binary values that are no UTF-8 cannot become text.
    """
    text = _is_text(codec.arrow_type)
    kinds = [*casts, literal]
    if not all(_is_binary(kind) or (text and _is_text(kind)) for kind in kinds):
        return False
    return _is_text(kinds[-1]) == _is_text([codec.arrow_type, *casts][-1])


def _stored(codec: Blocks, literal: pa.DataType) -> KeyCodec:
    """A codec that encodes the literals as `codec` encodes keys."""
    text = _is_text(literal)
    return Blocks(codec.logical_type, pa.string() if text else pa.binary())


def _is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def _is_binary(kind: pa.DataType) -> bool:
    return kind in (pa.binary(), pa.large_binary(), pa.binary_view())


# -- keys of a fixed width ----------------------------------------------------------------


def _bound(
    codec: KeyCodec, casts: Sequence[pa.DataType], literal: pa.DataType, partial: bool
) -> list[MonotoneCast] | None:
    """The casts from the key's type to the literal's; None where one cannot be bound."""
    kinds = [codec.arrow_type, *casts]
    if not _comparable(kinds[-1], literal):
        return None
    steps: list[MonotoneCast] = []
    for source, target in pairwise(kinds):
        if source == target:
            continue
        step = monotone_cast(source, target)
        if step is None or not (partial or succeeds(step, source)):
            return None
        steps.append(step)
    return steps


def _comparable(kind: pa.DataType, literal: pa.DataType) -> bool:
    """Whether values of the types compare by their ordinals: instants in any two zones do."""
    if kind == literal:
        return True
    if not (pa.types.is_timestamp(kind) and pa.types.is_timestamp(literal)):
        return False
    return kind.unit == literal.unit and None not in (kind.tz, literal.tz)


def _any_nan(values: pa.Array) -> bool:
    return pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py()


def _is_nan(value: pa.Scalar) -> bool:
    return pa.types.is_floating(value.type) and isnan(value.as_py())


def _equals(values: pa.Array) -> tuple[Ordinals, Ordinals]:
    """The least and the greatest ordinal of what equals each value: -0.0 equals 0.0."""
    ordinals = ordinals_of(values)
    if not pa.types.is_floating(values.type):
        return ordinals, ordinals
    least, greatest = _ZEROS
    zero = (ordinals == least) | (ordinals == greatest)
    return np.where(zero, least, ordinals), np.where(zero, greatest, ordinals)


def _keys(codec: FixedWidth, least: Ordinals, greatest: Ordinals) -> In | Between | None:
    """The keys with ordinals from each `least` to `greatest`, listed where they are few."""
    counts = greatest - least + 1
    count = int(counts.sum())
    if count > len(least) + _LISTED:
        order = np.argsort(least)
        beside = least[order][1:] <= greatest[order][:-1] + 1
        if beside.all():
            return _between(codec, int(least.min()), int(greatest.max()), open_ends=False)
    if count > ENUMERATION_LIMIT:
        return None
    if count > len(least):
        lengths = counts.astype(np.int64)
        before = np.repeat(np.cumsum(lengths) - lengths, lengths)
        least = np.repeat(least, lengths) + (np.arange(count) - before)
    return In.of(codec, values_at(least, codec.arrow_type))


def _between(codec: FixedWidth, low: int, high: int, *, open_ends: bool) -> Between:
    """The keys with the ordinals `low` to `high`; `open_ends` says how they are named.

    An end is left out where every key is on its inner side.
    """
    known = ordinal_range(codec.arrow_type)
    assert known is not None
    first, last = known
    if low > high:
        least = codec.at_rank(0)
        return Between.encoded(codec, least, least, low_closed=True, high_closed=False)
    beyond = 1 if open_ends else 0
    return Between.encoded(
        codec,
        codec.at_rank(low - beyond - first) if low > first else None,
        codec.at_rank(high + beyond - first) if high < last else None,
        low_closed=not open_ends,
        high_closed=not open_ends,
    )


def _range_of(codec: KeyCodec, operator: str, value: pa.Scalar) -> Between:
    closed = operator.endswith("=")
    if operator.startswith("<"):
        return Between.of(codec, high=value, high_closed=closed)
    return Between.of(codec, low=value, low_closed=closed)
