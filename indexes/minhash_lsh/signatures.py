"""Signature File: in how many positions stored signatures differ from a given one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..cache import ReaderCache
from ..errors import CorruptIndexError
from ..lance_file import OpenFile
from ..search_stats import SearchStats
from .mapped_column import MappedLists, map_lists
from .ranged_column import RangedLists, ranged_lists
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
# No more than that part of the cache is for the signatures of one segment.
_PART_OF_CACHE: Final = 2
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

    def take(self, docs: npt.NDArray[np.int64], stats: SearchStats) -> Signatures:
        """The signatures of `docs`, which ascend strictly: (n, num_hashes)."""
        hashes = self._segment.parameters.num_hashes
        source = self._source(stats)
        parts = [
            source.take(docs[at : at + _TAKEN_ROWS]) for at in range(0, len(docs), _TAKEN_ROWS)
        ]
        return np.concatenate([np.empty((0, hashes), dtype=np.uint16), *parts])

    def differences(
        self, signature: Signature, docs: npt.NDArray[np.uint32] | None, stats: SearchStats
    ) -> Differences:
        """In how many positions the signatures of `docs`, ascending, differ from `signature`.

        None stands for all documents.
        """
        num_docs = self._segment.num_docs
        count = num_docs if docs is None else len(docs)
        if count == 0:
            return np.empty(0, dtype=np.uint16)
        source = self._source(stats)
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
        return different

    def _all(self, source: _Source, signature: Signature) -> Differences:
        rows = self._segment.num_docs
        threads = 1
        if isinstance(source, _Mapped) and rows * len(signature) * 2 >= _THREADS_FROM:
            threads = min(_MOST_THREADS, os.cpu_count() or 1)
        bounds = [rows * at // threads for at in range(threads + 1)]

        def part(at: int) -> list[Differences]:
            runs = source.runs(bounds[at], bounds[at + 1])
            return [count_differences(run, signature) for run in runs]

        if threads == 1:
            return np.concatenate(part(0))
        with ThreadPoolExecutor(threads) as pool:
            return np.concatenate([d for found in pool.map(part, range(threads)) for d in found])

    def _source(self, stats: SearchStats) -> _Source:
        def load() -> tuple[MappedLists | RangedLists | OpenFile, int]:
            file, hashes = self._segment.signatures, self._segment.parameters.num_hashes
            found = map_lists(file, 1, np.uint16, hashes)
            found = found or ranged_lists(file, 1, np.uint16, hashes)
            return found or self._segment.signature_file([SIGNATURE], stats), 0

        key = (*self._segment.key, "signatures")
        found = self._cache.get(key, load, handles=1)
        if isinstance(found, MappedLists):
            return _Mapped(found, stats)
        made = (
            _Ranged(found, stats)
            if isinstance(found, RangedLists)
            else _Read(found, self._segment.parameters.num_hashes, stats)
        )
        if self._segment.signatures.local_path is not None:
            return made
        return _Kept(made, self._segment, self._cache)


class _Source(Protocol):
    """Where the signatures come from; what is read is counted."""

    def take(self, docs: npt.NDArray[np.int64]) -> Signatures:
        """The signatures of `docs`, which ascend strictly: (n, num_hashes)."""
        ...

    def runs(self, start: int, end: int) -> Iterator[Signatures]:
        """Those from `start` up to `end`, some at a time."""
        ...


class _Mapped:
    """Signatures in a local file that is mapped into memory."""

    def __init__(self, lists: MappedLists, stats: SearchStats) -> None:
        self._lists = lists
        self._stats = stats

    def take(self, docs: npt.NDArray[np.int64]) -> Signatures:
        return _counted(self._lists.take(docs), self._stats)

    def runs(self, start: int, end: int) -> Iterator[Signatures]:
        return (_counted(run, self._stats) for run in self._lists.runs(start, end))


class _Ranged:
    """Signatures that are read by ranges of bytes."""

    def __init__(self, lists: RangedLists, stats: SearchStats) -> None:
        self._lists = lists
        self._stats = stats

    def take(self, docs: npt.NDArray[np.int64]) -> Signatures:
        return _counted(self._lists.take(docs, self._stats), self._stats)

    def runs(self, start: int, end: int) -> Iterator[Signatures]:
        for at, count in _steps(start, end, self._lists.items):
            yield _counted(self._lists.run(at, count, self._stats), self._stats)


class _Read:
    """Signatures that pylance reads, wherever the file is."""

    def __init__(self, file: OpenFile, hashes: int, stats: SearchStats) -> None:
        self._file = file
        self._hashes = hashes
        self._stats = stats

    def take(self, docs: npt.NDArray[np.int64]) -> Signatures:
        read = self._file.take_rows(docs.tolist(), self._stats)
        return self._decoded(read.to_batches(), len(docs))

    def runs(self, start: int, end: int) -> Iterator[Signatures]:
        for at, count in _steps(start, end, self._hashes):
            yield self._decoded([self._file.read_range(at, count, self._stats)], count)

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
        return _counted(read, self._stats)


class _Kept:
    """Signatures of a file in an object store: those that were read are kept in the cache.

    All of them are kept together where they take no more than a part of it; else those that were
    taken together, for the same search again.
    """

    def __init__(self, source: _Ranged | _Read, segment: Segment, cache: ReaderCache) -> None:
        self._source = source
        self._num_docs = segment.num_docs
        self._nbytes = segment.num_docs * segment.parameters.num_hashes * 2
        self._cache = cache
        self._key = (*segment.key, "kept signatures")

    def take(self, docs: npt.NDArray[np.int64]) -> Signatures:
        every: Signatures | None = self._cache.peek(self._key)
        if every is not None:
            return every[docs]
        which = docs.tobytes()

        def load() -> tuple[Signatures, int]:
            read = self._source.take(docs)
            return read, read.nbytes + len(which)

        return self._cache.get((*self._key, which), load)

    def runs(self, start: int, end: int) -> Iterator[Signatures]:
        every: Signatures | None = self._cache.peek(self._key)
        if every is not None:
            yield every[start:end]
            return
        whole = (start, end) == (0, self._num_docs)
        keeps = whole and self._nbytes * _PART_OF_CACHE <= self._cache.byte_limit
        read: list[Signatures] = []
        for run in self._source.runs(start, end):
            yield run
            if keeps:
                read.append(run)
        if keeps:
            self._cache.put(self._key, np.concatenate(read), self._nbytes)


def _steps(start: int, end: int, hashes: int) -> Iterator[tuple[int, int]]:
    """Where to begin and how many signatures to read, so that they are not too many bytes."""
    step = max(1, _READ_BYTES // (2 * hashes))
    return ((at, min(step, end - at)) for at in range(start, end, step))


def _counted(read: Signatures, stats: SearchStats) -> Signatures:
    stats.read(read.nbytes)
    return read
