"""Accelerated Queries: which ranges of encoded tuples a predicate's conjuncts ask for.

A search fixes keys from the first on, with `=`, IN or IS NULL, and may put one range on the
next key. Each combination is one range of byte strings. Comparisons are DataFusion's, not
the encoding's: -0.0 equals 0.0. Every other value compares as it is encoded, NaN too, which
is above every number, or below where its sign bit is set.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from .key_encoding import AFTER, Blocks, FixedWidth, KeyCodec

ENUMERATION_LIMIT: Final = 65_536
"""How many ranges are enumerated for one search, unless told otherwise."""

_FIRST_VALUE: Final = b"\x01"
"""No value is encoded below it, and NULL is."""

_SHOWN: Final = 5


# -- conditions on one key ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class In:
    """`key = v` or `key IN (v, …)`: the encodings of the values, ascending, none twice.

    No values at all make a condition that is never TRUE, and UNKNOWN where the key is NULL.
    """

    codec: KeyCodec
    encoded: tuple[bytes, ...]

    @classmethod
    def of(cls, codec: KeyCodec, values: pa.Array) -> In:
        """The condition that the key is one of `values`, of the key's type and without NULL.

        A zero finds both zeros. Raises `TypeError` for values of another type, and
        `ValueError` for a NULL among them.
        """
        if values.null_count:
            raise ValueError("IN with a NULL is not answered from the keys")
        encoded = set(codec.encode(values).to_pylist())
        if not encoded.isdisjoint(zeros := _zeros(codec)):
            encoded.update(zeros)
        return cls(codec, tuple(sorted(encoded)))

    def describe(self, name: str) -> str:
        """As SQL: `label = 'car'`, `label IN ('car', 'dog')`."""
        zeros = _zeros(self.codec)
        shown = [e for e in self.encoded if not zeros or e != zeros[0]]
        values = [_literal(self.codec, e) for e in shown[:_SHOWN]]
        if len(shown) == 1:
            return f"{name} = {values[0]}"
        more = [f"… {len(shown) - _SHOWN} more"] if len(shown) > _SHOWN else []
        return f"{name} IN ({', '.join(values + more)})"


@dataclass(frozen=True, slots=True)
class IsNull:
    """`key IS NULL`, which is never UNKNOWN."""

    codec: KeyCodec

    @property
    def encoded(self) -> tuple[bytes, ...]:
        """The encoding of NULL."""
        return (self.codec.null,)

    def describe(self, name: str) -> str:
        """As SQL."""
        return f"{name} IS NULL"


@dataclass(frozen=True, slots=True)
class Between:
    """A range of a key's values: those whose encoding is from `low` on and before `high`."""

    codec: KeyCodec
    low: bytes
    high: bytes

    @classmethod
    def of(
        cls,
        codec: KeyCodec,
        low: pa.Scalar | None = None,
        high: pa.Scalar | None = None,
        *,
        low_closed: bool = True,
        high_closed: bool = True,
    ) -> Between:
        """`low <= key AND key <= high`, an open end where it is not closed, None for no end.

        Bounds are of the key's type and not NULL. `>= 0.0` begins with -0.0, and `< 0.0`
        ends before it. Raises as `In.of` does.
        """
        first, end = None, None
        if low is not None:
            least, greatest = _equals(codec, low)
            first = least if low_closed else greatest
        if high is not None:
            least, greatest = _equals(codec, high)
            end = greatest if high_closed else least
        return cls.encoded(codec, first, end, low_closed=low_closed, high_closed=high_closed)

    @classmethod
    def encoded(
        cls,
        codec: KeyCodec,
        low: bytes | None,
        high: bytes | None,
        *,
        low_closed: bool,
        high_closed: bool,
    ) -> Between:
        """The same between the encodings of the bounds."""
        first = _FIRST_VALUE if low is None else low if low_closed else low + AFTER
        end = AFTER if high is None else high + AFTER if high_closed else high
        return cls(codec, first, end)

    @classmethod
    def starting_with(cls, codec: KeyCodec, prefix: bytes) -> Between:
        """The strings or binary values whose bytes begin with `prefix`.

        Raises `TypeError` for a key of another type.
        """
        if not isinstance(codec, Blocks):
            raise TypeError(f"a {codec.logical_type} key does not begin with bytes")
        raw = Blocks(codec.logical_type, pa.binary())
        low = raw.encode(pa.array([prefix]))[0].as_py() if prefix else _FIRST_VALUE
        # The next byte string that does not begin with it: the last byte that can grow does.
        grown = prefix.rstrip(b"\xff")
        if not grown:
            return cls(codec, low, AFTER)
        beyond = grown[:-1] + bytes((grown[-1] + 1,))
        return cls(codec, low, raw.encode(pa.array([beyond]))[0].as_py())

    def __and__(self, other: Between) -> Between:
        """The values in both ranges of the same key."""
        return Between(self.codec, max(self.low, other.low), min(self.high, other.high))

    @property
    def empty(self) -> bool:
        """Whether no value can be in it."""
        return self.low >= self.high

    def keep(self, values: In) -> In:
        """Those of the values that are in the range."""
        kept = tuple(e for e in values.encoded if self.low <= e < self.high)
        return In(values.codec, kept)

    def describe(self, name: str) -> str:
        """As SQL: `confidence > 0.9`, `confidence >= 0.1 AND confidence < 0.2`."""
        ends: list[str] = []
        if self.low != _FIRST_VALUE:
            ends.append(f"{name} {self._end(self.low, '>', '>=')}")
        if self.high != AFTER:
            ends.append(f"{name} {self._end(self.high, '<=', '<')}")
        return " AND ".join(ends) or f"{name} IS NOT NULL"

    def _end(self, bound: bytes, beyond: str, at: str) -> str:
        try:
            return f"{at} {_literal(self.codec, bound)}"
        except ValueError:
            return f"{beyond} {_literal(self.codec, bound.removesuffix(AFTER))}"


