"""Bringing the indexes of a Lance dataset up to date with its rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from lance import LanceDataset

from ..indexes.conflicts import FASTER, with_retries
from ..indexes.description import describable
from ..indexes.errors import InvalidArgumentError
from ..indexes.label_list.reader import KIND as LABEL_LIST
from ..indexes.label_list.upkeep import optimize_label_list
from ..indexes.leftovers import remove_leftovers
from ..indexes.list_element.details import KIND as LIST_ELEMENT
from ..indexes.list_element.upkeep import optimize_list_element
from ..indexes.manifest import read_indexes
from ..indexes.minhash_lsh.details import KIND as MINHASH_LSH
from ..indexes.minhash_lsh.upkeep import optimize_minhash_lsh
from ..indexes.progress import elapsed


class _Optimizer(Protocol):
    def __call__(self, dataset: LanceDataset, name: str, *, progress: bool) -> object: ...


_OPTIMIZERS: Final[Mapping[str, _Optimizer]] = {
    LABEL_LIST: optimize_label_list,
    LIST_ELEMENT: optimize_list_element,
    MINHASH_LSH: optimize_minhash_lsh,
}


def optimize_index(dataset: LanceDataset, name: str | None, *, progress: bool) -> LanceDataset:
    """Optimizes one index, or all; the result is the dataset at the version that has them so.

    Indexes of Lance's other kinds are pylance's to optimize. What builds have left behind that
    were killed is removed. Raises InvalidArgumentError where
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
            if index.kind in _OPTIMIZERS:
                _OPTIMIZERS[index.kind](dataset, index.name, progress=progress)
            else:
                with elapsed(f"indexing {index.name}", progress):
                    _optimize_native(dataset, index.name)
    return dataset.checkout_version(dataset.latest_version)


def _optimize_native(dataset: LanceDataset, name: str) -> None:
    dataset.checkout_latest()
    with_retries(
        dataset,
        lambda: dataset.optimize.optimize_indices(index_names=[name]),
        f"index {name!r} was not optimized: {FASTER}",
    )
