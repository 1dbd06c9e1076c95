"""Signatures made up for tests, and what a comparison of all with all says of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from datafusion_lance.indexes.minhash_lsh.documents import Documents, SignedRows

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows with signatures (n, num_hashes) and row ids (n,), in `parts` parts."""

    signatures: npt.NDArray[np.uint16]
    row_ids: npt.NDArray[np.uint64]
    num_bands: int
    part_of: npt.NDArray[np.int64]

    @property
    def num_hashes(self) -> int:
        return self.signatures.shape[1]

    def documents(self) -> Documents:
        keys = band_keys(self.signatures, self.num_bands)
        parts = [
            SignedRows(self.row_ids[here], self.signatures[here], keys[here])
            for part in range(int(self.part_of.max(initial=0)) + 1)
            for here in [self.part_of == part]
        ]
        return Documents(parts, self.num_hashes, self.num_bands)

    def near(self, most_different: int) -> dict[Pair, int]:
        """The pairs that share a band and differ in so many positions, with how many."""
        found: dict[Pair, int] = {}
        order = np.argsort(self.row_ids)
        for one, other in combinations(order.tolist(), 2):
            unequal = self.signatures[one] != self.signatures[other]
            shared = ~unequal.reshape(self.num_bands, -1).any(axis=1)
            if unequal.sum() <= most_different and shared.any():
                pair = int(self.row_ids[one]), int(self.row_ids[other])
                found[pair] = int(unequal.sum())
        return found


def band_keys(signatures: npt.NDArray[np.uint16], num_bands: int) -> npt.NDArray[np.uint64]:
    """Keys as the specification shapes them, of another hash."""
    width = signatures.shape[1] // num_bands
    bands = np.ascontiguousarray(signatures).reshape(len(signatures), num_bands, width)
    keys = np.empty(bands.shape[:2], dtype=np.uint64)
    for row, band in np.ndindex(keys.shape):
        digest = hashlib.blake2b(bands[row, band].tobytes(), digest_size=7).digest()
        keys[row, band] = (band << 56) | int.from_bytes(digest, "little")
    return keys


def clusters(pairs: Iterable[Pair]) -> dict[int, int]:
    """The smallest row id of its component for each row of a pair."""
    parents: dict[int, int] = {}

    def root(row: int) -> int:
        while parents.setdefault(row, row) != row:
            row = parents[row]
        return row

    for one, other in pairs:
        low, high = sorted((root(one), root(other)))
        parents[high] = low
    return {row: root(row) for row in parents}


@st.composite
def rows(draw: st.DrawFn, most_rows: int = 24) -> Rows:
    """Few rows with few different values, so that many are near each other or identical."""
    num_bands, width = draw(st.sampled_from([(1, 1), (2, 2), (4, 1), (3, 3), (5, 2), (4, 8)]))
    count = draw(st.integers(0, most_rows))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = draw(st.sampled_from([1, 2, 3, 40]))
    signatures = rng.integers(0, values, (count, num_bands * width)).astype(np.uint16)
    if count:
        # Copies with a change here and there.
        source = rng.integers(0, count, count)
        kept = rng.random(signatures.shape) < draw(st.sampled_from([0.0, 0.5, 0.9, 1.0]))
        signatures = np.where(kept, signatures[source], signatures)
    row_ids = rng.choice(1 << 40, count, replace=False).astype(np.uint64)
    return Rows(signatures, row_ids, num_bands, rng.integers(0, draw(st.integers(1, 3)), count))
