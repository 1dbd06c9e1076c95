"""Which fragments of a table version the segments of an index answer for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from .manifest import Fragment, IndexSegment, LanceIndex, Manifest

# Kinds whose files pylance itself carries over to the rows' new places: by remapping row
# addresses, or by holding row ids. Of any other kind only the claims on fragments that were
# there when it was built can be believed, since pylance extends them all the same.
_CARRIED_OVER = frozenset(
    {"BTree", "Bitmap", "LabelList", "NGram", "ZoneMap", "Inverted", "MinHashLsh"}
)


def covered_by_segment(
    index: LanceIndex,
    manifest: Manifest,
    built_over: Mapping[int, Manifest | None],
    recorded: Mapping[IndexSegment, frozenset[int]],
) -> dict[IndexSegment, frozenset[int]]:
    """The fragments for which each segment holds what the table holds now.

    `built_over` maps a segment's `dataset_version` to the manifest of that version, or None
    where that is gone. `recorded` has the segments that themselves tell of every fragment
    whether it still is what they were built from: of those, these fragments alone count.
    A fragment that a segment claims is left out where

    - it is not in this version, or another segment claims it too;
    - an overlay that is newer than the segment lies over the indexed column;
    - its file of the column is not the one of the version that the segment was built over.
      pylance drops such a fragment from the claims, but not after `update_columns` of a
      list column. A fragment that was not in that version, or whose version is gone, counts
      as changed where some column of it was rewritten, unless the indexed one is still in
      its first file.

    What pylance made of a changed fragment in a later compaction cannot be told any more.
    """
    claimed = {s: s.fragment_ids & recorded.get(s, s.fragment_ids) for s in index.segments}
    claims = Counter(f for fragments in claimed.values() for f in fragments)
    now = {fragment.id: fragment for fragment in manifest.fragments}
    fields = manifest.subtree(index.field_ids)
    return {
        segment: frozenset(
            fragment_id
            for fragment_id in claimed[segment] & now.keys()
            if claims[fragment_id] == 1
            and not _overlaid(now[fragment_id], fields, segment.dataset_version)
        )
        - (
            _changed(index, segment, now, fields, built_over.get(segment.dataset_version))
            if segment not in recorded
            else frozenset()
        )
        for segment in index.segments
    }


def _overlaid(fragment: Fragment, fields: frozenset[int], version: int) -> bool:
    return any(
        overlay.committed_version > version and not overlay.field_ids.isdisjoint(fields)
        for overlay in fragment.overlays
    )


def _changed(
    index: LanceIndex,
    segment: IndexSegment,
    now: Mapping[int, Fragment],
    fields: frozenset[int],
    then: Manifest | None,
) -> frozenset[int]:
    claimed = segment.fragment_ids & now.keys()
    before = {} if then is None else {f.id: f.holders(fields) for f in then.fragments}
    changed: set[int] = set()
    for fragment_id in claimed:
        holders = now[fragment_id].holders(fields)
        if fragment_id in before:
            if holders != before[fragment_id]:
                changed.add(fragment_id)
        elif index.kind not in _CARRIED_OVER or (
            now[fragment_id].has_tombstones and not now[fragment_id].first_holds(fields)
        ):
            changed.add(fragment_id)
    return frozenset(changed)
