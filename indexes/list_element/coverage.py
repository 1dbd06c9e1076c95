"""Which fragments hold what they held when a segment was built.

The manifest's fragment bitmap does not tell: with stable row ids pylance extends it to
fragments whose rows were never indexed, and rewriting a list column in place leaves it as
it was. So a segment that this package builds records, for each fragment that it read, which
data files held the keys: their names are unique, and a file never changes. Deleting rows
changes neither the files nor the addresses of the other rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from ..manifest import Fragment, IndexSegment, LanceIndex, Manifest
from .details import ListElementIndexDetails, details_of


def fingerprint(fragment: Fragment, key_field_ids: Iterable[int]) -> int:
    """64 bits that tell the data files that hold the keys from any others."""
    names = sorted(fragment.holders(frozenset(key_field_ids)))
    # A zero byte is in no file's name.
    return int.from_bytes(blake2b("\0".join(names).encode(), digest_size=8).digest())


def record(
    manifest: Manifest, fragment_ids: Iterable[int], key_field_ids: Iterable[int]
) -> tuple[tuple[int, int], ...]:
    """What `ListElementIndexDetails.built` says of the given fragments, ascending."""
    wanted, keys = frozenset(fragment_ids), tuple(key_field_ids)
    return tuple(
        (fragment.id, fingerprint(fragment, keys))
        for fragment in sorted(manifest.fragments, key=lambda fragment: fragment.id)
        if fragment.id in wanted
    )


def unchanged_fragments(
    details: ListElementIndexDetails, manifest: Manifest
) -> frozenset[int] | None:
    """The fragments that still have the keys' data files that the segment was built from.

    None where the segment has no record, as one that another writer has built.
    """
    if details.built is None:
        return None
    built, keys = dict(details.built), details.key_field_ids
    return frozenset(
        fragment.id
        for fragment in manifest.fragments
        if fragment.id in built and built[fragment.id] == fingerprint(fragment, keys)
    )


def recorded_fragments(index: LanceIndex, manifest: Manifest) -> dict[IndexSegment, frozenset[int]]:
    """`unchanged_fragments` of each segment that has a record."""
    found: dict[IndexSegment, frozenset[int]] = {}
    for segment in index.segments:
        unchanged = unchanged_fragments(details_of(segment), manifest)
        if unchanged is not None:
            found[segment] = unchanged
    return found
