"""Values and types as Python source, for scripts that stand alone."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

# What a script begins with, so that the literals below have a meaning.
IMPORTS = """\
import datetime
from datetime import timedelta

import lance
import pyarrow as pa

nan, inf = float("nan"), float("inf")
"""


def type_source(kind: pa.DataType) -> str:
    """
    >>> type_source(pa.list_(pa.struct([("a", pa.int8())])))
    "pa.list_(pa.struct([('a', pa.int8())]))"
    """
    if pa.types.is_large_list(kind):
        return f"pa.large_list({type_source(kind.value_type)})"
    if pa.types.is_list(kind):
        return f"pa.list_({type_source(kind.value_type)})"
    if pa.types.is_struct(kind):
        fields = ", ".join(f"({field.name!r}, {type_source(field.type)})" for field in kind.fields)
        return f"pa.struct([{fields}])"
    if pa.types.is_timestamp(kind):
        return f"pa.timestamp({kind.unit!r})"
    names = {pa.bool_(): "bool_", pa.date32(): "date32", pa.float32(): "float32"}
    return f"pa.{names.get(kind, {pa.float64(): 'float64'}.get(kind, str(kind)))}()"


def schema_source(schema: pa.Schema) -> str:
    fields = (
        f"pa.field({field.name!r}, {type_source(field.type)}"
        + (")" if field.nullable else ", nullable=False)")
        for field in schema
    )
    return f"pa.schema([{', '.join(fields)}])"


def table_source(rows: pa.Table) -> str:
    """The rows of a table, one a line."""
    lines = "".join(f"    {row!r},\n" for row in rows.to_pylist())
    return f"pa.Table.from_pylist([\n{lines}], schema={schema_source(rows.schema)})"


def call_source(function: str, *args: Any, **kwargs: Any) -> str:
    """A call with the arguments as their `repr`.

    >>> call_source("f", 1, name="x")
    "f(1, name='x')"
    """
    listed = [repr(arg) for arg in args] + [f"{name}={arg!r}" for name, arg in kwargs.items()]
    return f"{function}({', '.join(listed)})"
