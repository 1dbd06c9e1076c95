"""What a search of the indexes did and what it cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class SearchStats:
    """Counters of one search; EXPLAIN ANALYZE prints them.

    `buckets` counts those that a MinHash search found documents in, `signatures_compared`
    the stored signatures that it ranked. `bitmaps_read`, `pages_read` and `bytes_read` count
    what came from files, not what was in the cache.
    """

    rows_found: int = 0
    buckets: int = 0
    signatures_compared: int = 0
    bitmaps_read: int = 0
    pages_read: int = 0
    bytes_read: int = 0
    search_seconds: float = 0.0
