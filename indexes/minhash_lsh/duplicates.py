"""What the searches for the duplicates of a whole table share: arguments, sizes, the result."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from ..errors import InvalidArgumentError
from .documents import Documents
from .duplicates_report import DuplicatesReport

MAX_BUCKET: Final = 1_000
"""How many rows a bucket may have for all their pairs to be compared and given."""

BATCH_ROWS: Final = 1 << 15

_SIGNATURE_BYTES: Final = 1 << 25


class Duplicates(NamedTuple):
    """A result that is computed while it is read; closing `batches` ends the work.

    `report` grows with every batch.
    """

    schema: pa.Schema
    batches: Generator[pa.RecordBatch, None, None]
    report: DuplicatesReport


def report_for(
    num_hashes: int, num_bands: int, max_distance: Any, max_bucket: Any
) -> DuplicatesReport:
    """A new report for the bound; raises `InvalidArgumentError` for arguments out of range."""
    if (
        isinstance(max_distance, bool)
        or not isinstance(max_distance, int | float | np.number)
        or not 0 <= max_distance <= 1
    ):
        raise InvalidArgumentError("max_distance", max_distance, "a number from 0 to 1")
    if isinstance(max_bucket, bool) or not isinstance(max_bucket, int) or max_bucket < 2:
        raise InvalidArgumentError("max_bucket", max_bucket, "an integer of at least 2")
    return DuplicatesReport(
        num_bands=num_bands,
        most_different=most_different(float(max_distance), num_hashes),
    )


def most_different(max_distance: float, num_hashes: int) -> int:
    """In how many positions signatures may differ for a distance of at most `max_distance`.

    >>> most_different(0.29, 100), 0.29 * 100
    (29, 28.999999999999996)
    """
    return int(np.count_nonzero(np.arange(num_hashes + 1) / num_hashes <= max_distance)) - 1


def entries_at_once(documents: Documents) -> int:
    """How many rows of the bands table to work on at once, so that their signatures take 32 MiB."""
    return max(1, _SIGNATURE_BYTES // (2 * documents.num_hashes))
