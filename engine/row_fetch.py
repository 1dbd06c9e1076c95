"""Reads given rows of a Lance dataset: by address, by scanning their fragments, or from memory.

Both public ways into Lance count *live* rows: `dataset.take` from the table's first row on,
`fragment.open_session().take` from the fragment's. An address counts deleted rows too, so it
is translated with the fragment's deleted rows. That works with and without stable row ids,
where Lance's own takes by id would not.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Final, TypeAlias

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance.dataset import serialize_row_addrs
from lance.fragment import FragmentSession

from ..indexes.dataset_files import local_folder
from ..indexes.manifest import absolute
from ..indexes.row_set import RowSet
from ..indexes.snapshot import Snapshot
from .blob_columns import holds_blob
from .column_cost import ReadCost, read_cost, varies
from .fetch_cost import by_scan, read_microseconds, rows_a_read
from .fetch_stats import Meter
from .fragment_scan import ROW_ID, kept_rows, open_scan, read_columns, shaped
from .kept_columns import KeptColumns
from .predicate_kernels import keep
from .pushed_filter import Predicate, columns_of

_DEFAULT_BATCH_ROWS: Final = 8192
_OPEN_SESSIONS: Final = 32
_FILTERED_AT_ONCE: Final = 1 << 20
_MEASURED_ROWS: Final = 32
_LARGE_READ: Final = 1_000.0
"""Microseconds beyond which it pays to look at some rows first."""

Addresses: TypeAlias = npt.NDArray[np.uint64]
Offsets: TypeAlias = npt.NDArray[np.uint32]
Ranks: TypeAlias = npt.NDArray[np.integer]
Counted: TypeAlias = Callable[[str, int, int, float], None]
"""Told after each read: how (`take`, `scan` or `cache`), rows, their bytes, seconds."""


class RowReader:
    """Reads rows of one version of a table by their addresses. Threads may share it."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._dataset: lance.LanceDataset = snapshot.dataset
        self._sessions: OrderedDict[tuple[int, tuple[str, ...]], FragmentSession] = OrderedDict()
        self._deleted: dict[int, Offsets] = {}
        self._measured: dict[str, ReadCost] = {}
        self._lock = threading.Lock()

    @cached_property
    def meter(self) -> Meter | None:
        """What Lance has asked an object store for, for the table's files; None on local disks."""
        if local_folder(absolute(self._dataset.uri)) is not None:
            return None

        def counted() -> tuple[int, int]:
            stats = self._dataset.io_stats_snapshot()
            return stats.read_iops, stats.read_bytes

        return counted

    def fetch(
        self,
        rows: RowSet,
        schema: pa.Schema,
        predicate: Predicate | None,
        batch_size: int | None = None,
        counted: Counted = lambda method, read, nbytes, seconds: None,
    ) -> Iterator[pa.RecordBatch]:
        """Those of `rows` on which `predicate` is TRUE, in the table's order.

        `rows` are live rows. `schema` names the columns to read, `_rowid` among them for row
        ids; a schema without fields gives batches that have rows but no columns. Whatever is
        read is read as the iteration goes on, and ending that ends the reading.
        """
        size = batch_size or _DEFAULT_BATCH_ROWS
        if predicate is not None and self._pays_to_filter_first(rows, schema, predicate):
            for some in self._parts(rows):
                passing = self.passing(some, predicate, size, counted)
                yield from self.fetch(passing, schema, None, batch_size, counted)
            return
        for _, batch in self._read(rows, read_columns(schema, predicate), size, counted):
            made = shaped(kept_rows(batch, predicate), schema)
            if made.num_rows:
                yield made

    def kept(
        self, addresses: Addresses, schema: pa.Schema, counted: Counted
    ) -> pa.RecordBatch | None:
        """The live rows at `addresses`, in that order, of columns that are all in memory.

        None where one is not, and has to be fetched.
        """
        started = time.perf_counter()
        kept = self._kept.get([self._schema.field(name) for name in schema.names])
        if kept is None:
            return None
        order = np.argsort(addresses)
        ordered = addresses[order]
        fragment_ids = np.unique(ordered >> np.uint64(32)).tolist()
        positions = np.empty(len(addresses), dtype=np.int64)
        positions[order] = self._positions(fragment_ids, ordered)
        batch = kept.take(pa.array(positions))
        counted("cache", len(addresses), batch.nbytes, time.perf_counter() - started)
        return shaped(batch, schema)

    def _pays_to_filter_first(self, rows: RowSet, schema: pa.Schema, predicate: Predicate) -> bool:
        """Whether to read the predicate's columns before the others, for fewer rows of those.

        How many rows pass is not known, so the predicate's columns have to be far cheaper.
        """
        read = columns_of(predicate)
        others = [name for name in schema.names if name not in read]
        if not others or not read or len(rows) < _DEFAULT_BATCH_ROWS:
            return False
        stored = self._stored(rows)
        first = read_microseconds(self._costs(rows, read), len(rows), stored)
        return 4 * first < read_microseconds(self._costs(rows, others), len(rows), stored)

    def _parts(self, rows: RowSet) -> Iterator[RowSet]:
        """The rows, some fragments at a time, so that the first of them come early."""
        some: list[int] = []
        stored = 0
        for fragment in rows.fragment_ids:
            some.append(fragment)
            stored += self._live_counts[fragment]
            if stored >= _FILTERED_AT_ONCE:
                yield rows.restrict(some)
                some, stored = [], 0
        if some:
            yield rows.restrict(some)

    def passing(
        self,
        rows: RowSet,
        predicate: Predicate,
        size: int = _DEFAULT_BATCH_ROWS,
        counted: Counted = lambda method, read, nbytes, seconds: None,
    ) -> RowSet:
        """Those of `rows`, live rows, on which `predicate` is TRUE; it reads a column or more."""
        passing: list[Addresses] = []
        for addresses, batch in self._read(rows, list(columns_of(predicate)), size, counted):
            kept = keep(predicate, batch)
            if isinstance(kept, bool):
                passing += [addresses] if kept else []
            else:
                passing.append(addresses[kept.fill_null(False).to_numpy(zero_copy_only=False)])
        return RowSet.from_addresses(np.concatenate(passing)) if passing else RowSet.EMPTY

    def _read(
        self, rows: RowSet, columns: list[str], size: int, counted: Counted
    ) -> Iterator[tuple[Addresses, pa.RecordBatch]]:
        """Columns of all of `rows` in whichever way is cheapest, with the rows' addresses."""
        started = time.perf_counter()
        fields = [self._schema.field(name) for name in columns]
        kept = self._kept.get(fields)
        if kept is not None:
            method, batches = "cache", self._from_kept(rows, kept, size)
        elif by_scan(self._costs(rows, columns), len(rows), self._stored(rows)):
            method, batches = "scan", self._scan(rows, columns, size)
        else:
            method, batches = "take", self._take(rows, columns, size)
        for addresses, batch in batches:
            seconds = time.perf_counter() - started
            if kept is None:
                self._kept.spent(fields, seconds)
            counted(method, len(addresses), batch.nbytes, seconds)
            yield addresses, batch
            started = time.perf_counter()

    # -- what it costs ------------------------------------------------------------------

    def _costs(self, rows: RowSet, columns: Iterable[str]) -> list[ReadCost]:
        """What the columns cost a row: before a large read, by the lengths of some values."""
        fields = [self._schema.field(name) for name in columns]
        costs = [self._measured.get(field.name) or read_cost(field.type) for field in fields]
        guessed = [
            field.name
            for field in fields
            if field.name not in self._measured and varies(field.type) and not holds_blob(field)
        ]
        if not guessed or read_microseconds(costs, len(rows), self._stored(rows)) < _LARGE_READ:
            return costs
        some = RowSet.from_addresses(rows.addresses()[:: -(-len(rows) // _MEASURED_ROWS)])
        for _, batch in self._take(some, guessed, _MEASURED_ROWS):
            for name, values in zip(guessed, batch.columns, strict=True):
                self._measured[name] = read_cost(values.type, values)
        return self._costs(rows, columns)

    # -- from memory --------------------------------------------------------------------

    @cached_property
    def _kept(self) -> KeptColumns:
        def read_whole(columns: Sequence[str]) -> pa.Table:
            rows = rows_a_read(self._types(columns), _DEFAULT_BATCH_ROWS)
            return open_scan(self._dataset, None, columns, rows).to_table()

        snapshot = self._snapshot
        stored = sum(self._live_counts.values())
        return KeptColumns(snapshot.cache, snapshot.manifest.digest, stored, read_whole)

    def _from_kept(
        self, rows: RowSet, kept: pa.RecordBatch, size: int
    ) -> Iterator[tuple[Addresses, pa.RecordBatch]]:
        if not rows:
            return
        addresses = rows.addresses()
        positions = self._positions(rows.fragment_ids, addresses)
        step = rows_a_read(kept.schema.types, size)
        for low in range(0, len(addresses), step):
            piece = slice(low, low + step)
            yield addresses[piece], kept.take(pa.array(positions[piece]))

    # -- by scanning --------------------------------------------------------------------

    def _scan(
        self, rows: RowSet, columns: list[str], size: int
    ) -> Iterator[tuple[Addresses, pa.RecordBatch]]:
        scanner = open_scan(
            self._dataset,
            [self._fragments[fragment] for fragment in rows.fragment_ids],
            columns,
            rows_a_read(self._types(columns), size),
        )
        wanted = _Wanted(self._wanted(rows))
        for batch in scanner.to_reader():
            if batch.num_rows == 0:
                continue
            positions, addresses = wanted.next(batch.num_rows)
            if len(addresses) == batch.num_rows:
                yield addresses, batch
            elif len(addresses):
                # Three times as fast as a filter by mask.
                yield addresses, batch.take(pa.array(positions))
        wanted.finish()

    def _wanted(self, rows: RowSet) -> Iterator[tuple[int, int, Offsets, Ranks]]:
        for fragment in rows.fragment_ids:
            offsets = rows.offsets(fragment)
            yield fragment, self._live_counts[fragment], offsets, self._ranks(fragment, offsets)

    # -- by address ---------------------------------------------------------------------

    def _take(
        self, rows: RowSet, columns: list[str], size: int
    ) -> Iterator[tuple[Addresses, pa.RecordBatch]]:
        addresses = rows.addresses()
        for low in range(0, len(addresses), size):
            chunk = addresses[low : low + size]
            first, last = int(chunk[0] >> np.uint64(32)), int(chunk[-1] >> np.uint64(32))
            fragments = [at for at in rows.fragment_ids if first <= at <= last]
            yield chunk, self._taken(fragments, chunk, columns)

    def _taken(
        self, fragment_ids: Sequence[int], addresses: Addresses, columns: list[str]
    ) -> pa.RecordBatch:
        if columns == [ROW_ID] and not self._snapshot.stable_row_ids:
            return pa.RecordBatch.from_arrays([pa.array(addresses)], names=columns)
        if any(holds_blob(self._schema.field(name)) for name in columns):
            return self._taken_with_blobs(fragment_ids, addresses, columns)
        if len(fragment_ids) == 1 and ROW_ID not in columns:
            session = self._session(fragment_ids[0], tuple(columns))
            ranks = self._ranks(fragment_ids[0], addresses.astype(np.uint32))
            return _one_batch(session.take(ranks.tolist()))
        positions = self._positions(fragment_ids, addresses)
        return _one_batch(self._dataset.take(positions.tolist(), columns))

    def _taken_with_blobs(
        self, fragment_ids: Sequence[int], addresses: Addresses, columns: list[str]
    ) -> pa.RecordBatch:
        """Through Lance's scanner: takes give a blob's place, not its bytes."""
        if self._snapshot.stable_row_ids:
            positions = self._positions(fragment_ids, addresses)
            addresses = self._dataset.take(positions.tolist(), [ROW_ID])[ROW_ID].to_numpy()
        row_ids = serialize_row_addrs(addresses.tolist())
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

    # -- where rows are -----------------------------------------------------------------

    @cached_property
    def _schema(self) -> pa.Schema:
        return self._dataset.schema.append(pa.field(ROW_ID, pa.uint64()))

    def _types(self, columns: Iterable[str]) -> list[pa.DataType]:
        return [self._schema.field(name).type for name in columns]

    @cached_property
    def _fragments(self) -> dict[int, lance.LanceFragment]:
        return {fragment.fragment_id: fragment for fragment in self._dataset.get_fragments()}

    @cached_property
    def _live_counts(self) -> dict[int, int]:
        return {at: fragment.count_rows() for at, fragment in self._fragments.items()}

    def _stored(self, rows: RowSet) -> int:
        """How many live rows the fragments of `rows` have together."""
        return sum(self._live_counts[fragment] for fragment in rows.fragment_ids)

    @cached_property
    def _starts(self) -> dict[int, int]:
        """The position in the table of each fragment's first live row."""
        counts = list(self._live_counts.values())
        starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])[:-1]
        return dict(zip(self._live_counts, starts.tolist(), strict=True))

    def _positions(self, fragment_ids: Sequence[int], addresses: Addresses) -> Ranks:
        bounds = np.searchsorted(
            addresses, np.array([at << 32 for at in fragment_ids], np.uint64)
        ).tolist()
        return np.concatenate(
            [
                self._starts[fragment]
                + self._ranks(fragment, addresses[low:high].astype(np.uint32))
                for fragment, (low, high) in zip(
                    fragment_ids, pairwise([*bounds, len(addresses)]), strict=True
                )
            ]
        )

    def _ranks(self, fragment_id: int, offsets: Offsets) -> Ranks:
        """How many live rows stand before each offset of a fragment."""
        if self._live_counts[fragment_id] == self._snapshot.physical_rows(fragment_id):
            return offsets
        deleted = self._deleted.get(fragment_id)
        if deleted is None:
            deleted = self._deleted_offsets(fragment_id)
            self._deleted[fragment_id] = deleted
        return offsets.astype(np.int64) - np.searchsorted(deleted, offsets)

    def _deleted_offsets(self, fragment_id: int) -> Offsets:
        live = self._snapshot.live_rows((fragment_id,)).bitmap(fragment_id)
        gone = live.flip(0, self._snapshot.physical_rows(fragment_id))
        return np.frombuffer(gone.to_array(), dtype=np.uint32)


class _Wanted:
    """The wanted rows of fragments that are read one after the other, in pieces.

    A fragment comes as its id, its number of live rows, the wanted offsets, ascending, and
    the live rows' numbers of those. Only a piece of them is ever copied.
    """

    def __init__(self, fragments: Iterable[tuple[int, int, Offsets, Ranks]]) -> None:
        self._fragments = iter(fragments)
        self._fragment_id = -1
        self._offsets = self._ranks = np.empty(0, dtype=np.uint32)
        self._live = 0
        self._read = 0
        self._given = 0

    def next(self, rows: int) -> tuple[npt.NDArray[np.int64], Addresses]:
        """Which of the next `rows` live rows are wanted, from 0 on, and their addresses."""
        pieces: list[tuple[npt.NDArray[np.int64], Addresses]] = []
        done = 0
        while done < rows:
            if self._read == self._live and not self._advance():
                raise RuntimeError("Lance's scan gave more rows than its fragments hold")
            step = min(rows - done, self._live - self._read)
            pieces.append(self._piece(step, done))
            done += step
        if len(pieces) == 1:
            return pieces[0]
        positions, addresses = zip(*pieces, strict=True)
        return np.concatenate(positions), np.concatenate(addresses)

    def finish(self) -> None:
        """Raises unless every row was asked for: rows would have been taken for others."""
        if self._read < self._live or self._advance():
            raise RuntimeError("Lance's scan gave fewer rows than its fragments hold")

    def _piece(self, step: int, done: int) -> tuple[npt.NDArray[np.int64], Addresses]:
        first, start = self._given, self._read
        self._read += step
        self._given = int(np.searchsorted(self._ranks, self._ranks.dtype.type(self._read)))
        piece = slice(first, self._given)
        positions = self._ranks[piece].astype(np.int64) + (done - start)
        return positions, self._offsets[piece] | np.uint64(self._fragment_id << 32)

    def _advance(self) -> bool:
        fragment = next(self._fragments, None)
        if fragment is None:
            return False
        self._fragment_id, self._live, self._offsets, self._ranks = fragment
        self._read = self._given = 0
        return True


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
