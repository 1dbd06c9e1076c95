"""Answering a bound query tree from the indexes' files."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from functools import reduce

from .answer import Answer, conjoin, disjoin, exclude, negate
from .errors import CorruptIndexError, UnusableIndexError
from .label_list import reader as label_list
from .list_element.reader import ListElementReader
from .manifest import LanceIndex
from .minhash_lsh.distance_search import DistanceSearch
from .query import And, AnyElement, HasAll, HasAny, Is, Nearest, Not, Or, Query, WithinDistance
from .row_set import RowSet
from .search_stats import SearchStats
from .segment_search import asked
from .snapshot import Snapshot


def evaluate(
    query: Query, snapshot: Snapshot, covered: frozenset[int], stats: SearchStats
) -> Answer:
    """The answer of `query` over the live rows of the fragments `covered`.

    `covered` are fragments that every index of the query covers. Only TRUE rows are asked
    for: `null` is None also where it could have been found. Counts into `stats`. Raises
    `CorruptIndexError` for a damaged file and `UnusableIndexError` for an index that turns
    out not to fit the column.
    """
    start = time.perf_counter()
    search = _Search(snapshot, covered, stats)
    answer = search.answer(query, null_wanted=False)
    live = Answer(search.live(answer.true), answer.null, answer.exact)
    stats.rows_found += len(live.true)
    stats.search_seconds += time.perf_counter() - start
    return live


class _Search:
    """One evaluation. Row sets in it are of covered fragments, and may hold deleted rows."""

    def __init__(self, snapshot: Snapshot, covered: frozenset[int], stats: SearchStats) -> None:
        self._snapshot = snapshot
        self._covered = covered
        self._stats = stats

    def live(self, rows: RowSet) -> RowSet:
        return self._snapshot.live_among(rows)

    def universe(self) -> RowSet:
        return self._snapshot.live_rows(self._covered)

    def answer(self, query: Query, *, null_wanted: bool) -> Answer:
        """The answer, with NULL rows only where `null_wanted` and they are known."""
        if isinstance(query, HasAny | HasAll):
            return self._labels(query, null_wanted)
        if isinstance(query, AnyElement):
            return self._elements(query, null_wanted)
        if isinstance(query, WithinDistance):
            return self._within(query, null_wanted)
        if isinstance(query, Nearest):
            return self._nearest(query)
        if isinstance(query, And):
            return self._and(query, null_wanted)
        if isinstance(query, Or):
            parts = (self.answer(child, null_wanted=null_wanted) for child in query.children)
            return reduce(disjoin, parts)
        if isinstance(query, Not):
            return negate(self.answer(query.child, null_wanted=True), self.universe())
        if isinstance(query, Is):
            return self._is(query)
        inner = self.answer(query.child, null_wanted=False)
        return Answer(inner.true, None, exact=False)

    def _and(self, query: And, null_wanted: bool) -> Answer:
        negated = [child.child for child in query.children if isinstance(child, Not)]
        positive = _narrowed(child for child in query.children if not isinstance(child, Not))
        if not positive:
            return negate(
                reduce(disjoin, (self.answer(n, null_wanted=True) for n in negated)),
                self.universe(),
            )
        parts = (self.answer(child, null_wanted=null_wanted) for child in positive)
        joined = reduce(conjoin, parts)
        # Taking rows away is cheaper than the complement, which is nearly all rows.
        return reduce(exclude, (self.answer(n, null_wanted=True) for n in negated), joined)

    def _is(self, query: Is) -> Answer:
        inner = self.answer(query.child, null_wanted=query.value is not True)
        if query.value is True:
            true = inner.true
        elif query.value is False:
            true = negate(inner, self.universe()).true
        else:
            assert inner.null is not None
            true = inner.null
        return Answer(true, RowSet.EMPTY if inner.exact else None, inner.exact)

    def _elements(self, query: AnyElement, null_wanted: bool) -> Answer:
        reader = ListElementReader(query.index, self._snapshot)
        null_wanted = null_wanted and query.null_known
        found = reader.answer(query.search, self._covered, self._stats, null_wanted=null_wanted)
        return found if query.whole else Answer(found.true, None, exact=False)

    def _within(self, query: WithinDistance, null_wanted: bool) -> Answer:
        search = self._distances(query.index, query.text)
        return search.within(query.low, query.high, null_wanted=null_wanted)

    def _nearest(self, query: Nearest) -> Answer:
        among = None
        if query.condition is not None:
            among = self.live(self.answer(query.condition, null_wanted=False).true)
        rows = self._distances(query.index, query.text).nearest(
            query.count, ties=query.ties, nulls=query.nulls, among=among, passing=query.passing
        )
        return Answer(rows, None, exact=True)

    def _distances(self, index: LanceIndex, text: str | None) -> DistanceSearch:
        return DistanceSearch(index, text, self._snapshot, self._covered, self._stats)

    def _labels(self, query: HasAny | HasAll, null_wanted: bool) -> Answer:
        """A leaf: the union over the segments, each for the fragments that it covers."""
        snapshot = self._snapshot
        every_list = isinstance(query, HasAll) and not query.match_null and not query.labels
        parts = [
            (label_list.LabelListReader(segment, *snapshot.files_of(segment), snapshot.cache), here)
            for segment, fragments in snapshot.covered_by_segment(query.index).items()
            if (here := fragments & self._covered)
        ]

        def ask(
            part: tuple[label_list.LabelListReader, frozenset[int]], stats: SearchStats
        ) -> tuple[RowSet, RowSet | None]:
            reader, here = part
            null_lists = None
            if null_wanted or every_list:
                null_lists = self._here(reader, reader.null_lists(stats), here)
            if not every_list:
                found = self._here(reader, self._found(query, reader, stats), here)
                return found or RowSet.EMPTY, null_lists
            if null_lists is None:
                raise UnusableIndexError(query.index.name, "it stores no null lists")
            return snapshot.live_rows(here) - null_lists, null_lists

        are_local = snapshot.are_files_local(query.index)
        answers = asked(parts, ask, self._stats, are_local=are_local)
        null_lists = [null for _, null in answers if null is not None]
        known = null_wanted and len(null_lists) == len(answers)
        true = RowSet.union(true for true, _ in answers)
        return Answer(true, RowSet.union(null_lists) if known else None, exact=True)

    def _found(
        self, query: HasAny | HasAll, reader: label_list.LabelListReader, stats: SearchStats
    ) -> RowSet:
        """The rows that a segment holds for the labels, as ids of that segment."""
        positions = reader.positions(query.labels, stats)
        if query.match_null:
            positions.append(reader.null_element_position(stats))
        if isinstance(query, HasAny):
            known = [at for at in positions if at >= 0]
            return RowSet.union(reader.postings(known, stats))
        if -1 in positions:
            return RowSet.EMPTY
        return RowSet.intersection(reader.postings(positions, stats))

    def _here(
        self, reader: label_list.LabelListReader, ids: RowSet | None, fragments: frozenset[int]
    ) -> RowSet | None:
        """The addresses of `ids` in the segment's fragments."""
        if ids is None:
            return None
        rows = self._snapshot.addresses_of(ids).restrict(fragments)
        for fragment in rows.fragment_ids:
            if fragment not in rows.whole_fragments:
                last, end = rows.bitmap(fragment).max(), self._snapshot.physical_rows(fragment)
                if last >= end:
                    raise CorruptIndexError(
                        reader.path, f"row {last} in fragment {fragment}, which has {end} rows"
                    )
        return rows


def _narrowed(children: Iterable[Query]) -> list[Query]:
    """The operands of an AND, of which bounds on one and the same distance have become one."""
    others: list[Query] = []
    bounds: dict[tuple[LanceIndex, str, str | None], WithinDistance] = {}
    for child in children:
        if isinstance(child, WithinDistance):
            key = (child.index, child.column, child.text)
            one = bounds.get(key, child)
            low, high = max(one.low, child.low), min(one.high, child.high)
            bounds[key] = replace(child, low=low, high=high)
        else:
            others.append(child)
    return [*bounds.values(), *others]
