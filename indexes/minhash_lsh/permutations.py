"""Permutations, minima and compression: steps 4 to 6 of the Signature Procedure.

All arithmetic is on unsigned 64-bit integers modulo 2^64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

SEED: Final = 42
"""The state that SplitMix64 starts with."""

_INCREMENT: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST_FACTOR: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_FACTOR: Final = np.uint64(0x94D049BB133111EB)

_BLOCK: Final = 2**19
"""How many permuted hashes are held at once: 4 MiB, about what a core caches."""
_SHINGLES_IN_BLOCK: Final = 2**15


@dataclass(frozen=True, slots=True)
class Coefficients:
    """The numbers a, b and c of each permutation, uint64, shape (num_hashes,)."""

    a: npt.NDArray[np.uint64]
    b: npt.NDArray[np.uint64]
    c: npt.NDArray[np.uint64]

    @classmethod
    def of(cls, num_hashes: int) -> Coefficients:
        """They depend on the number of permutations only."""
        draws = _split_mix(3 * num_hashes)
        pairs, last = draws[: 2 * num_hashes], draws[2 * num_hashes :]
        one = np.uint64(1)
        return cls(a=pairs[0::2] | one, b=pairs[1::2].copy(), c=last | one)

    def minima(
        self, hashes: npt.NDArray[np.uint64], counts: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.uint64]:
        """Each permutation's least value over each text's shingles.

        `hashes` are all shingles' (shape (n,)), text by text; `counts` says how many each text
        has, at least one (shape (m,)). The result has shape (num_hashes, m).
        """
        found = np.full((len(self.a), len(counts)), np.iinfo(np.uint64).max, np.uint64)
        text_begins = np.cumsum(counts) - counts
        for begin in range(0, len(hashes), _SHINGLES_IN_BLOCK):
            block = hashes[begin : begin + _SHINGLES_IN_BLOCK]
            # The texts with shingles in the block; the first may have begun before it.
            first = int(np.searchsorted(text_begins, begin, "right")) - 1
            last = int(np.searchsorted(text_begins, begin + len(block), "left"))
            cuts = np.maximum(text_begins[first:last] - begin, 0)
            step = max(1, _BLOCK // len(block))
            for low in range(0, len(self.a), step):
                some = slice(low, low + step)
                permuted = self.a[some, None] * block
                permuted += self.b[some, None]
                least = np.minimum.reduceat(permuted, cuts, axis=1)
                target = found[some, first:last]
                np.minimum(target, least, out=target)
        return found

    def signature(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint16]:
        """The signature of one text, shape (num_hashes,), by its shingles' hashes: one or more."""
        if len(self.a) * len(hashes) > _BLOCK:
            return self.compress(self.minima(hashes, np.array([len(hashes)])))[0]
        permuted = self.a[:, None] * hashes
        permuted += self.b[:, None]
        return ((self.c * permuted.min(axis=1)) >> np.uint64(48)).astype(np.uint16)

    def compress(self, minima: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint16]:
        """The minima, shape (num_hashes, m), as signatures, shape (m, num_hashes)."""
        return ((self.c[:, None] * minima) >> np.uint64(48)).astype(np.uint16).T


def _split_mix(count: int) -> npt.NDArray[np.uint64]:
    """The first draws of SplitMix64."""
    state = np.uint64(SEED) + np.arange(1, count + 1, dtype=np.uint64) * _INCREMENT
    mixed = (state ^ (state >> np.uint64(30))) * _FIRST_FACTOR
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND_FACTOR
    return mixed ^ (mixed >> np.uint64(31))
