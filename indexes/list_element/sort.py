"""Sorts entries by their values in bounded memory.

The one module of `indexes` that knows DataFusion: its sort compares and merges byte strings
on all cores and spills to disk, where pyarrow's holds everything and takes four times as
long.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import datafusion
import pyarrow as pa
import pyarrow.dataset

Batches = Callable[[], Iterator[pa.RecordBatch]]

_ROWS_A_BATCH = 8192


def sorted_by(
    column: str, parts: Sequence[Batches], schema: pa.Schema, memory: int
) -> Iterator[pa.RecordBatch]:
    """The rows of all `parts`, ascending by a column of binary values, NULLs first.

    Each part is read once, on a thread of its own; few parts are best, since each sorts in
    its share of the `memory` (in bytes). What is beyond that is spilled to a temporary
    folder, which is gone when the iterator is done or closed.
    """
    with tempfile.TemporaryDirectory(prefix="datafusion-lance-sort-") as folder:
        runtime = (
            datafusion.RuntimeEnvBuilder()
            .with_disk_manager_specified(folder)
            .with_fair_spill_pool(memory)
        )
        config = (
            datafusion.SessionConfig()
            .with_target_partitions(len(parts))
            .with_batch_size(_ROWS_A_BATCH)
        )
        context = datafusion.SessionContext(config, runtime)
        table = context.read_table(datafusion.catalog.Table(_Parts(parts, schema)))
        order = datafusion.col(column).sort(ascending=True, nulls_first=True)
        for batch in table.sort(order).execute_stream():
            yield batch.to_pyarrow()


class _Part:
    """One partition, as DataFusion reads a fragment of a dataset."""

    def __init__(self, batches: Batches, schema: pa.Schema) -> None:
        self._batches = batches
        self.projected_schema = schema

    def scanner(self, *_: Any, **__: Any) -> _Part:
        return self

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        return self._batches()


class _Parts(pyarrow.dataset.Dataset):
    """A table of parts that are read as they come; the sort asks for all of their columns."""

    def __init__(self, parts: Sequence[Batches], schema: pa.Schema) -> None:
        self._parts = parts
        self._schema = schema

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def scanner(self, *_: Any, **__: Any) -> Any:
        return _Part(lambda: iter(()), self._schema)

    def get_fragments(self, *_: Any, **__: Any) -> Iterator[Any]:
        return (_Part(part, self._schema) for part in self._parts)
