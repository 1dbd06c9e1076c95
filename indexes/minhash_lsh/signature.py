"""Texts to signatures and signatures to band keys: the specification's Signature Procedure."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import repeat
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from .bulk_signature import WORTHWHILE, sign_in_bulk
from .parameters import MinHashParameters
from .permutations import Coefficients
from .shingles import SEED, hash_shingles, hash_shingles_of
from .tokenizer import token_function

_KEPT_PROCEDURES: Final = 64
_VALUES_AT_ONCE: Final = 2**24
"""Of signatures that are made at once: 32 MiB."""
_MINIMA_AT_ONCE: Final = 2**21
_TEXTS_AT_ONCE: Final = 4096
_BAND_SHIFT: Final = 56


class SignatureProcedure:
    """The procedure of signature version 0 for given parameters.

    Threads may share it. What it holds beside its result is bounded, for any number of texts.
    """

    def __init__(self, parameters: MinHashParameters) -> None:
        self.parameters = parameters
        self._coefficients = Coefficients.of(parameters.num_hashes)
        self._tokens_of = token_function(parameters.tokenizer.shapes)

    @staticmethod
    @lru_cache(maxsize=_KEPT_PROCEDURES)
    def of(parameters: MinHashParameters) -> SignatureProcedure:
        """The procedure for the parameters; equal ones share it."""
        return SignatureProcedure(parameters)

    def sign(
        self, texts: pa.Array | pa.ChunkedArray
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.uint16]]:
        """The signatures of texts of any of Arrow's text types.

        First, which of the n texts have one: those that are not NULL and have a token, shape
        (n,). Second, the m signatures of these, in their order, shape (m, num_hashes).
        """
        has_signature = np.zeros(len(texts), np.bool_)
        signatures = np.empty((len(texts), self.parameters.num_hashes), np.uint16)
        count = 0
        size = max(WORTHWHILE, _VALUES_AT_ONCE // self.parameters.num_hashes)
        for begin in range(0, len(texts), size):
            block = texts.slice(begin, size)
            found = sign_in_bulk(block, self.parameters) if len(block) >= WORTHWHILE else None
            signed, made = found or self.sign_one_by_one(block)
            has_signature[begin : begin + len(signed)] = signed
            signatures[count : count + len(made)] = made
            count += len(made)
        return has_signature, signatures[:count]

    def sign_one_by_one(
        self, texts: pa.Array | pa.ChunkedArray
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.uint16]]:
        """As `sign`, and never through an index of pylance's."""
        num_hashes = self.parameters.num_hashes
        has_signature = np.zeros(len(texts), np.bool_)
        signatures = np.empty((len(texts), num_hashes), np.uint16)
        position = count = 0
        for group in hash_shingles(
            _values(texts),
            self._tokens_of,
            self.parameters.shingle_size,
            max(1, _MINIMA_AT_ONCE // num_hashes),
        ):
            signed = group.counts > 0
            has_signature[position : position + len(signed)] = signed
            position += len(signed)
            minima = self._coefficients.minima(group.hashes, group.counts[signed])
            end = count + minima.shape[1]
            signatures[count:end] = self._coefficients.compress(minima)
            count = end
        return has_signature, signatures[:count]

    def sign_text(self, text: str | None) -> npt.NDArray[np.uint16] | None:
        """The signature of one text, shape (num_hashes,); None where it has none."""
        if text is None:
            return None
        hashes = hash_shingles_of(text, self._tokens_of, self.parameters.shingle_size)
        return self._coefficients.signature(hashes) if len(hashes) else None

    def band_keys(self, signatures: npt.NDArray[np.uint16]) -> npt.NDArray[np.uint64]:
        """The band keys of m signatures, shape (m, num_hashes): of shape (m, num_bands)."""
        count, num_bands = len(signatures), self.parameters.num_bands
        values = memoryview(np.ascontiguousarray(signatures, "<u2").tobytes())
        size = 2 * self.parameters.rows_per_band
        begins = range(0, len(values), size)
        bands = map(values.__getitem__, map(slice, begins, range(size, len(values) + 1, size)))
        hashes = np.fromiter(
            map(xxhash.xxh64_intdigest, bands, repeat(SEED)), np.uint64, len(begins)
        ).reshape(count, num_bands)
        numbers = np.arange(num_bands, dtype=np.uint64) << np.uint64(_BAND_SHIFT)
        return numbers | (hashes & np.uint64(2**_BAND_SHIFT - 1))


def _values(texts: pa.Array | pa.ChunkedArray) -> Iterator[str | None]:
    for begin in range(0, len(texts), _TEXTS_AT_ONCE):
        yield from texts.slice(begin, _TEXTS_AT_ONCE).to_pylist()
