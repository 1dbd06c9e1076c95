"""Sorts batches by a column of binary values, in memory and on all cores.

The one module of `indexes` that knows DataFusion, whose sort is four times as fast on byte
strings as pyarrow's. Its own way of spilling fails on wide values, so that what does not fit
into memory is not its affair: see `external_sort`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import datafusion
import pyarrow as pa
import pyarrow.dataset

_ROWS_A_BATCH: Final = 2048


def sorted_by(
    column: str, parts: Sequence[Iterator[pa.RecordBatch]], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The rows of all `parts`, ascending by a column, NULLs first.

    Each part is read to its end on a thread of its own before the first row comes out.
    """
    config = (
        datafusion.SessionConfig().with_target_partitions(len(parts)).with_batch_size(_ROWS_A_BATCH)
    )
    table = datafusion.SessionContext(config).read_table(
        datafusion.catalog.Table(_Parts(parts, schema))
    )
    order = datafusion.col(column).sort(ascending=True, nulls_first=True)
    for batch in table.sort(order).execute_stream():
        yield batch.to_pyarrow()


class _Part:
    """One partition, as DataFusion reads a fragment of a dataset."""

    def __init__(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
        self._batches = batches
        self.projected_schema = schema

    def scanner(self, *_: Any, **__: Any) -> _Part:
        return self

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        return self._batches


class _Parts(pyarrow.dataset.Dataset):
    """A table of parts that are read as they come; the sort asks for all of their columns."""

    def __init__(self, parts: Sequence[Iterator[pa.RecordBatch]], schema: pa.Schema) -> None:
        self._parts = parts
        self._schema = schema

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def scanner(self, *_: Any, **__: Any) -> Any:
        return _Part(iter(()), self._schema)

    def get_fragments(self, *_: Any, **__: Any) -> Iterator[Any]:
        return (_Part(part, self._schema) for part in self._parts)
