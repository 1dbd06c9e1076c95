"""The rows of fragments that are not deleted."""

from __future__ import annotations

import lance
import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from .dataset_files import DatasetFiles
from .errors import CorruptIndexError
from .manifest import DeletionFile, Fragment, Manifest
from .row_set import bitmap_of


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
        raise CorruptIndexError(files.path(deletion.path), f"deleted rows: {error}") from error
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
