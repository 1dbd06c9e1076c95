"""Rows that no index covers, signed: their texts are read, and their signatures kept.

Specification: Segments, Appends and Merging ("signing them on the fly").
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..indexes.minhash_lsh.parameters import MinHashParameters
from ..indexes.minhash_lsh.ranked import Ranked
from ..indexes.minhash_lsh.signature import SignatureProcedure
from ..indexes.row_set import RowSet
from .fragment_scan import ROW_ID
from .registry import RegisteredTable

_ROWS_AT_ONCE: Final = 8192
_ROW_BYTES: Final = 16
# What is kept of one table is at most this part of all that a session keeps.
_SHARE: Final = 4


@dataclass(frozen=True, slots=True)
class SignedRows:
    """Rows that have a signature: n addresses, n row ids, and signatures (n, num_hashes)."""

    addresses: npt.NDArray[np.uint64]
    row_ids: npt.NDArray[np.uint64]
    signatures: npt.NDArray[np.uint16]

    def ranked(self, signature: npt.NDArray[np.uint16], num_bands: int | None) -> Ranked:
        """The rows in how many positions they differ from a signature, in no order.

        With `num_bands` only those that have one of so many bands in common with it.
        """
        equal = self.signatures == signature
        different = (equal.shape[1] - equal.sum(axis=1)).astype(np.uint16)
        rows = Ranked(self.addresses, self.row_ids, different)
        if num_bands is None:
            return rows
        # A band's key is a hash of its values.
        bands = equal.reshape(len(equal), num_bands, equal.shape[1] // num_bands)
        return rows[bands.all(axis=2).any(axis=1)]

    def among(self, rows: RowSet) -> SignedRows:
        """Those that are in `rows`."""
        inside = np.isin(self.addresses, rows.addresses())
        return SignedRows(self.addresses[inside], self.row_ids[inside], self.signatures[inside])

    @property
    def nbytes(self) -> int:
        return self.addresses.nbytes + self.row_ids.nbytes + self.signatures.nbytes


def signed_rows(
    table: RegisteredTable,
    column: str,
    fragment_ids: Collection[int],
    parameters: MinHashParameters,
    rows: RowSet | None,
) -> Iterator[SignedRows]:
    """The live rows in the fragments (of `rows`, where they are given), some at a time.

    Signatures of whole fragments are kept for the next time, as far as the session keeps so
    much; else they are signed as the iteration goes on.
    """
    snapshot = table.snapshot
    live = snapshot.live_rows(fragment_ids) if rows is None else rows
    budget = snapshot.cache.byte_limit // _SHARE
    for fragment_id in live.fragment_ids:
        here = live.restrict((fragment_id,))
        key = (snapshot.manifest.digest, "signed", column, parameters, fragment_id)
        kept: SignedRows | None = snapshot.cache.peek(key)
        if kept is not None:
            yield from _pieces(kept if rows is None else kept.among(here))
            continue
        signing = _sign(table, column, here, SignatureProcedure.of(parameters))
        budget -= len(here) * (2 * parameters.num_hashes + _ROW_BYTES)
        if rows is not None or budget < 0:
            yield from signing
            continue
        kept = _joined(list(signing), parameters)
        snapshot.cache.put(key, kept, kept.nbytes)
        yield from _pieces(kept)


def _sign(
    table: RegisteredTable, column: str, rows: RowSet, procedure: SignatureProcedure
) -> Iterator[SignedRows]:
    stable = table.snapshot.stable_row_ids
    fields = [table.full_schema.field(column)]
    if stable:
        fields.append(pa.field(ROW_ID, pa.uint64()))
    addresses = rows.addresses()
    start = 0
    for batch in table.row_reader.fetch(rows, pa.schema(fields), None, _ROWS_AT_ONCE):
        at = addresses[start : start + batch.num_rows]
        start += batch.num_rows
        # Without stable row ids a row's id is its address.
        ids = batch.column(1).to_numpy() if stable else at
        has_signature, signatures = procedure.sign(batch.column(0))
        yield SignedRows(at[has_signature], ids[has_signature], signatures)


def _pieces(rows: SignedRows) -> Iterator[SignedRows]:
    for start in range(0, len(rows.addresses), _ROWS_AT_ONCE):
        piece = slice(start, start + _ROWS_AT_ONCE)
        yield SignedRows(rows.addresses[piece], rows.row_ids[piece], rows.signatures[piece])


def _joined(parts: list[SignedRows], parameters: MinHashParameters) -> SignedRows:
    ids = [np.empty(0, np.uint64)]
    signatures = [np.empty((0, parameters.num_hashes), np.uint16)]
    return SignedRows(
        np.concatenate([*ids, *(part.addresses for part in parts)]),
        np.concatenate([*ids, *(part.row_ids for part in parts)]),
        np.concatenate([*signatures, *(part.signatures for part in parts)]),
    )
