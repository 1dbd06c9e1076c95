"""Hashes of signatures and bands for grouping in memory; the index never holds them."""

from __future__ import annotations

from math import gcd
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .documents import Keys, Signatures

_WORD: Final = 8
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_SHIFT: Final = np.uint64(29)


def words(signatures: Signatures, values: int) -> npt.NDArray[Any]:
    """The same signatures as the widest integers of which `values` values are a whole number."""
    width = gcd(values * signatures.dtype.itemsize, _WORD)
    return np.ascontiguousarray(signatures).view(f"u{width}")


def mixed(values: npt.NDArray[Any]) -> Keys:
    """A hash of each row of unsigned integers: (n, k) to (n,). Not one against an adversary:
    equal hashes are a hint that has to be checked."""
    hashes = np.zeros(len(values), dtype=np.uint64)
    for column in range(values.shape[1]):
        hashes ^= values[:, column].astype(np.uint64)
        hashes *= _FACTOR
        hashes ^= hashes >> _SHIFT
    return hashes
