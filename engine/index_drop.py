"""Dropping an index of a Lance dataset."""

from __future__ import annotations

from typing import Final

from lance import LanceDataset

from ..indexes.conflicts import is_conflict
from ..indexes.errors import InvalidArgumentError, LanceIndexError
from ..indexes.manifest import read_indexes

_TRIES: Final = 3


def drop_index(dataset: LanceDataset, name: str, *, if_exists: bool) -> LanceDataset:
    """Drops the index of that name; the result is the dataset at the version without it.

    Raises InvalidArgumentError where there is none, unless `if_exists`, and LanceIndexError
    where another writer was faster every time.
    """
    tries = 0
    while True:
        dataset = dataset.checkout_version(dataset.latest_version)
        names = [index.name for index in read_indexes(dataset)]
        if name not in names:
            if if_exists and isinstance(name, str):
                return dataset
            known = ", ".join(names) or "there is none"
            raise InvalidArgumentError("name", name, f"the name of an index of the table: {known}")
        try:
            dataset.drop_index(name)
        except Exception as error:
            # Another writer may have dropped it meanwhile: look again.
            if not is_conflict(error) and "index not found" not in str(error):
                raise
            tries += 1
            if tries == _TRIES:
                raise LanceIndexError(f"index {name!r} was not dropped: {error}") from error
        else:
            return dataset
