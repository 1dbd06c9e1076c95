"""Rows in the order of their distance from a signature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ..row_set import RowSet


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """Rows, the closest first, rows at equal distance by row id; all arrays are (n,).

    `addresses` are where the rows are, `row_ids` their ids in the version of the table,
    and `different` in how many positions of their signatures they differ: their distance is
    that, divided by the number of positions.
    """

    addresses: npt.NDArray[np.uint64]
    row_ids: npt.NDArray[np.uint64]
    different: npt.NDArray[np.uint16]

    EMPTY: ClassVar[Ranked]

    @classmethod
    def joined(cls, parts: Sequence[Ranked]) -> Ranked:
        """All rows of `parts`, of which each but the first is behind the one before."""
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls.EMPTY
        return cls(
            np.concatenate([part.addresses for part in parts]),
            np.concatenate([part.row_ids for part in parts]),
            np.concatenate([part.different for part in parts]),
        )

    def __len__(self) -> int:
        return len(self.addresses)

    def __getitem__(self, which: slice | npt.NDArray[np.bool_] | npt.NDArray[np.intp]) -> Ranked:
        return Ranked(self.addresses[which], self.row_ids[which], self.different[which])

    def ordered(self) -> Ranked:
        """The same rows in the order that they should have."""
        rows = self
        if (rows.row_ids[1:] < rows.row_ids[:-1]).any():
            rows = rows[np.argsort(rows.row_ids, kind="stable")]
        return rows[np.argsort(rows.different, kind="stable")]

    def among(self, rows: RowSet) -> Ranked:
        """Those that are in `rows`, which are some of these."""
        if len(rows) == len(self):
            return self
        wanted = rows.addresses()
        if len(wanted) == 0:
            return self[:0]
        near = np.minimum(wanted.searchsorted(self.addresses), len(wanted) - 1)
        return self[wanted[near] == self.addresses]

    @property
    def rows(self) -> RowSet:
        """The rows as a set."""
        return RowSet.from_addresses(self.addresses)


Ranked.EMPTY = Ranked(
    np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.uint16)
)
