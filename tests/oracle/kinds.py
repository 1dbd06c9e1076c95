"""Types of values: what columns of them hold, and literals to compare them with."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

NAN = float("nan")


@dataclass(frozen=True, slots=True)
class Kind:
    """A type, its values from common to rare, and a literal in SQL for each of them.

    `others` are literals of values that no column holds, or of other types that compare.
    """

    type: pa.DataType
    values: tuple[Any, ...]
    literals: tuple[str, ...]
    others: tuple[str, ...]

    def draw(self, random: np.random.Generator, count: int, nulls: float) -> pa.Array:
        """Values of the kind, the first ones much more often than the last, and NULLs."""
        places = (len(self.values) * random.random(count) ** 2.5).astype(np.int64)
        pool = pa.array(self.values, self.type)
        return pool.take(pa.array(places, mask=random.random(count) < nulls))


def _kind(
    kind: pa.DataType,
    values: Sequence[Any],
    literal: Callable[[Any], str],
    others: Sequence[str],
) -> Kind:
    return Kind(kind, tuple(values), tuple(map(literal, values)), tuple(others))


def text_literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _cast(name: str) -> Callable[[Any], str]:
    return lambda value: f"arrow_cast({value}, '{name}')"


def _float(value: float) -> str:
    if math.isnan(value) or math.isinf(value):
        return f"CAST('{value}' AS DOUBLE)"
    return str(value)


def _date(value: dt.date) -> str:
    return f"DATE '{value}'"


def _time(value: dt.datetime) -> str:
    return f"TIMESTAMP '{value}'"


_WORDS = ("a", "ab", "b", "it's", "", "é", "a%c", "B", *(f"w{n}" for n in range(24)))
_DAYS = tuple(dt.date(2024, 2, 29) - dt.timedelta(days=301 * n) for n in range(16))
_TIMES = tuple(
    dt.datetime(2024, 2, 29, 12, 30) - dt.timedelta(days=500 * n, microseconds=n) for n in range(12)
)

TEXT = _kind(pa.string(), _WORDS, text_literal, ("'zz'", "'A'"))
LARGE_TEXT = _kind(pa.large_string(), _WORDS, text_literal, ("'zz'",))
INT8 = _kind(pa.int8(), (0, 1, 2, -1, 127, 44, -128), str, ("300", "77", "0.5"))
INT32 = _kind(pa.int32(), (*range(20), 2**31 - 1, -5), str, ("99", "1.5", "3000000000"))
INT64 = _kind(pa.int64(), (0, 1, 2, 2**53, 2**53 + 1, -7, *range(100, 120)), str, ("55",))
UINT8 = _kind(pa.uint8(), (0, 1, 255, 7, 9), str, ("256", "-1", "2"))
UINT64 = _kind(
    pa.uint64(), (0, 1, 5, 2**64 - 1, *range(50, 60)), _cast("UInt64"), ("arrow_cast(3, 'UInt64')",)
)
FLOAT32 = _kind(
    pa.float32(),
    (0.5, 0.0, -0.0, NAN, 1.0, -1.5, float("inf"), *(n / 8 for n in range(9, 24))),
    _float,
    ("0.9", "1", "arrow_cast(0.5, 'Float32')"),
)
FLOAT64 = _kind(
    pa.float64(),
    (0.5, 0.0, -0.0, NAN, 1.0, 0.9, float("-inf"), *(n / 8 for n in range(9, 24))),
    _float,
    ("3", "77.5"),
)
BOOL = _kind(pa.bool_(), (True, False), lambda value: str(value).upper(), ())
DATE = _kind(pa.date32(), _DAYS, _date, ("DATE '1999-01-01'",))
TIME = _kind(pa.timestamp("us"), _TIMES, _time, ("TIMESTAMP '1999-01-01'", "DATE '2024-02-29'"))
BYTES = _kind(
    pa.binary(), (b"a", b"", b"a\0", b"\xff"), lambda value: f"X'{value.hex()}'", ("X'00'",)
)

LABEL_KINDS = (
    *(TEXT, TEXT, TEXT, LARGE_TEXT, INT8, INT32, INT64, UINT8, UINT64),
    *(FLOAT32, FLOAT64, BOOL, DATE, TIME),
)
FIELD_KINDS = (*LABEL_KINDS, TEXT, BOOL, FLOAT32, FLOAT64, BYTES)
