"""The signed rows of a table as numbered documents, whatever holds them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.uint64]
Keys = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]
Signatures = npt.NDArray[np.uint16]

KEY_BITS: Final = 56
"""A band key's upper byte is the number of its band, the rest a hash (step 7 of the Signature
Procedure), so that the keys of a band are spread evenly over 2^56."""

_BLOCK_BYTES: Final = 1 << 20


class Part(Protocol):
    """Some documents, numbered from 0 on: a segment, or the rows that no segment covers."""

    @property
    def row_ids(self) -> Ids:
        """The row id of each document, as the table gives it in `_rowid`."""
        ...

    def entries_between(self, low: int, high: int) -> tuple[Keys, Numbers]:
        """The bands table's rows with `low <= key <= high`, both of one band: keys, ascending,
        and numbers of documents. Without documents that are not among the table's rows."""
        ...

    def signatures(self, numbers: Numbers) -> Signatures:
        """Signatures of the documents with the given numbers, in any order: (n, num_hashes)."""
        ...


class Documents:
    """All signed rows of a table: its parts, with numbers that go on from one to the next.

    No two documents that `entries` gives have the same row id.
    """

    def __init__(self, parts: Sequence[Part], num_hashes: int, num_bands: int) -> None:
        self.num_hashes = num_hashes
        self.num_bands = num_bands
        self._parts = tuple(parts)
        sizes = [len(part.row_ids) for part in parts]
        self._starts: Numbers = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        self.row_ids: Ids = np.concatenate(
            [np.empty(0, dtype=np.uint64), *(part.row_ids for part in parts)]
        )

    def __len__(self) -> int:
        return len(self.row_ids)

    @property
    def block_rows(self) -> int:
        """How many signatures are worked on at once, so that they stay in the processor's cache
        and in memory that the allocator has at hand."""
        return max(1, _BLOCK_BYTES // (2 * self.num_hashes))

    def entries(self, band: int, at_once: int) -> Iterator[tuple[Keys, Numbers]]:
        """The rows of the bands table that belong to one band: keys, ascending, and documents.

        They come in slices of about `at_once`, and no bucket is in two slices; one that is
        larger makes its slice larger.
        """
        slices = max(1, -(-len(self) // at_once))
        for number in range(slices):
            low = (band << KEY_BITS) + (number << KEY_BITS) // slices
            high = (band << KEY_BITS) + ((number + 1) << KEY_BITS) // slices - 1
            found = [part.entries_between(low, high) for part in self._parts]
            filled = [
                (keys, documents + start)
                for (keys, documents), start in zip(found, self._starts[:-1], strict=True)
                if len(keys)
            ]
            if not filled:
                continue
            if len(filled) == 1:
                yield filled[0]
                continue
            keys = np.concatenate([keys for keys, _ in filled])
            order = np.argsort(keys, kind="stable")
            yield keys[order], np.concatenate([documents for _, documents in filled])[order]

    def signatures(self, documents: Numbers) -> Signatures:
        """Signatures of the given documents, in any order: (n, num_hashes)."""
        if len(self._parts) == 1:
            return self._parts[0].signatures(documents)
        signatures = np.empty((len(documents), self.num_hashes), dtype=np.uint16)
        part_of = np.searchsorted(self._starts, documents, side="right") - 1
        for number, (part, start) in enumerate(zip(self._parts, self._starts[:-1], strict=True)):
            here = np.flatnonzero(part_of == number)
            if len(here):
                signatures[here] = part.signatures(documents[here] - start)
        return signatures


class SignedRows:
    """A part that is held in memory; not thread-safe.

    `row_ids` has shape (n,), `signatures` (n, num_hashes), `keys` (n, num_bands).
    """

    def __init__(self, row_ids: Ids, signatures: Signatures, keys: Keys) -> None:
        self.row_ids = row_ids
        self._signatures = signatures
        self._keys = keys
        self._sorted: tuple[int, Keys, Numbers] | None = None

    def entries_between(self, low: int, high: int) -> tuple[Keys, Numbers]:
        """The rows of the bands table with `low <= key <= high`: see `Part`."""
        band = low >> KEY_BITS
        if self._sorted is None or self._sorted[0] != band:
            of_band = self._keys[:, band]
            order = np.argsort(of_band, kind="stable")
            self._sorted = (band, of_band[order], order)
        _, keys, numbers = self._sorted
        start = np.searchsorted(keys, np.uint64(low), side="left")
        end = np.searchsorted(keys, np.uint64(high), side="right")
        return keys[start:end], numbers[start:end]

    def signatures(self, numbers: Numbers) -> Signatures:
        """Signatures of the rows with the given numbers: see `Part`."""
        return self._signatures.take(numbers, axis=0)
