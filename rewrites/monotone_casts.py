"""Casts that DataFusion puts around a key, where a greater value never becomes a lesser one.

Of such a cast it suffices to know the least value that is cast to at least a given one: the
values cast into an interval are an interval then. Everything is in ordinals (`ordinals`).
The casts are arrow-rs's: it raises where a value has no place in the target type.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .ordinals import Ordinals, float_order, ordinal_range

_TICKS: Final = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
"""How many of a unit a day has."""

_CALENDAR: Final = (-96_465_292, 95_026_236)
"""The first and the last day of chrono, arrow-rs's calendar, in days since 1970-01-01."""

_UTC: Final = ("UTC", "+00:00")


class MonotoneCast(ABC):
    """A non-decreasing cast, which succeeds from the ordinal `low` to the ordinal `high`."""

    low: int
    high: int

    @abstractmethod
    def reaching(self, ordinals: Ordinals) -> Ordinals:
        """The least ordinals that are cast to at least each of `ordinals`.

        They may be outside of `low` to `high`; above `high` where nothing is cast to as much.
        """


@dataclass(frozen=True, slots=True)
class Scaled(MonotoneCast):
    """To `factor` times as much: to a finer unit, a greater scale, or (1) another width."""

    low: int
    high: int
    factor: int

    def reaching(self, ordinals: Ordinals) -> Ordinals:
        return ordinals if self.factor == 1 else -(-ordinals // self.factor)


@dataclass(frozen=True, slots=True)
class Divided(MonotoneCast):
    """To a coarser unit: the quotient by `divisor`, rounded down or (`truncated`) towards 0."""

    low: int
    high: int
    divisor: int
    truncated: bool

    def reaching(self, ordinals: Ordinals) -> Ordinals:
        floor = ordinals * self.divisor
        if not self.truncated:
            return floor
        # From 0 down, the quotient is reached as soon as the one below it is passed.
        return np.where(ordinals > 0, floor, floor - (self.divisor - 1))


@dataclass(frozen=True, slots=True)
class Rounded(MonotoneCast):
    """To the nearest float, from an integer or from another float.

    Not monotone among the NaNs of one sign: no ordinal of a NaN is to be asked for.
    """

    low: int
    high: int
    source: pa.DataType
    target: pa.DataType

    def reaching(self, ordinals: Ordinals) -> Ordinals:
        least, greatest = _range(self.target)
        wanted = np.clip(ordinals, least, greatest).astype(np.int64)
        # Ranks count the source's values from the first, so that 64 bits hold them all.
        last = np.uint64(self.high - self.low)
        guess = np.minimum(self._guess(wanted), last)
        tried = np.stack(
            [guess - (guess > 0), guess, guess + (guess < last), np.full_like(guess, last)]
        )
        before, at, after, most = self._cast(tried.ravel()).reshape(tried.shape)
        rank = np.where(at < wanted, tried[2], guess)
        nothing = (ordinals > greatest) | (most < wanted)
        found = np.where(at < wanted, after >= wanted, (before < wanted) | (guess == 0))
        left = np.flatnonzero(~(found | nothing))
        if len(left):
            rank[left] = self._bisect(wanted[left], np.full(len(left), last))
        return np.where(nothing, self.high + 1, rank.astype(object) + self.low)

    def _bisect(
        self, wanted: npt.NDArray[np.int64], last: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.uint64]:
        first = np.zeros_like(last)
        while (first < last).any():
            middle = first + (last - first) // 2
            reached = self._cast(middle) >= wanted
            first = np.where(reached, first, middle + 1)
            last = np.where(reached, middle, last)
        return first

    def _cast(self, rank: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """The ordinals of what the values of a rank are cast to."""
        values: npt.NDArray[Any] = rank
        if self.low:
            values = rank.view(np.int64) + np.int64(self.low)
        if pa.types.is_floating(self.source):
            values = _floats(values, self.source)
        with np.errstate(over="ignore", invalid="ignore"):
            floats = values.astype(self.target.to_pandas_dtype())
        return float_order(floats.view(f"i{floats.itemsize}")).astype(np.int64)

    def _guess(self, wanted: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        """The ranks of the wanted floats in the source type: wrong ones where it has none."""
        floats = _floats(wanted, self.target)
        with np.errstate(over="ignore", invalid="ignore"):
            if pa.types.is_floating(self.source):
                back = floats.astype(self.source.to_pandas_dtype())
                ordinals = float_order(back.view(f"i{back.itemsize}")).astype(np.int64)
            elif not self.low and self.source.bit_width == 64:
                return floats.astype(np.uint64)
            else:
                ordinals = np.clip(floats.astype(np.int64), self.low, self.high)
        return (ordinals - np.int64(self.low)).view(np.uint64)


def monotone_cast(source: pa.DataType, target: pa.DataType) -> MonotoneCast | None:
    """The cast from one type to another; None where it is not known to be monotone.

    >>> monotone_cast(pa.date32(), pa.timestamp("ns"))
    Scaled(low=-106751, high=106751, factor=86400000000000)
    >>> monotone_cast(pa.int8(), pa.string()) is None
    True
    """
    if _is_integer(source) or pa.types.is_decimal(source):
        return _from_number(source, target)
    if pa.types.is_floating(source):
        if ordinal_range(source) is None or ordinal_range(target) is None:
            return None
        return _rounded(source, target) if pa.types.is_floating(target) else None
    if _ticks(source) is not None:
        return _from_temporal(source, target)
    return None


def succeeds(cast: MonotoneCast, source: pa.DataType) -> bool:
    """Whether the cast raises on no value of the source type."""
    return (cast.low, cast.high) == ordinal_range(source)


def preimage(
    casts: Sequence[MonotoneCast], least: Ordinals, greatest: Ordinals
) -> tuple[Ordinals, Ordinals]:
    """The ordinals that the casts, one after the other, take to `least` up to `greatest`.

    Those on which a cast raises are not among them. Where there is none at all, the least is
    above the greatest.
    """
    for cast in reversed(casts):
        first, beyond = np.split(cast.reaching(np.concatenate([least, greatest + 1])), 2)
        least = np.maximum(first, cast.low)
        greatest = np.minimum(beyond - 1, cast.high)
    return least, greatest


def _from_number(source: pa.DataType, target: pa.DataType) -> MonotoneCast | None:
    scale = source.scale if pa.types.is_decimal(source) else 0
    if pa.types.is_decimal128(target) or pa.types.is_decimal256(target):
        if not 0 <= scale <= target.scale or pa.types.is_boolean(source):
            return None
        return _scaled(source, _range(target), 10 ** (target.scale - scale))
    if pa.types.is_decimal(source):
        return None
    if pa.types.is_integer(target):
        return _scaled(source, _range(target), 1)
    if pa.types.is_float32(target) or pa.types.is_float64(target):
        return _rounded(source, target)
    return None


def _from_temporal(source: pa.DataType, target: pa.DataType) -> MonotoneCast | None:
    """Dates and timestamps are counts of a unit, whatever the zone that they are shown in."""
    if pa.types.is_integer(target):
        same = target.bit_width == source.bit_width or pa.types.is_date32(source)
        return _scaled(source, _range(target), 1) if same and target in _COUNTS else None
    ticks, kept = _ticks(source), _ticks(target)
    if ticks is None or kept is None:
        return None
    image = _range(target)
    if pa.types.is_date32(target) and pa.types.is_timestamp(source):
        # The day is read off the calendar of the timestamp's zone.
        if source.tz not in (None, *_UTC):
            return None
        return _divided(source, _both(image, _CALENDAR), ticks // kept, truncated=False)
    if _zone(target) is not None and _zone(source) is None:
        # The count is read as the zone's own time, which summer time makes jump.
        if target.tz not in _UTC:
            return None
        image = _both(image, (_CALENDAR[0] * kept, (_CALENDAR[1] + 1) * kept - 1))
    if kept >= ticks:
        return _scaled(source, image, kept // ticks)
    return _divided(source, image, ticks // kept, truncated=True)


_COUNTS: Final = (pa.int32(), pa.int64())


def _rounded(source: pa.DataType, target: pa.DataType) -> MonotoneCast:
    return Rounded(*_range(source), source, target)


def _scaled(source: pa.DataType, image: tuple[int, int], factor: int) -> MonotoneCast:
    low, high = _both(_range(source), (-(-image[0] // factor), image[1] // factor))
    return Scaled(low, high, factor)


def _divided(
    source: pa.DataType, image: tuple[int, int], divisor: int, *, truncated: bool
) -> MonotoneCast:
    ends = np.array([image[0], image[1] + 1], dtype=object)
    least, beyond = Divided(*image, divisor, truncated).reaching(ends)
    low, high = _both(_range(source), (least, beyond - 1))
    return Divided(low, high, divisor, truncated)


def _floats(ordinals: npt.NDArray[np.int64], kind: pa.DataType) -> npt.NDArray[Any]:
    bits = float_order(ordinals.astype(f"i{kind.bit_width // 8}"))
    return bits.view(kind.to_pandas_dtype())


def _both(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return max(one[0], other[0]), min(one[1], other[1])


def _range(kind: pa.DataType) -> tuple[int, int]:
    known = ordinal_range(kind)
    if known is None:
        raise TypeError(f"no ordinals of type {kind}")
    return known


def _is_integer(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_boolean(kind)


def _ticks(kind: pa.DataType) -> int | None:
    if pa.types.is_timestamp(kind):
        return _TICKS[kind.unit]
    if pa.types.is_date64(kind):
        return _TICKS["ms"]
    return 1 if pa.types.is_date32(kind) else None


def _zone(kind: pa.DataType) -> str | None:
    return kind.tz if pa.types.is_timestamp(kind) else None
