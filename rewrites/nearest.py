"""The rows of a scan that a Sort by a MinHash distance may keep."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
from datafusion.expr import Expr

from ..indexes.minhash_lsh.search import RowFilter
from ..indexes.query import Nearest, Query
from .distance_form import DistanceForm, NotALiteralError
from .indexed_scan import IndexedScan
from .minhash import distance_over, index_for, note_calls, note_unread
from .predicate import ReadPredicate
from .scans import FoundScan
from .top_k import Renaming

Reference = tuple[str | None, str | None, str]

Filtering = Callable[[Reference, Sequence[Expr]], RowFilter]
"""Makes what tells on which rows all predicates are TRUE, from the name of their table."""

_FUNCTION: Final = re.compile(r"UDF \{ inner: ")
_SETTLED: Final = re.compile(r"volatility: (?:Immutable|Stable)")
_VOLATILE: Final = "volatility: Volatile"
_OUTSIDE: Final = ("<subquery>", "OuterReferenceColumn")
"""What makes a predicate more than one of its row."""


def read_nearest(
    found: FoundScan, read: ReadPredicate, scan: IndexedScan, filtering: Filtering
) -> Iterator[Nearest]:
    """The queries that each find all rows that the Sort above a scan may keep, the best first.

    With an index on `u`:

    `ORDER BY minhash_distance(u, 'q') LIMIT 10`
    `ORDER BY minhash_distance(u, 'q'), i LIMIT 10`           with all ties of the tenth
    `ORDER BY minhash_similarity(u, 'q') DESC LIMIT 10`       and all rows where it is NULL
    `… WHERE i < 5 ORDER BY d LIMIT 10 OFFSET 5`              fifteen of the rows that pass

    `read` is the filter right above the scan. What a scan itself applies is a filter, too: a
    row that does not pass must not take another one's place.
    """
    top = found.top
    if top is None:
        return
    key, *further = top.sort.to_variant().sort_exprs()
    try:
        form = distance_over(Expr(key.expr()), scan, Renaming(top.below))
    except NotALiteralError as error:
        note_unread(error, scan)
        return
    if form is None:
        note_calls(Expr(key.expr()), "the order is not that of a distance to a literal", scan)
        return
    index = index_for(form, scan)
    if index is None:
        return
    reason = _unserved(form, found, ascending=key.ascending())
    if reason is not None:
        scan.note(index, reason)
        return
    count = top.sort.to_variant().get_fetch_val()

    def nearest(condition: Query | None, rest: tuple[Expr, ...]) -> Nearest:
        passing = filtering(found.reference, rest) if rest else None
        return Nearest(
            index,
            form.column,
            form.text,
            count,
            ties=bool(further),
            nulls=key.nulls_first(),
            condition=condition,
            passing=passing,
        )

    if read.query is not None:
        yield nearest(read.query, (*found.pushed, *read.leftover, *read.recheck))
    whole = () if found.predicate is None else (found.predicate,)
    yield nearest(None, (*found.pushed, *whole))


def _unserved(form: DistanceForm, found: FoundScan, *, ascending: bool) -> str | None:
    """Why the index does not tell which rows the Sort keeps; None where it does."""
    steps = np.diff(form.values)
    if not (steps > 0 if ascending else steps < 0).all():
        return "the order does not begin with the nearest"
    if found.predicate is None and not found.pushed:
        return None
    text = repr(found.plan)
    if any(part in text for part in _OUTSIDE):
        return "the rows are filtered by more than their own values"
    if _VOLATILE in text or len(_FUNCTION.findall(text)) != len(_SETTLED.findall(text)):
        return "the rows are filtered by a function that may not always give the same"
    return None
