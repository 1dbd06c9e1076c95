"""Proves a label list index against its table, row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from ..check_report import MOST_DIFFERENCES, Difference, IndexCheck
from ..errors import CorruptIndexError, UnusableIndexError
from ..lance_file import OpenFile
from ..manifest import IndexSegment, LanceIndex
from ..progress import Progress
from ..row_digests import RowDigests, mixed
from ..row_set import RowSet
from ..search_stats import SearchStats
from ..snapshot import Snapshot
from .reader import FILE, LabelListReader

_POSTINGS_AT_ONCE = 1024
_BATCH_ROWS = 16_384

# What a row has beside its labels, as if they were postings at these places.
_NULL_LIST = np.uint64((1 << 64) - 1)
_UNKNOWN_LABEL = np.uint64((1 << 64) - 2)

Addresses = npt.NDArray[np.uint64]


def check_label_list(index: LanceIndex, snapshot: Snapshot, *, progress: bool = True) -> IndexCheck:
    """Compares the labels of every live row in the fragments that the index covers.

    Every posting and the set of NULL lists are read; the files must have the sizes that the
    table records, and the keys must stand once each. Rows are compared by the sums of the mixed
    numbers of their postings. Never raises for what is wrong with the index: that is what the
    report tells.
    """
    try:
        covered = snapshot.covered_by_segment(index)
    except (UnusableIndexError, CorruptIndexError) as error:
        return IndexCheck(index.name, index.kind, 0, 0, 0, (Difference(str(error)),))
    differences: list[Difference] = []
    rows = entries = different = 0
    total = sum(len(snapshot.live_rows(fragments)) for fragments in covered.values())
    with Progress(f"checking {index.name}", total, "rows", progress) as bar:
        for segment, fragments in covered.items():
            try:
                checked = _Segment(segment, snapshot, fragments)
                differing, read = checked.differing(bar.update)
                differences += checked.explained(differing[:MOST_DIFFERENCES])
            except (UnusableIndexError, CorruptIndexError) as error:
                differences.append(Difference(str(error)))
                continue
            rows += len(snapshot.live_rows(fragments))
            entries += read
            different += len(differing)
    return IndexCheck(
        index=index.name,
        kind=index.kind,
        rows=rows,
        entries=entries,
        different_rows=different,
        differences=tuple(differences[:MOST_DIFFERENCES]),
    )


class _Segment:
    """One segment, beside the fragments of the table that it answers for."""

    def __init__(
        self, segment: IndexSegment, snapshot: Snapshot, fragments: frozenset[int]
    ) -> None:
        files, folder = snapshot.files_of(segment)
        for name, size in segment.files:
            OpenFile(files, f"{folder}/{name}", size=size)
        self._labels = OpenFile(files, f"{folder}/{FILE}", ["keys"]).read_column("keys")
        self._reader = LabelListReader(segment, files, folder, snapshot.cache)
        self._stats = SearchStats()
        self._nulls = self._reader.null_lists(self._stats)
        self._column = snapshot.column_name(segment.field_ids[0]) or ""
        self._snapshot = snapshot
        self._fragments = fragments
        self._live = snapshot.live_rows(fragments)

    def differing(self, scanned: Callable[[int], object]) -> tuple[Addresses, int]:
        """The rows that it has under other labels than they have; and the number of its entries.

        `scanned` is told of the rows of the table, so many at once, as they are read.
        """
        physical = {f: self._snapshot.physical_rows(f) for f in self._fragments}
        held, wanted = RowDigests(physical), RowDigests(physical)
        count = 0
        for number, rows in self._held():
            addresses = rows.addresses()
            count += len(addresses)
            held.add(addresses, mixed(np.full(len(addresses), number, dtype=np.uint64)))
        for addresses, numbers in self._wanted(scanned):
            wanted.add(addresses, mixed(numbers))
        return held.differing(wanted, self._live.addresses()), count

    def explained(self, rows: Addresses) -> list[Difference]:
        """What it has too much and too little of at some rows."""
        have: dict[int, set[int]] = {row: set() for row in rows.tolist()}
        should: dict[int, set[int]] = {row: set() for row in rows.tolist()}
        if not have:
            return []
        asked = RowSet.from_addresses(rows)
        for number, held in self._held():
            for row in (held & asked).addresses().tolist():
                have[row].add(int(number))
        for addresses, numbers in self._wanted():
            chosen = np.flatnonzero(np.isin(addresses, rows))
            pairs = zip(addresses[chosen].tolist(), numbers[chosen].tolist(), strict=True)
            for row, number in pairs:
                should[row].add(number)
        return [Difference(self._told(should[row], have[row]), row) for row in have]

    def _told(self, should: set[int], have: set[int]) -> str:
        sides = (("lacks", should - have, ""), ("has", have - should, " too"))
        return "; ".join(
            f"the index {what} {', '.join(map(self._named, sorted(numbers)))}{more}"
            for what, numbers, more in sides
            if numbers
        )

    def _named(self, number: int) -> str:
        if number == _NULL_LIST:
            return "the NULL list"
        if number == _UNKNOWN_LABEL:
            return "a label that it does not know"
        return f"the label {self._labels[number].as_py()!r}"

    def _held(self) -> Iterator[tuple[np.uint64, RowSet]]:
        """The live rows of each posting, and of the set of NULL lists."""
        total = self._reader.label_count(self._stats)
        for start in range(0, total, _POSTINGS_AT_ONCE):
            numbers = list(range(start, min(start + _POSTINGS_AT_ONCE, total)))
            postings = self._reader.postings(numbers, self._stats)
            for number, posting in zip(numbers, postings, strict=True):
                yield np.uint64(number), self._here(posting)
        if self._nulls is not None:
            yield _NULL_LIST, self._here(self._nulls)

    def _here(self, ids: RowSet) -> RowSet:
        return self._snapshot.addresses_of(ids) & self._live

    def _wanted(
        self, scanned: Callable[[int], object] = lambda _: None
    ) -> Iterator[tuple[Addresses, npt.NDArray[np.uint64]]]:
        """The addresses of live rows with what they should be in, each pair once."""
        dataset = self._snapshot.dataset
        read = [f for f in dataset.get_fragments() if f.fragment_id in self._fragments]
        if not read:
            return
        scanner = dataset.scanner(
            columns=[self._column], fragments=read, with_row_address=True, batch_size=_BATCH_ROWS
        )
        total = self._reader.label_count(self._stats)
        null = self._reader.null_element_position(self._stats)
        for batch in scanner.to_batches():
            scanned(len(batch))
            lists, addresses = batch.column(0), batch.column("_rowaddr").to_numpy()
            labels = lists.flatten()
            of_labels = np.repeat(np.arange(len(lists)), lists.value_lengths().fill_null(0))
            numbers = np.full(len(labels), null, dtype=np.int64)
            filled = np.flatnonzero(labels.is_valid().to_numpy(zero_copy_only=False))
            numbers[filled] = self._reader.positions(labels.drop_null(), self._stats)
            # One number for each pair, of which a row may have several; -1 is no posting.
            pairs = np.unique(of_labels * (total + 1) + np.where(numbers < 0, total, numbers))
            rows, places = np.divmod(pairs, total + 1)
            known = places.astype(np.uint64)
            yield addresses[rows], np.where(places == total, _UNKNOWN_LABEL, known)
            if self._nulls is not None and lists.null_count:
                rows = addresses[lists.is_null().to_numpy(zero_copy_only=False)]
                yield rows, np.full(len(rows), _NULL_LIST)
