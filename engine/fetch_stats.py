"""What one index scan did: its search, and the reading of the rows it found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..indexes.search_stats import SearchStats

Meter = Callable[[], tuple[int, int]]
"""How many requests there were until now, and for how many bytes."""


@dataclass
class ScanStats(SearchStats):
    """The search's counters and the fetch's; EXPLAIN ANALYZE prints them.

    `fetch` is how rows were read: `take` (by address), `scan` (whole fragments, masked),
    `scan+take` (both), `cache` (from columns kept in memory), `count` (counted without
    reading any) or `none` (there were none). `rows_fetched` counts rows before the pushed
    filter, `fetch_bytes` their bytes in memory, `rows_returned` rows after it; `fetch_seconds`
    is the partitions' time together.

    `fetch_requests` and `fetch_bytes_requested` are what Lance has counted of its requests for the
    table's own files since the search began, for whoever reads them at that time; 0 for tables on
    local disks. It counts no requests for lengths of files.
    """

    fetch: str = "none"
    rows_fetched: int = 0
    fetch_bytes: int = 0
    fetch_requests: int = 0
    fetch_bytes_requested: int = 0
    fetch_seconds: float = 0.0
    rows_returned: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._meter: Meter | None = None
        self._before = (0, 0)

    def metered(self, meter: Meter | None) -> None:
        """Counts requests from now on by what `meter` says; the first one stays."""
        with self._lock:
            if self._meter is None and meter is not None:
                self._before = meter()
                self._meter = meter

    def fetched(self, method: str, rows: int, nbytes: int, seconds: float) -> None:
        """Counts one batch; partitions on several threads share the counters."""
        with self._lock:
            ways = {*self.fetch.split("+"), method} - {"none"}
            self.fetch = "+".join(sorted(ways))
            self.rows_fetched += rows
            self.fetch_bytes += nbytes
            self.fetch_seconds += seconds
        self.measure()

    def measure(self) -> None:
        """Reads the meter."""
        with self._lock:
            if self._meter is not None:
                requests, asked = self._meter()
                self.fetch_requests = requests - self._before[0]
                self.fetch_bytes_requested = asked - self._before[1]

    def returned(self, rows: int) -> None:
        """Counts rows that were handed to DataFusion."""
        with self._lock:
            self.rows_returned += rows
