"""Signature File: in how many positions stored signatures differ from a given one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..cache import ReaderCache
from ..errors import CorruptIndexError
from ..search_stats import SearchStats
from .mapped_column import MappedLists, map_lists
from .segment import SIGNATURE, Segment

Signature = npt.NDArray[np.uint16]
Signatures = npt.NDArray[np.uint16]
Differences = npt.NDArray[np.uint16]

# Comparing works in blocks that stay in the processor's cache, of so many positions.
_BLOCK: Final = 1 << 20
_WORD: Final = 64
# From that share of a segment's signatures on, all of them in a row are read faster.
_SEQUENTIAL_FROM: Final = 8
# So many bytes of signatures are read at once through pylance, and so many rows taken.
_READ_BYTES: Final = 1 << 25
_TAKEN_ROWS: Final = 1 << 13
# Below so many bytes of signatures a second thread costs more than it helps.
_THREADS_FROM: Final = 1 << 24
_MOST_THREADS: Final = 4


def count_differences(signatures: Signatures, signature: Signature) -> Differences:
    """In how many positions each of `signatures` (n, k) differs from `signature` (k,): (n,)."""
    rows, hashes = signatures.shape
    different = np.empty(rows, dtype=np.uint16)
    width = -(-hashes // _WORD) * _WORD
    step = max(1, min(rows, _BLOCK // width))
    # Filled up with equal positions to whole words of bits.
    unequal = np.zeros((step, width), dtype=np.bool_)
    for start in range(0, rows, step):
        block = signatures[start : start + step]
        here = unequal[: len(block)]
        np.not_equal(block, signature, out=here[:, :hashes])
        bits = np.packbits(here.reshape(-1)).view(np.uint64).reshape(len(block), -1)
        counts = np.bitwise_count(bits)
        total = different[start : start + step]
        total[:] = counts[:, 0]
        for word in range(1, counts.shape[1]):
            total += counts[:, word]
    return different


class SignatureFile:
    """The signatures of one segment; thread-safe.

    Raises `CorruptIndexError` for what is not as written.
    """

    def __init__(self, segment: Segment, cache: ReaderCache) -> None:
        """Reads nothing yet."""
        self._segment = segment
        self._cache = cache

    def differences(
        self, signature: Signature, docs: npt.NDArray[np.uint32] | None, stats: SearchStats
    ) -> Differences:
        """In how many positions the signatures of `docs`, ascending, differ from `signature`.

        None stands for all documents.
        """
        num_docs, hashes = self._segment.num_docs, self._segment.parameters.num_hashes
        count = num_docs if docs is None else len(docs)
        if count == 0:
            return np.empty(0, dtype=np.uint16)
        source = self._source()
        if docs is None or count * _SEQUENTIAL_FROM >= num_docs:
            different = self._all(source, signature)
            count = num_docs
            if docs is not None:
                different = different[docs]
        else:
            rows = docs.astype(np.int64)
            different = np.concatenate(
                [
                    count_differences(source.take(rows[at : at + _TAKEN_ROWS]), signature)
                    for at in range(0, count, _TAKEN_ROWS)
                ]
            )
        stats.signatures_compared += count
        stats.bytes_read += count * hashes * 2
        return different

    def _all(self, source: MappedLists | _Read, signature: Signature) -> Differences:
        rows = self._segment.num_docs
        threads = 1
        if isinstance(source, MappedLists) and rows * len(signature) * 2 >= _THREADS_FROM:
            threads = min(_MOST_THREADS, os.cpu_count() or 1)
        bounds = [rows * at // threads for at in range(threads + 1)]

        def part(at: int) -> list[Differences]:
            runs = source.runs(bounds[at], bounds[at + 1])
            return [count_differences(run, signature) for run in runs]

        if threads == 1:
            return np.concatenate(part(0))
        with ThreadPoolExecutor(threads) as pool:
            return np.concatenate([d for found in pool.map(part, range(threads)) for d in found])

    def _source(self) -> MappedLists | _Read:
        def load() -> tuple[MappedLists | _Read, int]:
            file, hashes = self._segment.signatures, self._segment.parameters.num_hashes
            mapped = map_lists(file, 1, np.uint16, hashes)
            return mapped or _Read(self._segment), 0

        return self._cache.get((*self._segment.key, "signatures"), load, handles=1)


class _Read:
    """Signatures that pylance reads, wherever the file is."""

    def __init__(self, segment: Segment) -> None:
        self._file = segment.signatures
        self._hashes = segment.parameters.num_hashes

    def take(self, docs: npt.NDArray[np.int64]) -> Signatures:
        return self._decoded(self._file.take_rows(docs.tolist()).to_batches(), len(docs))

    def runs(self, start: int, end: int) -> Iterator[Signatures]:
        step = max(1, _READ_BYTES // (2 * self._hashes))
        for at in range(start, end, step):
            count = min(step, end - at)
            yield self._decoded([self._file.read_range(at, count)], count)

    def _decoded(self, batches: list[pa.RecordBatch], rows: int) -> Signatures:
        columns = [batch.column(SIGNATURE) for batch in batches]
        expected = pa.list_(pa.uint16(), self._hashes)
        if any(column.type != expected for column in columns):
            raise CorruptIndexError(self._file.path, f"a signature is not of {expected}")
        # A list that is null has no values, so its own count has to be looked at, too.
        values = [column.flatten() for column in columns]
        if any(array.null_count for array in (*columns, *values)):
            raise CorruptIndexError(self._file.path, "a signature with a null value")
        read = np.concatenate([v.to_numpy() for v in values]).reshape(-1, self._hashes)
        if len(read) != rows:
            raise CorruptIndexError(self._file.path, f"{len(read)} signatures of {rows}")
        return read
