"""Answers searches for key tuples from all segments of a list element index."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..answer import Answer
from ..errors import CorruptIndexError
from ..manifest import LanceIndex
from ..row_set import RowSet
from ..search_stats import SearchStats
from ..segment_search import asked
from .btree import BTree, Ids
from .details import Key
from .key_range import KeySearch

if TYPE_CHECKING:
    from ..snapshot import Snapshot


class ListElementReader:
    """One logical index over one version of a table; thread-safe.

    What it reads is kept in the session's cache and nowhere else. Raises
    `UnusableIndexError` where the index cannot be used with this version.
    """

    def __init__(self, index: LanceIndex, snapshot: Snapshot) -> None:
        """Reads no file of the index."""
        self._index = index
        self._snapshot = snapshot
        self.keys: tuple[Key, ...] = snapshot.keys_of(index)

    @property
    def fragment_ids(self) -> frozenset[int]:
        """The fragments that the index answers for."""
        return self._snapshot.covered_fragments(self._index)

    def answer(
        self,
        search: KeySearch,
        covered: frozenset[int],
        stats: SearchStats,
        *,
        null_wanted: bool = True,
    ) -> Answer:
        """The rows with an element that `search` finds, among the fragments `covered`.

        The NULL rows are those whose list is NULL or that have an element on which the
        search is UNKNOWN and none on which it is TRUE; they are left out (None) where they are
        not `null_wanted`. Rows may be deleted ones. How many ranges a search takes is not
        limited here: see `KeySearch.within` and `KeySearch.null_range_count`.

        Raises `CorruptIndexError` for a file that fails a check.
        """
        true_ranges = search.true_ranges()
        null_ranges = search.null_ranges() if null_wanted else None
        parts = [
            (BTree(segment, *self._snapshot.files_of(segment), self._snapshot.cache), here)
            for segment, fragments in self._snapshot.covered_by_segment(self._index).items()
            if (here := fragments & covered)
        ]

        def ask(part: tuple[BTree, frozenset[int]], stats: SearchStats) -> tuple[RowSet, RowSet]:
            tree, here = part
            found = self._rows(tree, tree.search(true_ranges, stats), here)
            if null_ranges is None:
                return found, RowSet.EMPTY
            unknown = np.concatenate([tree.search(null_ranges, stats), tree.null_ids(stats)])
            return found, self._rows(tree, unknown, here) - found

        are_local = self._snapshot.are_files_local(self._index)
        answers = asked(parts, ask, stats, are_local=are_local)
        true = RowSet.union(true for true, _ in answers)
        null = RowSet.union(null for _, null in answers) if null_wanted else None
        return Answer(true, null, exact=True)

    def _rows(self, tree: BTree, ids: Ids, fragments: frozenset[int]) -> RowSet:
        rows = RowSet.from_addresses(ids).restrict(fragments)
        for fragment in rows.fragment_ids:
            last, end = rows.bitmap(fragment).max(), self._snapshot.physical_rows(fragment)
            if last >= end:
                raise CorruptIndexError(
                    tree.path, f"row {last} in fragment {fragment}, which has {end} rows"
                )
        return rows
