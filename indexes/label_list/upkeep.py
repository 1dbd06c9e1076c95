"""Brings a label list index up to date with its table, through pylance."""

from __future__ import annotations

from typing import Final

import lance

from ..cache import ReaderCache
from ..conflicts import FASTER, with_retries
from ..dataset_files import local_folder
from ..errors import UnusableIndexError
from ..manifest import LanceIndex, absolute
from ..progress import elapsed
from ..snapshot import Snapshot
from .reader import KIND

MOST_SEGMENTS: Final = 8
"""In an object store; a search looks into every segment, and beyond so many they are merged."""


def optimize_label_list(dataset: lance.LanceDataset, name: str, *, progress: bool = True) -> None:
    """Index what the label list index `name` does not cover; `progress` shows the time it takes.

    pylance goes by what the index claims, and an index goes on claiming fragments of which the
    column was rewritten in place. Where it does, it is built again: otherwise they would stay
    without index, and their old postings would follow them into a compaction.

    Where another writer is in the way it begins again from the new version, up to three times.
    Raises `LanceIndexError` where other writers were faster every time; whatever else pylance
    raises comes through.
    """
    dataset.checkout_latest()
    with elapsed(f"indexing {name}", progress):
        with_retries(
            dataset,
            lambda: _optimize(dataset, name),
            f"index {name!r} was not optimized: {FASTER}",
        )


def _optimize(dataset: lance.LanceDataset, name: str) -> None:
    index = _index(Snapshot(dataset, ReaderCache(0)), name)
    options = {} if index is None else _merging(dataset, index)
    dataset.optimize.optimize_indices(index_names=[name], **options)
    dataset.checkout_latest()
    column = _column_of_stale_claims(Snapshot(dataset, ReaderCache(0)), name)
    if column is not None:
        dataset.create_scalar_index(column, "LABEL_LIST", name=name, replace=True)


def _index(snapshot: Snapshot, name: str) -> LanceIndex | None:
    found = (i for i in snapshot.indexes if i.name == name and i.kind == KIND)
    return next(found, None)


def _merging(dataset: lance.LanceDataset, index: LanceIndex) -> dict[str, int]:
    """With how many segments pylance is to merge the new rows; on local disks it chooses.

    It copies an index posting by posting, one after the other, and an object store takes its
    time for each. So new rows become a segment of their own there, up to a number.
    """
    if local_folder(absolute(dataset.uri)) is not None:
        return {}
    count = len(index.segments)
    return {"num_indices_to_merge": 0 if count < MOST_SEGMENTS else count}


def _column_of_stale_claims(snapshot: Snapshot, name: str) -> str | None:
    """The column of the index, where that claims a fragment that it does not answer for."""
    index = _index(snapshot, name)
    if index is None:
        return None
    claimed = frozenset[int]().union(*(segment.fragment_ids for segment in index.segments))
    try:
        covered = snapshot.covered_fragments(index)
    except UnusableIndexError:
        return None
    if claimed.intersection(snapshot.fragment_ids) - covered:
        return snapshot.column_name(index.field_ids[0])
    return None
