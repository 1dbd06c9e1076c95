"""Brings a label list index up to date with its table, through pylance."""

from __future__ import annotations

import lance

from ..cache import ReaderCache
from ..conflicts import FASTER, with_retries
from ..errors import UnusableIndexError
from ..snapshot import Snapshot
from .reader import KIND


def optimize_label_list(dataset: lance.LanceDataset, name: str, *, progress: bool = True) -> None:
    """Index what the label list index `name` does not cover; pylance shows no `progress`.

    pylance goes by what the index claims, and an index goes on claiming fragments of which the
    column was rewritten in place. Where it does, it is built again: otherwise they would stay
    without index, and their old postings would follow them into a compaction.

    Where another writer is in the way it begins again from the new version, up to three times.
    Raises `LanceIndexError` where other writers were faster every time; whatever else pylance
    raises comes through.
    """
    del progress
    dataset.checkout_latest()
    with_retries(
        dataset,
        lambda: _optimize(dataset, name),
        f"index {name!r} was not optimized: {FASTER}",
    )


def _optimize(dataset: lance.LanceDataset, name: str) -> None:
    dataset.optimize.optimize_indices(index_names=[name])
    dataset.checkout_latest()
    column = _column_of_stale_claims(dataset, name)
    if column is not None:
        dataset.create_scalar_index(column, "LABEL_LIST", name=name, replace=True)


def _column_of_stale_claims(dataset: lance.LanceDataset, name: str) -> str | None:
    """The column of the index, where that claims a fragment that it does not answer for."""
    snapshot = Snapshot(dataset, ReaderCache(0))
    for index in snapshot.indexes:
        if index.name == name and index.kind == KIND:
            claimed = frozenset().union(*(segment.fragment_ids for segment in index.segments))
            try:
                covered = snapshot.covered_fragments(index)
            except UnusableIndexError:
                return None
            if claimed.intersection(snapshot.fragment_ids) - covered:
                return snapshot.column_name(index.field_ids[0])
    return None
