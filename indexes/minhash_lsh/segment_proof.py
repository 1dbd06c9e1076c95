"""What the files of a segment hold of each row, and whether signatures and buckets agree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from ..check_report import Difference
from ..errors import CorruptIndexError
from ..manifest import IndexSegment
from ..row_digests import mixed
from ..search_stats import SearchStats
from ..snapshot import Snapshot
from .parameters import MinHashParameters
from .scratch import scratch
from .segment import ROW_ID, opened
from .signature import SignatureProcedure
from .stored_documents import stored_documents, stored_entries

_BAND_SHIFT: Final = 56

Addresses = npt.NDArray[np.uint64]
Signatures = npt.NDArray[np.uint16]


class SegmentProof:
    """One segment, beside the fragments of the table that it answers for.

    Methods raise `CorruptIndexError` for a file that fails a check.
    """

    def __init__(
        self,
        segment: IndexSegment,
        snapshot: Snapshot,
        fragments: frozenset[int],
        parameters: MinHashParameters,
    ) -> None:
        """Opens the files, with the specification's checks.

        Raises `UnsupportedVersionError` for one of a newer version, too.
        """
        files, folder = snapshot.files_of(segment)
        self._segment = opened(segment, files, folder, snapshot.cache, SearchStats())
        self._snapshot = snapshot
        self._procedure = SignatureProcedure.of(parameters)
        self.fragments = fragments
        self.steps = self._segment.num_docs + self._segment.bands.num_rows
        """How many documents and rows of the bands file there are to read."""

    def rows(self) -> Iterator[tuple[int, Addresses, Signatures]]:
        """All documents in blocks: their number, and of those that count address and signature.

        Those count that are live rows of the fragments that the segment answers for.
        """
        for block in stored_documents(self._segment):
            addresses, counts = self._located(block.row_ids)
            yield len(counts), addresses[counts], block.signatures[counts]

    def entries(self) -> Iterator[int]:
        """Reads both files to find `astray`; the numbers of documents and entries, as they go."""
        # The sum of a document's keys by its signature, less those of the buckets it is in.
        balance = scratch((self._segment.num_docs,), np.uint64)
        for block in stored_documents(self._segment):
            keys = mixed(self._procedure.band_keys(block.signatures))
            balance[block.first : block.first + len(keys)] = keys.sum(axis=1, dtype=np.uint64)
        for keys, docs in stored_entries(self._segment):
            np.subtract.at(balance, docs, mixed(keys))
            yield len(keys)
        self.astray = np.flatnonzero(balance)
        """The documents that are in other buckets than their signatures say, ascending."""

    def told_astray(self, most: int) -> list[Difference]:
        """In which buckets the first documents of `astray` are, and should be."""
        docs = self.astray[:most]
        if len(docs) == 0:
            return []
        has: dict[int, set[int]] = {doc: set() for doc in docs.tolist()}
        should: dict[int, set[int]] = {}
        row_of: dict[int, int | None] = {}
        for keys, documents in stored_entries(self._segment):
            at = np.flatnonzero(np.isin(documents, docs))
            for doc, key in zip(documents[at].tolist(), keys[at].tolist(), strict=True):
                has[doc].add(key)
        for block in stored_documents(self._segment):
            here = docs[(docs >= block.first) & (docs < block.first + len(block.row_ids))]
            at = here - block.first
            keys = self._procedure.band_keys(block.signatures[at])
            addresses, counts = self._located(block.row_ids[at])
            for doc, of_doc, address, live in zip(
                here.tolist(), keys.tolist(), addresses.tolist(), counts.tolist(), strict=True
            ):
                should[doc], row_of[doc] = set(of_doc), address if live else None
        return [
            Difference(_told_buckets(doc, has[doc], should[doc]), row_of[doc])
            for doc in docs.tolist()
        ]

    def signatures_of(self, rows: Addresses) -> Iterator[tuple[int, Signatures]]:
        """The signatures of some rows, each with the row's address."""
        for _, addresses, signatures in self.rows():
            for at in np.flatnonzero(np.isin(addresses, rows)).tolist():
                yield int(addresses[at]), signatures[at]

    def _located(self, row_ids: Addresses) -> tuple[Addresses, npt.NDArray[np.bool_]]:
        try:
            return self._snapshot.locate(row_ids, self.fragments)
        except ValueError as error:
            raise CorruptIndexError(self._segment.signatures.path, f"{ROW_ID}: {error}") from error


def _told_buckets(doc: int, has: set[int], should: set[int]) -> str:
    sides = (("lacks", should - has), ("has", has - should))
    told = [
        f"{what} it in bucket {key:#018x} of band {key >> _BAND_SHIFT}"
        for what, keys in sides
        for key in sorted(keys)[:1]
    ]
    # With the right keys, some stand there more than once; order rules that out.
    return f"as document {doc} the index {' and '.join(told)}"
