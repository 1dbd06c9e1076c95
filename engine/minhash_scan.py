"""The rows of `minhash_search` as a DataFusion table, closest first."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from ..indexes.literals import literals
from ..indexes.minhash_lsh.details import KIND
from ..indexes.minhash_lsh.ranked import Ranked
from .function_scan import FunctionScan
from .indexed_row_filter import IndexedFilter
from .minhash_arguments import APPROXIMATE, SEARCH
from .minhash_search import MinHashSearch
from .row_counts import without_columns
from .scan_label import fragments_in, shortened

DISTANCE: Final = "_distance"
_ROWS_A_BATCH: Final = 8192


class MinHashScan(FunctionScan):
    """All columns of the table and `_distance`, float32, of the rows that a search finds.

    The search runs once, when the first row is asked for; of the table only the columns that
    are asked for are read. A version of a table never changes, so running a plan again uses
    the answer again.
    """

    def __init__(self, search: MinHashSearch, notes: tuple[str, ...] = ()) -> None:
        schema = search.table.full_schema.append(pa.field(DISTANCE, pa.float32()))
        super().__init__(search.table, schema)
        self.search = search
        self.notes = notes
        self._lock = threading.Lock()
        self._found: Ranked | None = None

    @property
    def entries(self) -> tuple[tuple[str, str], ...] | None:
        search, arguments = self.search, self.search.arguments
        if search.index is None:
            return None
        text = (
            "NULL" if arguments.text is None else literals(pa.array([shortened(arguments.text)]))[0]
        )
        entries = {
            "index": search.index.name,
            "kind": KIND,
            "query": f"{SEARCH}({arguments.column}, {text}, {arguments.limit})",
        }
        if arguments.filter is not None:
            entries["filter"] = shortened(arguments.filter)
        if isinstance(search.passing, IndexedFilter):
            entries["filter_index"] = "+".join(search.passing.index_names)
        if arguments.mode != APPROXIMATE:
            entries["mode"] = arguments.mode
        entries["answer"] = "exact" if search.exact else "approximate"
        if search.signed:
            entries["uncovered_fragments"] = fragments_in(search.signed)
        return tuple(entries.items())

    def again(self) -> MinHashScan:
        return MinHashScan(self.search, self.notes)

    def rows(self, schema: pa.Schema, batch_size: int | None) -> Iterator[pa.RecordBatch]:
        found = self.found()
        step = batch_size or _ROWS_A_BATCH
        for start in range(0, len(found), step):
            yield self._read(schema, found[start : start + step])

    def found(self) -> Ranked:
        """The rows in their order, searched for once."""
        with self._lock:
            if self._found is None:
                self.stats.metered(self.table.row_reader.meter)
                requests, asked = self._of_filter()
                self._found = self.search.run(self.stats)
                self.stats.measure()
                requests_then, asked_then = self._of_filter()
                self.stats.requested(requests_then - requests, asked_then - asked)
            return self._found

    def _of_filter(self) -> tuple[int, int]:
        """What searching the filter's index has cost so far: requests and their bytes."""
        passing = self.search.passing
        if not isinstance(passing, IndexedFilter):
            return 0, 0
        return passing.stats.requests, passing.stats.bytes_requested

    def _read(self, schema: pa.Schema, found: Ranked) -> pa.RecordBatch:
        """Some of the rows that were found, in their order."""
        distances = pa.array(
            (found.different / self.search.parameters.num_hashes).astype(np.float32)
        )
        stored = pa.schema([field for field in schema if field.name != DISTANCE])
        if not stored:
            return (
                pa.RecordBatch.from_arrays([distances], schema=schema)
                if len(schema)
                else without_columns(len(found))
            )
        batch = self.table.row_reader.kept(found.addresses, stored, self.stats.fetched)
        if batch is None:
            batch = self._fetched(stored, found)
        return pa.RecordBatch.from_arrays(
            [distances if name == DISTANCE else batch.column(name) for name in schema.names],
            schema=schema,
        )

    def _fetched(self, stored: pa.Schema, found: Ranked) -> pa.RecordBatch:
        """Columns of the rows that were found, in their order."""
        reader = self.table.row_reader
        batches = list(reader.fetch(found.rows, stored, None, counted=self.stats.fetched))
        if len(batches) > 1:
            read = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()
            batches = read.to_batches()
        (batch,) = batches
        # They come in the order of their addresses; a row is found once.
        return batch.take(pa.array(np.argsort(np.argsort(found.addresses))))
