"""Reads given rows of a Lance dataset: by address, or by scanning their fragments and masking.

Both public ways into Lance count *live* rows: `dataset.take` from the table's first row on,
`fragment.open_session().take` from the fragment's. An address counts deleted rows too, so it
is translated with the fragment's live rows. That works with and without stable row ids, where
Lance's own takes by id would not.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Final

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance.fragment import FragmentSession

from ..indexes.row_set import RowSet
from ..indexes.snapshot import Snapshot
from .blob_columns import holds_blob
from .fetch_cost import cheaper_by_scan, rows_a_read
from .fetch_stats import ScanStats
from .fragment_scan import ROW_ID, kept_rows, open_scan, read_columns, shaped
from .pushed_filter import Predicate

_DEFAULT_BATCH_ROWS: Final = 8192
_OPEN_SESSIONS: Final = 32

Ranks = npt.NDArray[np.int64]


class RowReader:
    """Reads rows of one version of a table by address. Threads may share it."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._dataset: lance.LanceDataset = snapshot.dataset
        self._sessions: OrderedDict[tuple[int, tuple[str, ...]], FragmentSession] = OrderedDict()
        self._lock = threading.Lock()

    def cheaper_by_scan(self, rows: RowSet, schema: pa.Schema, predicate: Predicate | None) -> bool:
        """Whether to scan the rows' fragments (`scan`) or to read them by address (`take`)."""
        types = [self._type(name) for name in read_columns(schema, predicate)]
        stored = sum(self._live_counts[fragment] for fragment in rows.fragment_ids)
        return cheaper_by_scan(types, len(rows), stored)

    def take(
        self,
        rows: RowSet,
        schema: pa.Schema,
        predicate: Predicate | None,
        batch_size: int | None,
        stats: ScanStats,
    ) -> Iterator[pa.RecordBatch]:
        """Those of `rows` on which `predicate` is TRUE, read by address, in its order.

        `rows` are live; one batch is read at a time, so that ending the iteration ends the
        reading. `schema` names the columns, `_rowid` among them for row ids. Lance's error for
        a row that does not exist passes through.
        """
        columns = read_columns(schema, predicate)
        size = batch_size or _DEFAULT_BATCH_ROWS
        for fragment_ids, addresses in _chunks(rows, size):
            started = time.perf_counter()
            batch = self._taken(fragment_ids, addresses, columns)
            passing = kept_rows(batch, predicate)
            made = shaped(passing, schema)
            stats.fetched("take", batch.num_rows, batch.nbytes, time.perf_counter() - started)
            if made.num_rows:
                yield made

    def scan(
        self,
        rows: RowSet,
        schema: pa.Schema,
        predicate: Predicate | None,
        batch_size: int | None,
        stats: ScanStats,
    ) -> Iterator[pa.RecordBatch]:
        """The same rows, read by scanning their fragments in order and masking the others."""
        fragment_ids = rows.fragment_ids
        if not fragment_ids:
            return
        columns = read_columns(schema, predicate)
        types = [self._type(name) for name in columns]
        scanner = open_scan(
            self._dataset,
            [self._fragments[fragment] for fragment in fragment_ids],
            columns,
            rows_a_read(types, batch_size or _DEFAULT_BATCH_ROWS),
        )
        mask = _Mask(
            (self._live_counts[fragment], self._ranks(fragment, rows.offsets(fragment)))
            for fragment in fragment_ids
        )
        started = time.perf_counter()
        for batch in scanner.to_reader():
            wanted = mask.next(batch.num_rows)
            found = int(np.count_nonzero(wanted))
            if found == 0:
                continue
            masked = batch if found == batch.num_rows else batch.filter(pa.array(wanted))
            made = shaped(kept_rows(masked, predicate), schema)
            stats.fetched("scan", found, masked.nbytes, time.perf_counter() - started)
            if made.num_rows:
                yield made
            started = time.perf_counter()
        mask.finish()

    def _taken(
        self, fragment_ids: Sequence[int], addresses: npt.NDArray[np.uint64], columns: list[str]
    ) -> pa.RecordBatch:
        if columns == [ROW_ID] and not self._snapshot.stable_row_ids:
            return pa.RecordBatch.from_arrays([pa.array(addresses)], names=columns)
        if any(holds_blob(self._dataset.schema.field(name)) for name in columns if name != ROW_ID):
            return self._taken_with_blobs(fragment_ids, addresses, columns)
        if len(fragment_ids) == 1 and ROW_ID not in columns:
            session = self._session(fragment_ids[0], tuple(columns))
            ranks = self._ranks(fragment_ids[0], addresses.astype(np.uint32))
            return _one_batch(session.take(ranks.tolist()))
        positions = self._positions(fragment_ids, addresses)
        return _one_batch(self._dataset.take(positions.tolist(), columns))

    def _taken_with_blobs(
        self, fragment_ids: Sequence[int], addresses: npt.NDArray[np.uint64], columns: list[str]
    ) -> pa.RecordBatch:
        """Through Lance's scanner: takes give a blob's place, not its bytes."""
        if self._snapshot.stable_row_ids:
            positions = self._positions(fragment_ids, addresses)
            addresses = self._dataset.take(positions.tolist(), [ROW_ID])[ROW_ID].to_numpy()
        row_ids = lance.dataset.serialize_row_addrs(addresses.tolist())
        scanner = open_scan(self._dataset, None, columns, len(addresses), row_ids=row_ids)
        return _one_batch(scanner.to_table())

    def _session(self, fragment_id: int, columns: tuple[str, ...]) -> FragmentSession:
        """An open reader of some columns of a fragment; the last few are kept open."""
        key = (fragment_id, columns)
        with self._lock:
            session = self._sessions.get(key)
            if session is not None:
                self._sessions.move_to_end(key)
                return session
        session = self._fragments[fragment_id].open_session(list(columns))
        with self._lock:
            self._sessions[key] = session
            while len(self._sessions) > _OPEN_SESSIONS:
                self._sessions.popitem(last=False)
        return session

    @cached_property
    def _fragments(self) -> dict[int, lance.LanceFragment]:
        return {fragment.fragment_id: fragment for fragment in self._dataset.get_fragments()}

    @cached_property
    def _live_counts(self) -> dict[int, int]:
        return {at: fragment.count_rows() for at, fragment in self._fragments.items()}

    @cached_property
    def _starts(self) -> dict[int, int]:
        """The position in the table of each fragment's first live row."""
        counts = list(self._live_counts.values())
        starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])[:-1]
        return dict(zip(self._live_counts, starts.tolist(), strict=True))

    def _positions(self, fragment_ids: Sequence[int], addresses: npt.NDArray[np.uint64]) -> Ranks:
        bounds = np.searchsorted(addresses, [at << 32 for at in fragment_ids]).tolist()
        return np.concatenate(
            [
                self._starts[fragment]
                + self._ranks(fragment, addresses[low:high].astype(np.uint32))
                for fragment, (low, high) in zip(
                    fragment_ids, pairwise([*bounds, len(addresses)]), strict=True
                )
            ]
        )

    def _ranks(self, fragment_id: int, offsets: npt.NDArray[np.uint32]) -> Ranks:
        """How many live rows stand before each offset of a fragment."""
        fragment = self._fragments[fragment_id]
        if self._live_counts[fragment_id] == fragment.physical_rows:
            return offsets.astype(np.int64)
        live = self._snapshot.live_rows(frozenset((fragment_id,))).offsets(fragment_id)
        return np.searchsorted(live, offsets)

    def _type(self, name: str) -> pa.DataType:
        return pa.uint64() if name == ROW_ID else self._dataset.schema.field(name).type


