"""The rows of fragments that are not deleted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from .dataset_files import DatasetFiles
from .manifest import DeletionFile, Fragment, Manifest
from .row_set import bitmap_of
from .unreadable import unreadable


def live_offsets(dataset: lance.LanceDataset, manifest: Manifest, fragment: Fragment) -> BitMap:
    """The offsets of a fragment's rows, without those that its deletion file lists.

    Raises `CorruptIndexError` for a deletion file that does not hold what the manifest says.
    """
    every = BitMap(range(fragment.physical_rows))
    deletion = fragment.deletion_file
    if deletion is None:
        return every
    base, _ = manifest.base(deletion.base_id)
    files = DatasetFiles.at(dataset, base)
    try:
        deleted = decode_deletions(files.read(deletion.path), deletion)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise unreadable(files, deletion.path, f"deleted rows: {error}") from error
    return every - deleted


def decode_deletions(data: bytes, deletion: DeletionFile) -> BitMap:
    """The deleted offsets: a roaring bitmap, or one uint32 column of an Arrow IPC file.

    Raises `ValueError` (pyarrow's errors are such, too) where `data` is neither, or does
    not hold as many as the manifest says.
    """
    if deletion.roaring:
        deleted = BitMap.deserialize(data)
    else:
        column = pa.ipc.open_file(pa.BufferReader(data)).read_all().column(0)
        offsets = np.sort(column.to_numpy().astype(np.uint32))
        deleted = bitmap_of(offsets)
    if len(deleted) != deletion.deleted_rows:
        raise ValueError(f"{len(deleted)} rows, and the manifest says {deletion.deleted_rows}")
    return deleted


@dataclass(frozen=True, slots=True)
class LivePlaces:
    """Some fragments of a version, to tell which of many addresses are live rows of them.

    `fragment_ids` ascend, `rows` are their numbers of rows, deleted ones too, and `deleted`
    the addresses of the deleted rows, ascending.
    """

    fragment_ids: npt.NDArray[np.uint64]
    rows: npt.NDArray[np.uint64]
    deleted: npt.NDArray[np.uint64]

    @classmethod
    def of(cls, fragments: Iterable[Fragment], live: Mapping[int, BitMap]) -> LivePlaces:
        """Those of `fragments`; `live` has the live offsets of those with deleted rows."""
        ordered = sorted(fragments, key=lambda fragment: fragment.id)
        deleted = [
            np.frombuffer(live[f.id].flip(0, f.physical_rows).to_array(), dtype=np.uint32).astype(
                np.uint64
            )
            | np.uint64(f.id << 32)
            for f in ordered
            if f.id in live
        ]
        return cls(
            np.array([f.id for f in ordered], dtype=np.uint64),
            np.array([f.physical_rows for f in ordered], dtype=np.uint64),
            np.concatenate([np.empty(0, dtype=np.uint64), *deleted]),
        )

    def live(self, addresses: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Which of `addresses` are live rows of the fragments.

        Raises `ValueError` for an offset behind the last row of one of them.
        """
        if len(self.fragment_ids) == 0:
            return np.zeros(len(addresses), dtype=np.bool_)
        fragments = addresses >> np.uint64(32)
        at = np.minimum(self.fragment_ids.searchsorted(fragments), len(self.fragment_ids) - 1)
        inside = self.fragment_ids[at] == fragments
        behind = inside & ((addresses & np.uint64(0xFFFFFFFF)) >= self.rows[at])
        if behind.any():
            first = int(behind.argmax())
            raise ValueError(
                f"row {addresses[first] & np.uint64(0xFFFFFFFF)} in fragment {fragments[first]}, "
                f"which has {self.rows[at[first]]} rows"
            )
        if len(self.deleted):
            near = np.minimum(self.deleted.searchsorted(addresses), len(self.deleted) - 1)
            inside &= self.deleted[near] != addresses
        return inside
