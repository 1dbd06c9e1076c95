"""The type that a CAST in a plan casts to."""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa
from datafusion.expr import Expr

from ..indexes.type_names import DECIMALS, PLAIN_TYPES

_DECIMAL: Final = re.compile(r"(Decimal\d+)\((\d+), (-?\d+)\)")
_TIMESTAMP: Final = re.compile(r'Timestamp\((s|ms|µs|ns)(?:, "([^"\\]+)")?\)')


def cast_type(cast: Expr) -> pa.DataType | None:
    """The type of a `Cast` expression; None for one that no key is compared in.

    DataFusion's Python side hands out the type as an object that says nothing, so it is
    read from the text of the expression.

    >>> from datafusion import col
    >>> cast_type(col("a").cast(pa.timestamp("us", "UTC")))
    TimestampType(timestamp[us, tz=UTC])
    """
    inner = cast.rex_call_operands()[0].canonical_name()
    text = cast.canonical_name().removeprefix(f"CAST({inner} AS ").removesuffix(")")
    if text in PLAIN_TYPES:
        return PLAIN_TYPES[text]
    if found := _DECIMAL.fullmatch(text):
        name, precision, scale = found.groups()
        return DECIMALS[name](int(precision), int(scale))
    if found := _TIMESTAMP.fullmatch(text):
        unit, zone = found.groups()
        return pa.timestamp("us" if unit == "µs" else unit, zone)
    return None
