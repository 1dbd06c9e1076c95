"""Bringing the indexes of a Lance dataset up to date with its rows."""

from __future__ import annotations

from typing import Final

from lance import LanceDataset

from ..indexes.conflicts import is_conflict
from ..indexes.description import describable
from ..indexes.errors import InvalidArgumentError, LanceIndexError
from ..indexes.leftovers import remove_leftovers
from ..indexes.list_element.details import KIND as LIST_ELEMENT
from ..indexes.list_element.upkeep import optimize_list_element
from ..indexes.manifest import read_indexes

_TRIES: Final = 3


def optimize_index(dataset: LanceDataset, name: str | None, *, progress: bool) -> LanceDataset:
    """Optimizes one index, or all; the result is the dataset at the version that has them so.

    Those of Lance's own kinds are pylance's to optimize. What builds have left behind that were
    killed long ago is removed. Raises InvalidArgumentError where
    there is no index of that name, and LanceIndexError where other writers were faster every
    time.
    """
    indexes = describable(read_indexes(dataset))
    names = [index.name for index in indexes]
    if name is not None and name not in names:
        known = ", ".join(names) or "there is none"
        raise InvalidArgumentError("name", name, f"the name of an index of the table: {known}")
    remove_leftovers(dataset)
    for index in indexes:
        if name in (None, index.name):
            if index.kind == LIST_ELEMENT:
                optimize_list_element(dataset, index.name, progress=progress)
            else:
                _optimize_native(dataset, index.name)
    return dataset.checkout_version(dataset.latest_version)


def _optimize_native(dataset: LanceDataset, name: str) -> None:
    tries = 0
    while True:
        dataset.checkout_latest()
        try:
            dataset.optimize.optimize_indices(index_names=[name])
        except Exception as error:
            if not is_conflict(error):
                raise
            tries += 1
            if tries == _TRIES:
                raise LanceIndexError(
                    f"index {name!r} was not optimized: another writer was faster, try again"
                ) from error
        else:
            return