class _Mask:
    """The wanted rows of fragments that are read one after the other, in pieces."""

    def __init__(self, fragments: Iterable[tuple[int, Ranks]]) -> None:
        self._fragments = iter(fragments)
        self._rest = np.empty(0, dtype=np.bool_)

    def next(self, rows: int) -> npt.NDArray[np.bool_]:
        """Which of the next `rows` rows are wanted."""
        while len(self._rest) < rows:
            count, ranks = next(self._fragments, (-1, None))
            if ranks is None:
                raise RuntimeError("Lance's scan gave more rows than its fragments hold")
            mask = np.zeros(count, dtype=np.bool_)
            mask[ranks] = True
            self._rest = np.concatenate([self._rest, mask]) if len(self._rest) else mask
        piece, self._rest = self._rest[:rows], self._rest[rows:]
        return piece

    def finish(self) -> None:
        """Raises unless every row was asked for: rows would have been taken for others."""
        if len(self._rest) or next(self._fragments, None) is not None:
            raise RuntimeError("Lance's scan gave fewer rows than its fragments hold")


def _chunks(rows: RowSet, size: int) -> Iterator[tuple[tuple[int, ...], npt.NDArray[np.uint64]]]:
    """The addresses in ascending order, `size` at a time, with the fragments they lie in."""
    addresses = rows.addresses()
    for low in range(0, len(addresses), size):
        chunk = addresses[low : low + size]
        first, last = int(chunk[0] >> np.uint64(32)), int(chunk[-1] >> np.uint64(32))
        yield tuple(at for at in rows.fragment_ids if first <= at <= last), chunk


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