Fixed: TypeAlias = In | IsNull


# -- ranges of encoded tuples -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TupleRanges:
    """Ranges of byte strings, each from `low[i]` on and before `high[i]`.

    They ascend, do not overlap, and none is empty.
    """

    low: tuple[bytes, ...]
    high: tuple[bytes, ...]

    def __len__(self) -> int:
        return len(self.low)

    @classmethod
    def of(cls, ranges: Iterable[tuple[bytes, bytes]]) -> TupleRanges:
        """The given ranges, which ascend and do not overlap; empty ones are left out."""
        kept = [(low, high) for low, high in ranges if low < high]
        return cls(tuple(low for low, _ in kept), tuple(high for _, high in kept))

    @classmethod
    def everything(cls) -> TupleRanges:
        """The range of every value that is not NULL."""
        return cls((b"",), (AFTER,))


@dataclass(frozen=True, slots=True)
class KeySearch:
    """Conditions on the first keys of a tuple: fixed ones, then at most one range."""

    fixed: tuple[Fixed, ...]
    between: Between | None = None

    def __post_init__(self) -> None:
        if not self.fixed:
            raise ValueError("a search fixes the first key")

    @property
    def range_count(self) -> int:
        """How many ranges `true_ranges` gives."""
        if self.between is not None and self.between.empty:
            return 0
        return prod(len(fixed.encoded) for fixed in self.fixed)

    @property
    def null_range_count(self) -> int:
        """How many ranges `null_ranges` gives: the null sets, each with the other keys' values."""
        possible = prod(len(fixed.encoded) + isinstance(fixed, In) for fixed in self.fixed)
        if self.between is not None:
            possible *= 1 + (not self.between.empty)
        return possible - self.range_count

    def within(self, limit: int = ENUMERATION_LIMIT) -> KeySearch | None:
        """The longest beginning of the search with at most `limit` ranges.

        A shorter one finds a superset. None where the first key alone has more values.
        """
        if self.range_count <= limit:
            return self
        for length in range(len(self.fixed) - 1, 0, -1):
            shorter = KeySearch(self.fixed[:length])
            if shorter.range_count <= limit:
                return shorter
        return None

    def true_ranges(self) -> TupleRanges:
        """The tuples on which every condition is TRUE."""
        prefixes = [b""]
        for fixed in self.fixed:
            prefixes = [prefix + encoded for prefix in prefixes for encoded in fixed.encoded]
        low, high = (b"", AFTER) if self.between is None else (self.between.low, self.between.high)
        return TupleRanges.of((prefix + low, prefix + high) for prefix in prefixes)

    def null_ranges(self) -> TupleRanges:
        """The tuples on which no condition is FALSE and at least one is UNKNOWN.

        Those are the tuples with NULL in one or more of the keys that IN or a range is on,
        and a match in all the others.
        """
        # Each prefix with whether a condition is UNKNOWN on it; NULL sorts before all values.
        prefixes = [(b"", False)]
        for fixed in self.fixed:
            matches = [(encoded, False) for encoded in fixed.encoded]
            if isinstance(fixed, In):
                matches.insert(0, (fixed.codec.null, True))
            prefixes = [
                (prefix + encoded, unknown or null)
                for prefix, unknown in prefixes
                for encoded, null in matches
            ]
        ends = [(b"", AFTER, False)]
        if self.between is not None:
            null_key = self.between.codec.null
            ends = [
                (null_key, null_key + AFTER, True),
                (self.between.low, self.between.high, False),
            ]
        return TupleRanges.of(
            (prefix + low, prefix + high)
            for prefix, unknown in prefixes
            for low, high, null in ends
            if unknown or null
        )

    def describe(self, names: Sequence[str]) -> str:
        """As SQL over the keys' current names: `label = 'car' AND confidence > 0.9`."""
        conditions = [*self.fixed, *([self.between] if self.between is not None else [])]
        return " AND ".join(
            condition.describe(name) for condition, name in zip(conditions, names, strict=False)
        )


def _zeros(codec: KeyCodec) -> tuple[bytes, ...]:
    """The encodings of -0.0 and 0.0, for a key of floats."""
    return codec.zeros if isinstance(codec, FixedWidth) else ()


def _equals(codec: KeyCodec, value: pa.Scalar) -> tuple[bytes, bytes]:
    """The least and the greatest encoding of what equals a value."""
    if not value.is_valid:
        raise ValueError("a range with a NULL is not answered from the keys")
    encoded: bytes = codec.encode(pa.array([value], value.type))[0].as_py()
    zeros = _zeros(codec)
    return (zeros[0], zeros[-1]) if encoded in zeros else (encoded, encoded)


def _literal(codec: KeyCodec, encoded: bytes) -> str:
    # The end of a prefix's range may be no UTF-8.
    plain_codec = Blocks(codec.logical_type, pa.binary()) if isinstance(codec, Blocks) else codec
    value, end = plain_codec.decode(encoded, 0)
    if end != len(encoded):
        raise ValueError("bytes after the value")
    plain = value.cast(pa.string()).as_py() if pa.types.is_temporal(value.type) else value.as_py()
    if isinstance(plain, bytes):
        if pa.types.is_binary(codec.arrow_type) or pa.types.is_large_binary(codec.arrow_type):
            return f"X'{plain.hex()}'"
        plain = plain.decode(errors="backslashreplace")
    if isinstance(plain, str):
        return "'" + plain.replace("'", "''") + "'"
    if pa.types.is_float32(value.type):
        return str(np.float32(plain))
    return str(plain).upper() if isinstance(plain, bool) else str(plain)
