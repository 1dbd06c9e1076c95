"""Results as a table, CSV, JSON or Parquet."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from .usage import UsageError

_NULL: Final = "NULL"


@contextmanager
def opened(path: str | None) -> Iterator[BinaryIO]:
    """The file to write to, which is there once all of it is; None for standard output."""
    if path is None:
        yield sys.stdout.buffer
        return
    unfinished = Path(f"{path}.{os.getpid()}.unfinished")
    try:
        with unfinished.open("wb") as file:
            yield file
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def write(
    form: str,
    batches: Iterator[pa.RecordBatch],
    schema: pa.Schema,
    sink: BinaryIO,
    rows: int | None,
) -> None:
    """Writes the batches in one of `FORMATS`; of a table only the first `rows`."""
    if form == "parquet" and sink is sys.stdout.buffer and sys.stdout.isatty():
        raise UsageError("parquet is not for a terminal: give --output FILE")
    if form == "table":
        _write_table(batches, schema, sink, rows)
    else:
        _WRITERS[form](batches, schema, sink)


def _write_csv(batches: Iterator[pa.RecordBatch], schema: pa.Schema, sink: BinaryIO) -> None:
    flat = pa.schema([pa.field(f.name, _flat_type(f.type)) for f in schema])
    with pyarrow.csv.CSVWriter(sink, flat) as writer:
        for batch in batches:
            writer.write_batch(pa.record_batch([_flat(c) for c in batch.columns], schema=flat))


def _flat_type(kind: pa.DataType) -> pa.DataType:
    return pa.string() if _is_deep(kind) else kind


def _flat(column: pa.Array) -> pa.Array:
    """The column as it is; lists, structs and bytes as text."""
    return pa.array(_texts(column, None), pa.string()) if _is_deep(column.type) else column


def _write_json(batches: Iterator[pa.RecordBatch], schema: pa.Schema, sink: BinaryIO) -> None:
    """An array with an object on each line."""
    sink.write(b"[")
    before = b"\n"
    for batch in batches:
        for row in batch.to_pylist(maps_as_pydicts="lossy"):
            sink.write(before + _json(row).encode())
            before = b",\n"
    sink.write(b"\n]\n")


def _write_parquet(batches: Iterator[pa.RecordBatch], schema: pa.Schema, sink: BinaryIO) -> None:
    with pyarrow.parquet.ParquetWriter(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


_WRITERS: Final[Mapping[str, Callable[[Iterator[pa.RecordBatch], pa.Schema, BinaryIO], None]]] = {
    "csv": _write_csv,
    "json": _write_json,
    "parquet": _write_parquet,
}
FORMATS: Final = ("table", *_WRITERS)


def _write_table(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, sink: BinaryIO, rows: int | None
) -> None:
    """Columns side by side, as DataFusion prints them; NULL where there is no value."""
    shown: list[pa.RecordBatch] = []
    left = rows
    more = False
    for batch in batches:
        shown.append(batch if left is None else batch.slice(0, left))
        if left is not None:
            more = batch.num_rows > left
            left -= shown[-1].num_rows
            if more:
                break
    columns = [
        [name, *chain.from_iterable(_texts(batch.column(i), _NULL) for batch in shown)]
        for i, name in enumerate(schema.names)
    ]
    cells = [[text.split("\n") for text in column] for column in columns]
    widths = [max(len(line) for text in column for line in text) for column in cells]
    numeric = [pa.types.is_integer(f.type) or pa.types.is_floating(f.type) for f in schema]
    rule = "+" + "".join("-" * (width + 2) + "+" for width in widths)
    lines = [rule]
    for number, row in enumerate(zip(*cells, strict=True)):
        for parts in zip_longest(*row, fillvalue=""):
            padded = (
                part.rjust(width) if right and number else part.ljust(width)
                for part, width, right in zip(parts, widths, numeric, strict=True)
            )
            lines.append("| " + " | ".join(padded) + " |")
        if number == 0:
            lines.append(rule)
    lines.append(rule)
    if more:
        lines.append(f"the first {rows} rows; --rows N shows more")
    sink.write(("\n".join(lines) + "\n").encode())


def _is_deep(kind: pa.DataType) -> bool:
    return (
        pa.types.is_nested(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def _texts(column: pa.Array, null: Any) -> list[Any]:
    """Each value as text: `null` for NULL, JSON for lists and structs, hexadecimal bytes."""
    if not _is_deep(column.type):
        try:
            return [null if t is None else t for t in column.cast(pa.string()).to_pylist()]
        except pa.ArrowNotImplementedError:  # intervals and the like
            return [null if v is None else str(v) for v in column.to_pylist()]
    values = column.to_pylist(maps_as_pydicts="lossy")
    return [null if v is None else v.hex() if isinstance(v, bytes) else _json(v) for v in values]


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_other)
    except ValueError:
        return json.dumps(_finite(value), ensure_ascii=False, default=_other)


def _other(value: Any) -> str:
    """What JSON has no form of: bytes in hexadecimal, decimals, dates and times as they print."""
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _finite(value: Any) -> Any:
    """The value with NULL where JSON has no number: NaN and the infinities."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list) else value
