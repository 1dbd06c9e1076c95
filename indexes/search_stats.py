"""What a search of the indexes did and what it cost."""

from __future__ import annotations

import threading
from dataclasses import dataclass, fields


@dataclass
class SearchStats:
    """Counters of one search; EXPLAIN ANALYZE prints them.

    `buckets` counts those that a MinHash search found documents in, `signatures_compared`
    the stored signatures that it ranked. `bitmaps_read`, `pages_read` and `bytes_read` count
    what came from files, not what was in the cache; the bytes are those in memory.

    `requests` and `bytes_requested` are what the reads of index files sent to an object store and
    asked it for, and 0 for files on local disks. A range of bytes that this package reads itself
    is one request; what pylance's file reader sends is computed from the file's page table and
    the rows that it is asked for: see `FileRequests`. Not counted is the table's own metadata,
    which is read once a version: manifests, lists of deleted rows, row ids.
    """

    rows_found: int = 0
    buckets: int = 0
    signatures_compared: int = 0
    bitmaps_read: int = 0
    pages_read: int = 0
    bytes_read: int = 0
    requests: int = 0
    bytes_requested: int = 0
    search_seconds: float = 0.0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def requested(self, requests: int, nbytes: int) -> None:
        """Counts requests for so many bytes together; threads may share the counters."""
        with self._lock:
            self.requests += requests
            self.bytes_requested += nbytes

    def read(self, nbytes: int) -> None:
        """Counts bytes that were read; threads may share the counters."""
        with self._lock:
            self.bytes_read += nbytes

    def add(self, other: SearchStats) -> None:
        """Counts what another search, or a part of this one, has counted."""
        with self._lock:
            for counter in fields(SearchStats):
                name = counter.name
                setattr(self, name, getattr(self, name) + getattr(other, name))
