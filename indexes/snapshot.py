"""One version of one table: its fragments, live rows, row ids and indexes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from threading import Lock
from typing import Any, TypeVar

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from .cache import ReaderCache
from .coverage import covered_by_segment
from .dataset_files import DatasetFiles
from .errors import CorruptIndexError, UnusableIndexError
from .label_list import reader as label_list
from .list_element import details as list_element
from .list_element.coverage import recorded_fragments
from .live_rows import LivePlaces, live_offsets
from .manifest import (
    Field,
    Fragment,
    IndexSegment,
    LanceIndex,
    Manifest,
    absolute,
    read_manifest,
    read_past_manifest,
)
from .minhash_lsh import details as minhash_lsh
from .row_ids import RowIdMap, Runs, decode_sequence
from .row_set import RowSet

Value = TypeVar("Value")

_REUSE = "FragmentReuse"


class Snapshot:
    """What one version of a table tells about itself, read when it is first asked for.

    Thread-safe: two threads may read the same thing at once, and get equal values. Methods
    raise `CorruptIndexError` where a file of the table's metadata is not as Lance writes it.
    """

    def __init__(self, dataset: lance.LanceDataset, cache: ReaderCache) -> None:
        self.dataset = dataset
        self.cache = cache
        self._lock = Lock()
        self._kept: dict[Hashable, Any] = {}

    # -- the version --------------------------------------------------------------------

    @property
    def manifest(self) -> Manifest:
        """The version's metadata."""
        return self._once("manifest", lambda: read_manifest(self.dataset))

    @property
    def fragment_ids(self) -> tuple[int, ...]:
        """The fragments of this version, in the table's order."""
        return tuple(self._fragments)

    @property
    def stable_row_ids(self) -> bool:
        """Whether rows keep their ids when they move."""
        return self.manifest.stable_row_ids

    def physical_rows(self, fragment_id: int) -> int:
        """How many rows a fragment has, deleted ones too: its offsets end there."""
        return self._fragments[fragment_id].physical_rows

    def column_name(self, field_id: int) -> str | None:
        """The current name of a field, with dots where it is inside others; None if it is gone."""
        names: list[str] = []
        while field_id != -1:
            field = self._fields.get(field_id)
            if field is None:
                return None
            names.append(field.name)
            field_id = field.parent_id
        return ".".join(reversed(names))

    def field(self, field_id: int) -> pa.Field | None:
        """The current Arrow field of a field id; None if it is gone."""
        path: list[str] = []
        while field_id != -1:
            field = self._fields.get(field_id)
            if field is None:
                return None
            path.append(field.name)
            field_id = field.parent_id
        found: pa.Field = self.dataset.schema.field(path.pop())
        while path:
            name = path.pop()
            kind = found.type
            # A list has one field inside, whatever its name.
            found = kind.field(name) if pa.types.is_struct(kind) else kind.value_field
        return found

    # -- its indexes --------------------------------------------------------------------

    @property
    def indexes(self) -> tuple[LanceIndex, ...]:
        """The indexes of this version; none where they cannot be read, see `indexes_unread`."""
        return self.manifest.indexes

    @property
    def indexes_unread(self) -> str | None:
        """Why the indexes cannot be read, if so."""
        return self.manifest.indexes_unread

    def indexes_on(self, column_name: str) -> tuple[LanceIndex, ...]:
        """The indexes on one top-level column alone."""
        return tuple(
            index
            for index in self.indexes
            if len(index.field_ids) == 1
            and (field := self._fields.get(index.field_ids[0])) is not None
            and field.parent_id == -1
            and field.name == column_name
        )

    def covered_fragments(self, index: LanceIndex) -> frozenset[int]:
        """The fragments of this version that the index answers for.

        Raises `UnusableIndexError` for an index that cannot answer at all.
        """
        return frozenset().union(*self.covered_by_segment(index).values())

    def covered_by_segment(self, index: LanceIndex) -> dict[IndexSegment, frozenset[int]]:
        """As `covered_fragments`, of each segment; no fragment is in two of them."""
        return self._once(("covered", index.name), lambda: self._covered_by_segment(index))

    def _covered_by_segment(self, index: LanceIndex) -> dict[IndexSegment, frozenset[int]]:
        if index.kind == label_list.KIND:
            label_list.check_metadata(index)
        if index.kind == minhash_lsh.KIND:
            minhash_lsh.parameters_of(index)
        recorded: dict[IndexSegment, frozenset[int]] = {}
        if index.kind == list_element.KIND:
            self.keys_of(index)
            recorded = recorded_fragments(index, self.manifest)
        built_over = {
            s.dataset_version: self._built_over(index, s)
            for s in index.segments
            if s not in recorded
        }
        return covered_by_segment(index, self.manifest, built_over, recorded)

    def keys_of(self, index: LanceIndex) -> tuple[list_element.Key, ...]:
        """The keys of a list element index, as they are in this version.

        Raises `UnusableIndexError` where one is not what it was.
        """
        return self._once(
            ("keys", index.name), lambda: list_element.resolve_keys(index, self.manifest)
        )

    def _built_over(self, index: LanceIndex, segment: IndexSegment) -> Manifest | None:
        """The manifest of the version that a segment was built over, None where it is gone."""
        version = segment.dataset_version
        if version + 1 >= self.manifest.version and segment.base_id is None:
            # The next version is the one that lists the segment: nothing lies between.
            return self.manifest
        root, _ = self.manifest.base(segment.base_id)
        return self._once(
            ("built over", root, version),
            lambda: read_past_manifest(self.dataset, absolute(root), version),
        )

    def files_of(self, segment: IndexSegment) -> tuple[DatasetFiles, str]:
        """Where a segment's files are: a base path and the folder under it."""
        root, is_dataset_root = self.manifest.base(segment.base_id)
        files = self._once(("files", root), lambda: DatasetFiles.at(self.dataset, absolute(root)))
        return files, f"_indices/{segment.uuid}" if is_dataset_root else segment.uuid

    def are_files_local(self, index: LanceIndex) -> bool:
        """Whether all files of the index are on this machine's own disks."""
        return all(self.files_of(segment)[0].are_local for segment in index.segments)

    # -- its rows -----------------------------------------------------------------------

    def live_rows(self, fragment_ids: Iterable[int]) -> RowSet:
        """The rows of the given fragments that are not deleted."""
        return RowSet.from_bitmaps({f: self._live_offsets(f) for f in fragment_ids})

    def live_among(self, rows: RowSet) -> RowSet:
        """The live rows among `rows`, all of which are in fragments of this version.

        Raises `ValueError` for an offset behind a fragment's last row.
        """
        kept: dict[int, BitMap] = {}
        for fragment_id in rows.fragment_ids:
            fragment = self._fragments[fragment_id]
            if fragment_id in rows.whole_fragments:
                kept[fragment_id] = self._live_offsets(fragment_id)
                continue
            bitmap = rows.bitmap(fragment_id)
            if bitmap.max() >= fragment.physical_rows:
                raise ValueError(
                    f"row {bitmap.max()} in fragment {fragment_id} of {fragment.physical_rows} rows"
                )
            if fragment.deletion_file is not None:
                bitmap = bitmap & self._live_offsets(fragment_id)
            kept[fragment_id] = bitmap
        return RowSet.from_bitmaps(kept)

    def addresses_of(self, row_ids: RowSet) -> RowSet:
        """Where the rows with the given ids, as an index holds them, are in this version.

        Without stable row ids an id is the address that the row had when it was indexed:
        it is that still, or compaction has moved the row and the table's fragment reuse
        index tells where to. Ids of rows that are gone may be left in the set.
        """
        if self.stable_row_ids:
            return self._row_id_map().addresses_of(row_ids)
        if not self._has_moved_rows:
            return row_ids
        gone = [f for f in row_ids.fragment_ids if f not in self._fragments]
        if not gone:
            return row_ids
        moved = row_ids.restrict(gone)
        if moved.whole_fragments:
            raise UnusableIndexError(_REUSE, "a whole fragment was moved")
        found = self.dataset.remap_row_addrs(pa.array(moved.addresses(), pa.uint64()))
        here = row_ids.restrict(self._fragments.keys())
        if found is None:
            return here
        return here | RowSet.from_addresses(found.drop_null().to_numpy().astype(np.uint64))

    def locate(
        self, row_ids: npt.NDArray[np.uint64], fragment_ids: frozenset[int]
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
        """`addresses_of` in the order given: each row's address, and which of them count.

        Those do that are live rows of `fragment_ids`, all of which are in this version.
        Raises `ValueError` for an offset behind the last row of one of them.
        """
        addresses, known = self._addresses_of_each(row_ids)
        places = self._once(("places", fragment_ids), lambda: self._places(fragment_ids))
        known[known] = places.live(addresses[known])
        return addresses, known

    def _addresses_of_each(
        self, row_ids: npt.NDArray[np.uint64]
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
        if self.stable_row_ids:
            return self._row_id_map().locate(row_ids)
        known = np.ones(len(row_ids), dtype=np.bool_)
        if not self._has_moved_rows:
            return row_ids, known
        here = np.array(sorted(self._fragments), dtype=np.uint64)
        gone = np.flatnonzero(~np.isin(row_ids >> np.uint64(32), here))
        if len(gone) == 0:
            return row_ids, known
        found = self.dataset.remap_row_addrs(pa.array(row_ids[gone], pa.uint64()))
        addresses = row_ids.copy()
        known[gone] = False
        if found is not None:
            moved = found.is_valid().to_numpy(zero_copy_only=False)
            addresses[gone[moved]] = found.drop_null().to_numpy()
            known[gone[moved]] = True
        return addresses, known

    def _places(self, fragment_ids: frozenset[int]) -> LivePlaces:
        fragments = [self._fragments[fragment_id] for fragment_id in fragment_ids]
        deleted_from = [f.id for f in fragments if f.deletion_file is not None]
        return LivePlaces.of(fragments, {f: self._live_offsets(f) for f in deleted_from})

    # -- reading ------------------------------------------------------------------------

    @property
    def _fragments(self) -> dict[int, Fragment]:
        return self._once("fragments", lambda: {f.id: f for f in self.manifest.fragments})

    @property
    def _fields(self) -> dict[int, Field]:
        return self._once("fields", lambda: {f.id: f for f in self.manifest.fields})

    @property
    def _has_moved_rows(self) -> bool:
        return self._once("moved", lambda: any(i.kind == _REUSE for i in self.indexes))

    def _live_offsets(self, fragment_id: int) -> BitMap:
        return self._once(
            ("live", fragment_id),
            lambda: live_offsets(self.dataset, self.manifest, self._fragments[fragment_id]),
        )

    def _row_id_map(self) -> RowIdMap:
        def load() -> tuple[RowIdMap, int]:
            made = RowIdMap(list(self._runs()))
            return made, made.nbytes

        # A table that was deleted and written again has the same versions at the same place.
        return self.cache.get((self.manifest.digest, "row ids"), load)

    def _runs(self) -> Iterator[Runs]:
        if any(fragment.external_row_ids for fragment in self.manifest.fragments):
            scanner = self.dataset.scanner(columns=[], with_row_id=True, with_row_address=True)
            for batch in scanner.to_batches():
                ids, addresses = batch.column("_rowid"), batch.column("_rowaddr")
                yield Runs.of_rows(ids.to_numpy(), addresses.to_numpy())
            return
        for fragment in self.manifest.fragments:
            try:
                yield self._runs_of(fragment)
            except ValueError as error:
                check = f"the row ids of fragment {fragment.id}: {error}"
                raise CorruptIndexError(self.manifest.root, check) from error

    def _runs_of(self, fragment: Fragment) -> Runs:
        sequence = fragment.row_ids or b""
        if fragment.deletion_file is None:
            return Runs.of_fragment(sequence, fragment.id, fragment.physical_rows)
        ids = decode_sequence(sequence, fragment.physical_rows)
        # An updated row keeps its id, and leaves it behind where the row was before.
        live = self.live_rows((fragment.id,))
        return Runs.of_rows(ids[live.offsets(fragment.id)], live.addresses())

    def _once(self, key: Hashable, read: Callable[[], Value]) -> Value:
        try:
            return self._kept[key]
        except KeyError:
            value = read()
        with self._lock:
            return self._kept.setdefault(key, value)
