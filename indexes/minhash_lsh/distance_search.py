"""Rows by the distance of their texts to one text: within bounds, or the nearest."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

from ..answer import Answer
from ..manifest import LanceIndex
from ..row_set import RowSet
from ..search_stats import SearchStats
from .ranked import Ranked
from .search import MinHashReader, RowFilter, nearest
from .signature import SignatureProcedure
from .signatures import Signature

if TYPE_CHECKING:
    from ..snapshot import Snapshot

# A filter is asked about no more rows than this without knowing whether they are needed.
_FEW_CANDIDATES: Final = 4096
# So many rows show whether a filter lets few through.
_SAMPLE: Final = 256
# To sign one text takes as long as to compare so many signatures.
_WORTH_COMPARING: Final = 512


class DistanceSearch:
    """A text and the rows of `covered` fragments, which the index answers for.

    A distance is NULL on a row whose text is NULL or has no token, and on all rows where that
    goes for the text searched for. Raises as MinHashReader does.
    """

    def __init__(
        self,
        index: LanceIndex,
        text: str | None,
        snapshot: Snapshot,
        covered: frozenset[int],
        stats: SearchStats,
    ) -> None:
        self._reader = MinHashReader(index, snapshot)
        self._text = text
        self._snapshot = snapshot
        self._covered = covered
        self._stats = stats

    def within(self, low: int, high: int, *, null_wanted: bool) -> Answer:
        """TRUE where `low` to `high` positions differ; NULL rows only where they are wanted."""
        true = RowSet.EMPTY
        if self._signature is not None and low <= high:
            true = self._reader.within(self._signature, low, high, self._covered, self._stats)
        return Answer(true, self._null if null_wanted else None, exact=True)

    def nearest(
        self,
        count: int,
        *,
        ties: bool,
        nulls: bool,
        among: RowSet | None,
        passing: RowFilter | None,
    ) -> RowSet:
        """Rows among which the first `count` by distance are, of those in `among` that pass.

        None for `among` or `passing` is no condition. Rows where the distance is NULL are last,
        or with `nulls` first. With `ties`, all rows that are as far as the last are there, too.
        What is there beside them passes, and is no more than can be ordered as fast as found.
        """
        passes = _Passing(among, passing, self._live)
        if among is not None and len(among) <= count:
            return passes.passing(among)
        rows = passes.passing(self._null) if nulls else RowSet.EMPTY
        wanted = count - len(rows)
        if self._signature is not None and wanted > 0:
            rows |= self._first(self._signature, wanted, ties, passes)
        if not nulls and len(rows) < count:
            rows |= passes.passing(self._null)
        return rows

    def _first(self, signature: Signature, count: int, ties: bool, passes: _Passing) -> RowSet:
        if not passes.is_condition:
            return nearest(
                self._reader, signature, count, self._covered, None, ties, self._stats
            ).rows
        close = self._close(signature, count, ties, passes)
        if close is not None:
            return close
        few = passes.few()
        if few is not None:
            return few
        return nearest(
            self._reader, signature, count, self._covered, passes, ties, self._stats
        ).rows

    def _close(
        self, signature: Signature, count: int, ties: bool, passes: _Passing
    ) -> RowSet | None:
        """The first rows where the buckets have all of them, None where they may not."""
        candidates = self._reader.candidates(signature, self._covered, self._stats)
        close = candidates[candidates.different < self._reader.parameters.num_bands]
        if not count <= len(close) <= _FEW_CANDIDATES:
            return None
        close = close.among(passes.passing(close.rows))
        return _cut(close, count, ties).rows if len(close) >= count else None

    @cached_property
    def _signature(self) -> Signature | None:
        return SignatureProcedure.of(self._reader.parameters).sign_text(self._text)

    @cached_property
    def _live(self) -> RowSet:
        return self._snapshot.live_rows(self._covered)

    @cached_property
    def _null(self) -> RowSet:
        """The rows where the distance is NULL."""
        if self._signature is None:
            return self._live
        return self._live - self._reader.signed(self._covered, self._stats)


def _cut(rows: Ranked, count: int, ties: bool) -> Ranked:
    """The first `count` of at least as many rows, with the ties of the last."""
    if ties:
        count = int(rows.different.searchsorted(rows.different[count - 1], "right"))
    return rows[:count]


class _Passing:
    """The rows in `among` that `rest` lets through; None for a condition that there is not.

    `live` are all the rows that may be asked about.
    """

    def __init__(self, among: RowSet | None, rest: RowFilter | None, live: RowSet) -> None:
        self._among = among
        self._rest = rest
        self._live = live

    @property
    def is_condition(self) -> bool:
        return self._among is not None or self._rest is not None

    def passing(self, rows: RowSet) -> RowSet:
        if self._among is not None:
            rows = rows & self._among
        return rows if self._rest is None else self._rest.passing(rows)

    def few(self) -> RowSet | None:
        """All rows that pass, where they are so few that they need no index to be ordered.

        A filter of which a sample has shown that it lets few rows through has by then been
        asked about all of them.
        """
        rows = self._live if self._among is None else self._among
        if self._rest is not None:
            if not self._are_rare(rows, self._rest):
                return None
            rows = self._rest.passing(rows)
            self._among, self._rest = rows, None
        return rows if len(rows) * _WORTH_COMPARING <= len(self._live) else None

    def _are_rare(self, rows: RowSet, rest: RowFilter) -> bool:
        """Whether few of the rows seem to pass."""
        addresses = rows.addresses()
        step = max(1, len(addresses) // _SAMPLE)
        return not rest.passing(RowSet.from_addresses(addresses[step // 2 :: step]))
