"""A near-duplicate search: what it looks for in which rows, and the rows that it finds.

Specification: Query Evaluation.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..indexes.manifest import LanceIndex
from ..indexes.minhash_lsh.parameters import MinHashParameters
from ..indexes.minhash_lsh.ranked import Ranked
from ..indexes.minhash_lsh.search import MinHashReader, nearest
from ..indexes.minhash_lsh.signature import SignatureProcedure
from ..indexes.search_stats import SearchStats
from .fragment_scan import ROW_ID
from .indexed_row_filter import Passing
from .minhash_arguments import SearchArguments
from .registry import RegisteredTable

Signature = npt.NDArray[np.uint16]

_FIRST_BLOCK: Final = 256
_GROWTH: Final = 4
_ROWS_SIGNED_AT_ONCE: Final = 8192


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
    passing: Passing | None = field(default=None, compare=False)

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
        procedure = SignatureProcedure.of(self.parameters)
        signature = procedure.sign_text(self.arguments.text)
        if signature is None or self.arguments.limit == 0:
            return Ranked.EMPTY
        found = [self._in_index(signature, stats)] if self.index and self.covered else []
        if self.signed:
            found.append(self._by_signing(procedure, signature))
        return Ranked.joined(found).ordered()[: self.arguments.limit]

    def _in_index(self, signature: Signature, stats: SearchStats) -> Ranked:
        assert self.index is not None
        reader = MinHashReader(self.index, self.table.snapshot)
        if self.exact:
            limit = self.arguments.limit
            return nearest(reader, signature, limit, self.covered, self.passing, False, stats)
        candidates = reader.candidates(signature, self.covered, stats)
        return _first_passing(candidates, self.arguments.limit, self.passing)

    def _by_signing(self, procedure: SignatureProcedure, signature: Signature) -> Ranked:
        """The rows of the fragments that are read, all those that pass the filter."""
        snapshot = self.table.snapshot
        rows = snapshot.live_rows(self.signed)
        if self.passing is not None:
            # It costs less to look at a row than to sign its text.
            rows = self.passing.passing(rows)
        if not rows:
            return Ranked.EMPTY
        column = self.arguments.column
        fields = [self.table.full_schema.field(column)]
        if snapshot.stable_row_ids:
            fields.append(pa.field(ROW_ID, pa.uint64()))
        keys = procedure.band_keys(signature[np.newaxis])
        addresses = rows.addresses()
        parts: list[Ranked] = []
        start = 0
        for batch in self.table.row_reader.fetch(
            rows, pa.schema(fields), None, _ROWS_SIGNED_AT_ONCE
        ):
            at = addresses[start : start + batch.num_rows]
            start += batch.num_rows
            ids = batch.column(1).to_numpy() if snapshot.stable_row_ids else at
            has_signature, signatures = procedure.sign(batch.column(0))
            at, ids = at[has_signature], ids[has_signature]
            if not self.exact:
                shared = (procedure.band_keys(signatures) == keys).any(axis=1)
                at, ids, signatures = at[shared], ids[shared], signatures[shared]
            different = (signatures != signature).sum(axis=1, dtype=np.uint16)
            parts.append(Ranked(at, ids, different))
        return Ranked.joined(parts)


def _first_passing(candidates: Ranked, limit: int, passing: Passing | None) -> Ranked:
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
