"""Brings a MinHash LSH index up to date with its table.

Texts of fragments without index are signed; segments are merged from their stored signatures, as
the specification has it (section Segments, Appends and Merging). pylance reads and signs all texts
again where it merges several. Like a build it writes files first and commits last, in one step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

import lance
import numpy as np

from ..cache import ReaderCache
from ..cancellation import cancellable
from ..conflicts import FASTER, with_retries
from ..dataset_files import DatasetFiles
from ..errors import CorruptIndexError, InvalidArgumentError, LanceIndexError, UnusableIndexError
from ..leftovers import mark
from ..manifest import IndexSegment, LanceIndex, absolute
from ..progress import Progress
from ..search_stats import SearchStats
from ..segment_commit import BuiltSegment, commit, removed_on_error
from ..snapshot import Snapshot
from .details import KIND, NEWEST_VERSION, TYPE_URL, parameters_of
from .documents import KEY_BITS
from .parameters import MinHashParameters
from .segment import opened
from .sources import Ids, Keys, SegmentSource, Signatures, SignedSource, Source
from .table_documents import signed_rows
from .writer import MOST_DOCUMENTS, Docs, write_bands, write_signatures

MOST_SEGMENTS: Final = 8
"""A search looks into every segment; beyond so many they are merged into one."""

_ENTRIES_AT_ONCE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What there is to do for an index.

    `uncovered` are the fragments that no segment answers for. `rewritten` are the segments that
    go, each with the fragments of which its documents are still right and move into a new one.
    """

    uncovered: frozenset[int]
    rewritten: Mapping[IndexSegment, frozenset[int]]

    def __bool__(self) -> bool:
        return bool(self.uncovered or self.rewritten)


def plan_upkeep(
    index: LanceIndex, snapshot: Snapshot, most_segments: int = MOST_SEGMENTS
) -> Upkeep:
    """What brings the index up to date.

    A segment is rewritten where it claims a fragment of the table that it does not answer for,
    or answers for none any more, and every one where there would be more than `most_segments`.

    Raises `UnusableIndexError` for an index that answers nothing in this version.
    """
    covered = snapshot.covered_by_segment(index)
    every = frozenset(snapshot.fragment_ids)
    uncovered = every.difference(*covered.values())
    stale = {s: here for s, here in covered.items() if not here or here != s.fragment_ids & every}
    after = len(covered) - len(stale) + bool(uncovered) + any(stale.values())
    return Upkeep(uncovered, covered if after > most_segments else stale)


def optimize_minhash_lsh(
    dataset: lance.LanceDataset,
    name: str,
    *,
    most_segments: int = MOST_SEGMENTS,
    progress: bool = True,
) -> bool:
    """Index what the MinHash LSH index `name` does not cover, and merge its segments.

    Fragments without index get a new segment. Segments of texts that were changed in their place
    are written again without those. With more than `most_segments` all are merged into one, of
    the signatures of the rows that are still there; no text is read for it. Returns whether there
    was anything to do; then `dataset` is at the new version.

    Where another writer is in the way it begins again from the new version, up to three times.

    Raises `InvalidArgumentError` where there is no such index, `UnusableIndexError` where it
    cannot be used any more, `CorruptIndexError` where a file of it is damaged, and
    `LanceIndexError` where other writers were faster every time.
    """
    dataset.checkout_latest()
    return cancellable(
        lambda: with_retries(
            dataset,
            lambda: _optimize(dataset, name, most_segments, progress),
            f"index {name!r} was not optimized: {FASTER}",
        )
    )


def _optimize(dataset: lance.LanceDataset, name: str, most_segments: int, progress: bool) -> bool:
    snapshot = Snapshot(dataset, ReaderCache(0))
    found = [i for i in snapshot.indexes if i.name == name and i.kind == KIND]
    if not found:
        raise InvalidArgumentError("name", name, "the name of a MinHash LSH index of the table")
    (index,) = found
    upkeep = plan_upkeep(index, snapshot, most_segments)
    if not upkeep:
        return False
    merging = {s: fragments for s, fragments in upkeep.rewritten.items() if fragments}
    with removed_on_error(dataset) as written:
        segments: list[BuiltSegment] = []
        if upkeep.uncovered:
            segments.append(sign_segment(index, snapshot, upkeep.uncovered, progress))
            written.append(segments[-1].uuid)
        if merging:
            segments.append(merge_segments(index, snapshot, merging, progress))
            written.append(segments[-1].uuid)
        if segments:
            commit(dataset, name, segments, list(upkeep.rewritten))
            return True
    return False


