"""Brings a list element index up to date with its table.

Like a build it writes files first and commits last, in one step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final
from uuid import uuid4

import lance

from ..cache import ReaderCache
from ..cancellation import cancellable
from ..conflicts import FASTER, with_retries
from ..dataset_files import DatasetFiles
from ..errors import InvalidArgumentError
from ..leftovers import mark
from ..manifest import IndexSegment, LanceIndex, absolute
from ..progress import Progress
from ..segment_commit import BuiltSegment, commit, removed_on_error
from ..snapshot import Snapshot
from .btree_files import PAGE_DATA_SCHEMA
from .btree_writer import write_btree
from .builder import SORT_MEMORY, build_segment
from .coverage import record
from .details import KIND, NEWEST_VERSION, TYPE_URL, details_of
from .merge import merged
from .segment_run import SegmentRun

MOST_SEGMENTS: Final = 8
"""A search looks into every segment; beyond so many they are merged into one."""

_THREADS: Final = 2


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What there is to do for an index.

    `uncovered` are the fragments that no segment answers for. `rewritten` are the segments that
    go, each with the fragments of which its entries are still right and move into a new one.
    """

    uncovered: frozenset[int]
    rewritten: Mapping[IndexSegment, frozenset[int]]

    def __bool__(self) -> bool:
        return bool(self.uncovered or self.rewritten)


def plan_upkeep(
    index: LanceIndex, snapshot: Snapshot, most_segments: int = MOST_SEGMENTS
) -> Upkeep:
    """What brings the index up to date.

    A segment is rewritten where the table has lost or changed a fragment that it was built
    from, and every one where there would be more than `most_segments`.

    Raises `UnusableIndexError` for an index that answers nothing in this version.
    """
    covered = snapshot.covered_by_segment(index)
    uncovered = frozenset(snapshot.fragment_ids).difference(*covered.values())
    stale = {s: here for s, here in covered.items() if here != _built_from(s)}
    after = len(covered) - len(stale) + bool(uncovered) + any(stale.values())
    return Upkeep(uncovered, covered if after > most_segments else stale)


def _built_from(segment: IndexSegment) -> frozenset[int]:
    """The fragments whose entries are in a segment's files."""
    built = details_of(segment).built
    return segment.fragment_ids if built is None else frozenset(f for f, _ in built)


def optimize_list_element(
    dataset: lance.LanceDataset,
    name: str,
    *,
    most_segments: int = MOST_SEGMENTS,
    sort_memory: int = SORT_MEMORY,
    progress: bool = True,
) -> bool:
    """Index what the list element index `name` does not cover, and tidy its segments.

    Fragments without index get a new segment. Segments with entries of fragments that
    compaction, updates or deletes have taken away are written again without those. With more
    than `most_segments` all are merged into one; entries are merged as they are, without
    reading the table. Returns whether there was anything to do; then `dataset` is at the new
    version.

    Where another writer is in the way it begins again from the new version, up to three times.

    Raises `InvalidArgumentError` where there is no such index, `UnusableIndexError` where it
    cannot be used any more, `CorruptIndexError` where a file of it is damaged, and
    `LanceIndexError` where other writers were faster every time.
    """
    dataset.checkout_latest()
    return cancellable(
        lambda: with_retries(
            dataset,
            lambda: _optimize(dataset, name, most_segments, sort_memory, progress),
            f"index {name!r} was not optimized: {FASTER}",
        )
    )


def _optimize(
    dataset: lance.LanceDataset, name: str, most_segments: int, sort_memory: int, progress: bool
) -> bool:
    snapshot = Snapshot(dataset, ReaderCache(0))
    found = [i for i in snapshot.indexes if i.name == name and i.kind == KIND]
    if not found:
        raise InvalidArgumentError("name", name, "the name of a list element index of the table")
    (index,) = found
    upkeep = plan_upkeep(index, snapshot, most_segments)
    if not upkeep:
        return False
    column = snapshot.column_name(index.field_ids[0]) or ""
    merging = {s: fragments for s, fragments in upkeep.rewritten.items() if fragments}
    with removed_on_error(dataset) as written:
        segments: list[BuiltSegment] = []
        if upkeep.uncovered:
            keys = [key.name for key in snapshot.keys_of(index)]
            built = build_segment(
                dataset,
                column,
                keys,
                fragment_ids=upkeep.uncovered,
                sort_memory=sort_memory,
                progress=progress,
            )
            written.append(built.uuid)
            segments.append(built)
        if merging:
            joined = merge_segments(index, snapshot, merging, sort_memory, progress)
            written.append(joined.uuid)
            segments.append(joined)
        if segments:
            commit(dataset, name, segments, list(upkeep.rewritten))
            return True
    return False


def merge_segments(
    index: LanceIndex,
    snapshot: Snapshot,
    sources: Mapping[IndexSegment, frozenset[int]],
    memory: int = SORT_MEMORY,
    progress: bool = True,
) -> BuiltSegment:
    """Write one segment with the entries of several, each for the given fragments alone.

    Nothing is committed. Raises `CorruptIndexError` for a damaged source.
    """
    keys = snapshot.keys_of(index)
    fragment_ids = tuple(sorted(frozenset[int]().union(*sources.values())))
    key_ids = tuple(key.field_id for key in keys)
    details = replace(
        details_of(next(iter(sources))),
        keys=tuple(key.name for key in keys),
        built=record(snapshot.manifest, fragment_ids, key_ids),
    )
    uuid = str(uuid4())
    files = DatasetFiles.at(snapshot.dataset, absolute(snapshot.manifest.root))
    with (
        removed_on_error(snapshot.dataset, uuid),
        Progress(f"merging {index.name}", None, "entries", progress) as bar,
    ):
        mark(files, uuid)
        runs = [
            SegmentRun(segment, *snapshot.files_of(segment), fragments, bar.update)
            for segment, fragments in sources.items()
        ]
        bar.expect(sum(run.rows for run in runs))
        pages = sum(len(run.ends) for run in runs)
        size = sum(size for segment in sources for _, size in segment.files)
        room = memory * max(1, pages) // max(1, size)
        batches = merged(runs, PAGE_DATA_SCHEMA, _THREADS, room)
        written = write_btree(files, f"_indices/{uuid}", batches)
    return BuiltSegment(
        uuid=uuid,
        column_id=index.field_ids[0],
        type_url=TYPE_URL,
        details=details.encode(),
        index_version=NEWEST_VERSION,
        dataset_version=snapshot.manifest.version,
        fragment_ids=fragment_ids,
        files=written,
    )
