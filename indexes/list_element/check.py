"""Proves a list element index against its table, row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..check_report import MOST_DIFFERENCES, Difference, IndexCheck
from ..errors import CorruptIndexError, UnusableIndexError
from ..lance_file import OpenFile
from ..manifest import IndexSegment, LanceIndex
from ..progress import Progress
from ..row_digests import RowDigests, hashes
from ..snapshot import Snapshot
from .details import Key
from .entries import entries
from .key_encoding import decode_tuple
from .segment_run import SegmentRun

_BATCH_ROWS = 16_384
_BATCH_BYTES = 16 << 20

Addresses = npt.NDArray[np.uint64]


def check_list_element(
    index: LanceIndex, snapshot: Snapshot, *, progress: bool = True
) -> IndexCheck:
    """Compares the entries of every live row in the fragments that the index covers.

    Every page is read and compared with the page table, and its order checked; the files must
    have the sizes that the table records, and the details must agree with the schema. Rows are
    compared by the sums of the 64-bit hashes of their encoded entries. Never raises for what is
    wrong with the index: that is what the report tells.
    """
    try:
        keys = snapshot.keys_of(index)
        covered = snapshot.covered_by_segment(index)
    except (UnusableIndexError, CorruptIndexError) as error:
        return IndexCheck(index.name, index.kind, 0, 0, 0, (Difference(str(error)),))
    rows = {f: snapshot.physical_rows(f) for here in covered.values() for f in here}
    held, wanted = RowDigests(rows), RowDigests(rows)
    differences: list[Difference] = []
    read: dict[IndexSegment, frozenset[int]] = {}
    count = 0
    with Progress(f"checking {index.name}", None, "entries", progress) as bar:
        for segment, here in covered.items():
            try:
                _check_files(segment, snapshot)
                for batch in _index_entries(segment, snapshot, here):
                    addresses = batch.column("ids").to_numpy()
                    astray = held.add(addresses, hashes(batch.column("values")))
                    count += len(batch)
                    bar.update(len(batch))
                    differences += [
                        Difference("the index has an entry for it, and the table no such row", at)
                        for at in np.unique(astray)[:MOST_DIFFERENCES].tolist()
                    ]
            except CorruptIndexError as error:
                differences.append(Difference(str(error)))
            else:
                read[segment] = here
        # A sound index has as many entries as its table, those of deleted rows apart.
        bar.expect(2 * count)
        fragments = frozenset[int]().union(*read.values())
        for batch in _table_entries(index, keys, snapshot, fragments):
            wanted.add(batch.column("ids").to_numpy(), hashes(batch.column("values")))
            bar.update(len(batch))
    live = snapshot.live_rows(fragments).addresses()
    differing = held.differing(wanted, live)
    if len(differing):
        first = differing[:MOST_DIFFERENCES]
        differences += _explained(index, keys, snapshot, read, first)
    return IndexCheck(
        index=index.name,
        kind=index.kind,
        rows=len(live),
        entries=count,
        different_rows=len(differing),
        differences=tuple(differences[:MOST_DIFFERENCES]),
    )


def _check_files(segment: IndexSegment, snapshot: Snapshot) -> None:
    files, folder = snapshot.files_of(segment)
    for name, size in segment.files:
        OpenFile(files, f"{folder}/{name}", size=size)


def _index_entries(
    segment: IndexSegment, snapshot: Snapshot, fragments: frozenset[int]
) -> Iterator[pa.RecordBatch]:
    """The entries of a segment for some fragments, page by page."""
    run = SegmentRun(segment, *snapshot.files_of(segment), fragments, lambda _: None)
    return (run.batch(number) for number in range(len(run.ends)))


def _table_entries(
    index: LanceIndex, keys: Sequence[Key], snapshot: Snapshot, fragments: frozenset[int]
) -> Iterator[pa.RecordBatch]:
    """The entries that the live rows of some fragments should have."""
    column = snapshot.column_name(index.field_ids[0]) or ""
    dataset = snapshot.dataset
    read = [f for f in dataset.get_fragments() if f.fragment_id in fragments]
    if not read:
        return
    scanner = dataset.scanner(
        columns=[column],
        fragments=read,
        with_row_address=True,
        batch_size=_BATCH_ROWS,
        batch_size_bytes=_BATCH_BYTES,
        batch_readahead=1,
        fragment_readahead=1,
    )
    for batch in scanner.to_batches():
        yield from entries(batch.column(0), batch.column("_rowaddr"), keys)


def _explained(
    index: LanceIndex,
    keys: Sequence[Key],
    snapshot: Snapshot,
    segments: Mapping[IndexSegment, frozenset[int]],
    rows: Addresses,
) -> list[Difference]:
    """What the segments have too much and too little of at some rows."""
    wanted = pa.array(rows, pa.uint64())
    fragments = frozenset((rows >> np.uint64(32)).tolist())
    have: Counter[tuple[int, Any]] = Counter()
    should: Counter[tuple[int, Any]] = Counter()
    for segment, here in segments.items():
        for batch in _index_entries(segment, snapshot, here & fragments):
            have.update(_at(batch, wanted))
    for batch in _table_entries(index, keys, snapshot, fragments):
        should.update(_at(batch, wanted))
    found: list[Difference] = []
    for row in rows.tolist():
        missing = [_shown(v, keys) for at, v in (should - have).elements() if at == row]
        extra = [_shown(v, keys) for at, v in (have - should).elements() if at == row]
        said = [f"the index lacks {', '.join(missing)}"] if missing else []
        said += [f"the index has {', '.join(extra)} too much"] if extra else []
        found.append(Difference("; ".join(said), row))
    return found


def _at(batch: pa.RecordBatch, rows: pa.Array) -> Iterator[tuple[int, Any]]:
    chosen = batch.filter(pc.is_in(batch.column("ids"), value_set=rows))
    return zip(chosen.column("ids").to_pylist(), chosen.column("values").to_pylist(), strict=True)


def _shown(value: bytes | None, keys: Sequence[Key]) -> str:
    """An entry in readable form."""
    if value is None:
        return "the entry of a NULL list"
    try:
        decoded = decode_tuple([key.codec for key in keys], value)
    except ValueError:
        return f"the bytes {value.hex()}"
    parts = (f"{key.name}={v.as_py()!r}" for key, v in zip(keys, decoded, strict=True))
    return f"({', '.join(parts)})"
