"""All signed rows of a version of a table: from an index, and signed where it has none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from ..errors import UnusableIndexError
from ..manifest import LanceIndex
from ..search_stats import SearchStats
from .documents import Documents, Part, SignedRows
from .parameters import MinHashParameters
from .rows import SegmentRows
from .scratch import scratch
from .segment import opened
from .segment_documents import SegmentDocuments
from .signature import SignatureProcedure

if TYPE_CHECKING:
    from ..snapshot import Snapshot

_TEXTS_AT_ONCE: Final = 8192


def indexed_documents(
    index: LanceIndex, snapshot: Snapshot, parameters: MinHashParameters, stats: SearchStats
) -> Documents:
    """The rows of the version: of a fragment that the index answers for from there, others signed.

    Raises what `opened` raises, and `UnusableIndexError` where the column is gone.
    """
    parts: list[Part] = []
    covered = snapshot.covered_by_segment(index)
    for segment, fragments in covered.items():
        if fragments:
            files, folder = snapshot.files_of(segment)
            found = opened(segment, files, folder, snapshot.cache, stats)
            rows = SegmentRows(found, snapshot, fragments)
            parts.append(SegmentDocuments(found, rows, snapshot.cache, stats))
    uncovered = [f for f in snapshot.fragment_ids if not any(f in c for c in covered.values())]
    column = snapshot.column_name(index.field_ids[0])
    if column is None:
        raise UnusableIndexError(index.name, "its column is gone")
    if uncovered:
        parts.append(signed_rows(snapshot, column, uncovered, parameters))
    return Documents(parts, parameters.num_hashes, parameters.num_bands)


def scanned_documents(column: str, snapshot: Snapshot, parameters: MinHashParameters) -> Documents:
    """The rows of the version, each of them signed."""
    part = signed_rows(snapshot, column, snapshot.fragment_ids, parameters)
    return Documents([part], parameters.num_hashes, parameters.num_bands)


def signed_rows(
    snapshot: Snapshot,
    column: str,
    fragment_ids: Sequence[int],
    parameters: MinHashParameters,
    scanned: Callable[[int], object] = lambda _: None,
) -> SignedRows:
    """The rows of fragments that have a signature, which is computed here.

    `scanned` is told of the rows of the table, so many at once, as they are signed.
    """
    procedure = SignatureProcedure.of(parameters)
    fragments = [snapshot.dataset.get_fragment(f) for f in fragment_ids]
    count = len(snapshot.live_rows(fragment_ids))
    row_ids = scratch((count,), np.uint64)
    signatures = scratch((count, parameters.num_hashes), np.uint16)
    keys = scratch((parameters.num_bands, count), np.uint64)
    scanner = snapshot.dataset.scanner(
        columns=[column], fragments=fragments, with_row_id=True, batch_size=_TEXTS_AT_ONCE
    )
    end = 0
    for batch in scanner.to_batches():
        signed, found = procedure.sign(batch.column(0))
        scanned(len(batch))
        here = slice(end, end + len(found))
        end = here.stop
        row_ids[here] = batch.column("_rowid").to_numpy()[signed]
        signatures[here] = found
        keys[:, here] = procedure.band_keys(found).T
    return SignedRows(row_ids[:end], signatures[:end], keys[:, :end].T)
