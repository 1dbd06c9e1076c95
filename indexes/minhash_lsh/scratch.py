"""Arrays to work in that may be larger than memory."""

from __future__ import annotations

import tempfile
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

_IN_MEMORY: Final = 1 << 26


def scratch(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """A new array with any values: in memory, or from 64 MiB on in a temporary file.

    The file has no name and is gone with the array.
    """
    kind = np.dtype(dtype)
    if prod(shape) * kind.itemsize < _IN_MEMORY:
        return np.empty(shape, dtype=kind)
    with tempfile.TemporaryFile() as file:
        return np.asarray(np.memmap(file, dtype=kind, mode="w+", shape=shape))
