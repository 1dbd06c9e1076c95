"""A near-duplicate search: what it looks for in which rows, and the rows that it finds.

Specification: Query Evaluation.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from ..indexes.manifest import LanceIndex
from ..indexes.minhash_lsh.parameters import MinHashParameters
from ..indexes.minhash_lsh.ranked import Ranked
from ..indexes.minhash_lsh.search import MinHashReader, RowFilter, nearest
from ..indexes.minhash_lsh.signature import SignatureProcedure
from ..indexes.search_stats import SearchStats
from .minhash_arguments import SearchArguments
from .registry import RegisteredTable
from .signed_rows import signed_rows

Signature = npt.NDArray[np.uint16]

_FIRST_BLOCK: Final = 256
_GROWTH: Final = 4


@dataclass(frozen=True, slots=True)
class MinHashSearch:
    """The `arguments` of a search, bound to a table.

    `index` is asked about the rows in the `covered` fragments, with the index's own
    `parameters`; the rows in the fragments `signed` are read and signed. Where `exact`, every
    row is ranked, else those that share a band key with the query. Only rows that pass
    `passing` count towards the limit.
    """

    table: RegisteredTable
    arguments: SearchArguments
    parameters: MinHashParameters
    index: LanceIndex | None
    covered: frozenset[int]
    signed: frozenset[int]
    exact: bool
    passing: RowFilter | None = field(default=None, compare=False)

    def run(self, stats: SearchStats) -> Ranked:
        """The closest rows, at most `limit` of them: by distance, ties by row id.

        A text that is NULL or has no tokens finds nothing. Raises CorruptIndexError for damaged
        files, and what DataFusion raises on evaluating the filter.
        """
        started = time.perf_counter()
        found = self._found(stats)
        stats.rows_found += len(found)
        stats.search_seconds += time.perf_counter() - started
        return found

    def _found(self, stats: SearchStats) -> Ranked:
        signature = SignatureProcedure.of(self.parameters).sign_text(self.arguments.text)
        if signature is None or self.arguments.limit == 0:
            return Ranked.EMPTY
        found = [self._in_index(signature, stats)] if self.index and self.covered else []
        if self.signed:
            found.append(self._by_signing(signature))
        return Ranked.joined(found).ordered()[: self.arguments.limit]

    def _in_index(self, signature: Signature, stats: SearchStats) -> Ranked:
        assert self.index is not None
        reader = MinHashReader(self.index, self.table.snapshot)
        if self.exact:
            limit = self.arguments.limit
            return nearest(reader, signature, limit, self.covered, self.passing, False, stats)
        candidates = reader.candidates(signature, self.covered, stats)
        return _first_passing(candidates, self.arguments.limit, self.passing)

    def _by_signing(self, signature: Signature) -> Ranked:
        """The closest rows in the fragments that are read, of those that pass the filter."""
        rows = None
        if self.passing is not None:
            # It costs less to look at a row than to sign its text.
            rows = self.passing.passing(self.table.snapshot.live_rows(self.signed))
        signed = signed_rows(self.table, self.arguments.column, self.signed, self.parameters, rows)
        bands = None if self.exact else self.parameters.num_bands
        # Of some of the rows, too, no more than the limit are among the closest of all.
        limit = self.arguments.limit
        closest = [some.ranked(signature, bands).ordered()[:limit] for some in signed]
        return Ranked.joined(closest)


def _first_passing(candidates: Ranked, limit: int, passing: RowFilter | None) -> Ranked:
    """The first `limit` rows that pass; asked about in blocks, of no more rows than it takes."""
    if passing is None:
        return candidates[:limit]
    kept: list[Ranked] = []
    count = start = 0
    step = max(_FIRST_BLOCK, 2 * limit)
    while count < limit and start < len(candidates):
        block = candidates[start : start + step]
        kept.append(block.among(passing.passing(block.rows)))
        count += len(kept[-1])
        start += step
        step *= _GROWTH
    return Ranked.joined(kept)[:limit]
