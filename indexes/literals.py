"""Labels as a reader of EXPLAIN wants to see them."""

from __future__ import annotations

import pyarrow as pa


def literals(values: pa.Array) -> list[str]:
    """Each value, none of them NULL, as it would stand in SQL; instants in UTC."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return literals(values.dictionary_decode())
    if pa.types.is_boolean(kind):
        return [str(value).upper() for value in values.to_pylist()]
    if pa.types.is_duration(kind):
        return [f"'{count} {kind.unit}'" for count in values.cast(pa.int64()).to_pylist()]
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        # Arrow writes a zone's own time only where the machine has a time zone database.
        return [f"{text[:-1]}Z'" for text in literals(values.view(pa.timestamp(kind.unit)))]
    if pa.types.is_temporal(kind):
        # Python's own values have no nanoseconds.
        return [f"'{text}'" for text in values.cast(pa.string()).to_pylist()]
    return [_literal(value) for value in values.to_pylist()]


def _literal(value: object) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    return str(value)