def sign_segment(
    index: LanceIndex, snapshot: Snapshot, fragments: frozenset[int], progress: bool = True
) -> BuiltSegment:
    """Write one segment of some fragments, whose texts are signed; nothing is committed."""
    parameters = parameters_of(index)
    column = snapshot.column_name(index.field_ids[0])
    if column is None:
        raise UnusableIndexError(index.name, "its column is gone")
    rows = len(snapshot.live_rows(fragments))
    with Progress(f"indexing {column}", rows, "rows", progress) as bar:
        signed = signed_rows(snapshot, column, sorted(fragments), parameters, bar.update)
    return _written(index, snapshot, [SignedSource(signed)], fragments, rows, progress)


def merge_segments(
    index: LanceIndex,
    snapshot: Snapshot,
    sources: Mapping[IndexSegment, frozenset[int]],
    progress: bool = True,
) -> BuiltSegment:
    """Write one segment with the documents of several, each for the given fragments alone.

    Nothing is committed. Raises `CorruptIndexError` for a damaged source.
    """
    made: list[Source] = []
    documents = 0
    for segment, fragments in sources.items():
        files, folder = snapshot.files_of(segment)
        found = opened(segment, files, folder, snapshot.cache, SearchStats())
        made.append(SegmentSource(found, snapshot, fragments))
        documents += found.num_docs
    every = frozenset[int]().union(*sources.values())
    return _written(index, snapshot, made, every, documents, progress)


def _written(
    index: LanceIndex,
    snapshot: Snapshot,
    sources: Sequence[Source],
    fragments: frozenset[int],
    documents: int,
    progress: bool,
) -> BuiltSegment:
    if documents > MOST_DOCUMENTS:
        raise LanceIndexError(
            f"index {index.name!r} was not optimized: {documents} documents are more than the "
            f"{MOST_DOCUMENTS} of a segment"
        )
    parameters, details = parameters_of(index), index.segments[0].details
    uuid = str(uuid4())
    files = DatasetFiles.at(snapshot.dataset, absolute(snapshot.manifest.root))
    folder = f"_indices/{uuid}"
    sizes: list[int] = []
    total = documents * (1 + parameters.num_bands)
    with (
        removed_on_error(snapshot.dataset, uuid),
        Progress(f"writing {index.name}", total, "entries", progress) as bar,
    ):
        mark(files, uuid)

        def blocks() -> Iterator[tuple[Ids, Signatures]]:
            for source in sources:
                count = 0
                for row_ids, signatures in source.documents():
                    count += len(row_ids)
                    bar.update(len(row_ids))
                    yield row_ids, signatures
                sizes.append(count)

        def entries() -> Iterator[tuple[Keys, Docs]]:
            for keys, docs in _entries(sources, sizes, parameters):
                bar.update(len(keys))
                yield keys, docs

        signatures = write_signatures(files, folder, details, parameters, blocks())
        bands = write_bands(files, folder, details, sum(sizes), entries())
    return BuiltSegment(
        uuid=uuid,
        column_id=index.field_ids[0],
        type_url=TYPE_URL,
        details=details,
        index_version=NEWEST_VERSION,
        dataset_version=snapshot.manifest.version,
        fragment_ids=tuple(sorted(fragments)),
        files=(signatures, bands),
    )


def _entries(
    sources: Sequence[Source], sizes: Sequence[int], parameters: MinHashParameters
) -> Iterator[tuple[Keys, Docs]]:
    """The rows of the bands file, ascending by key and then document, range of keys by range.

    Raises `CorruptIndexError` where a document is not in one bucket of each band.
    """
    slices = max(1, -(-sum(sizes) // _ENTRIES_AT_ONCE))
    starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])[:-1]
    for band in range(parameters.num_bands):
        count = 0
        for number in range(slices):
            low = (band << KEY_BITS) + (number << KEY_BITS) // slices
            high = (band << KEY_BITS) + ((number + 1) << KEY_BITS) // slices - 1
            found = [source.entries_between(low, high) for source in sources]
            keys = np.concatenate([keys for keys, _ in found])
            docs = np.concatenate(
                [docs + start for (_, docs), start in zip(found, starts, strict=True)]
            )
            # Each source is in order, and so are the documents of one after the other's.
            order = np.argsort(keys, kind="stable")
            count += len(keys)
            yield keys[order], docs[order].astype(np.uint32)
        if count != sum(sizes):
            raise CorruptIndexError(
                "bands.lance", f"{count} documents in band {band} of the segments, of {sum(sizes)}"
            )
