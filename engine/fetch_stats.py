"""What one index scan did: its search, and the reading of the rows it found."""

from __future__ import annotations

from dataclasses import dataclass

from ..indexes.search_stats import SearchStats


@dataclass
class ScanStats(SearchStats):
    """The search's counters and the fetch's; EXPLAIN ANALYZE prints them.

    `fetch` is how rows were read: `take` (by address), `scan` (whole fragments, masked),
    `scan+take` (both), `cache` (from columns kept in memory), `count` (counted without
    reading any) or `none` (there were none). `rows_fetched` counts rows before the pushed
    filter, `fetch_bytes` their bytes in memory, `rows_returned` rows after it; `fetch_seconds`
    is the partitions' time together.
    """

    fetch: str = "none"
    rows_fetched: int = 0
    fetch_bytes: int = 0
    fetch_seconds: float = 0.0
    rows_returned: int = 0

    def fetched(self, method: str, rows: int, nbytes: int, seconds: float) -> None:
        """Counts one batch; partitions on several threads share the counters."""
        with self._lock:
            ways = {*self.fetch.split("+"), method} - {"none"}
            self.fetch = "+".join(sorted(ways))
            self.rows_fetched += rows
            self.fetch_bytes += nbytes
            self.fetch_seconds += seconds

    def returned(self, rows: int) -> None:
        """Counts rows that were handed to DataFusion."""
        with self._lock:
            self.rows_returned += rows
