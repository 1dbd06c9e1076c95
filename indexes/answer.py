"""Three-valued answers: the rows on which a predicate is TRUE and those on which it is NULL."""

from __future__ import annotations

from dataclasses import dataclass

from .row_set import RowSet


@dataclass(frozen=True, slots=True)
class Answer:
    """What an index knows of a predicate over the rows it covers.

    `true` holds the rows on which the predicate is TRUE: just those where `exact`, else
    those and perhaps others, so that the predicate has to be checked again. `null` holds
    the rows on which it is NULL, or is None where they are not known; every other covered
    row is FALSE. `null` is None wherever `exact` is False, and shares no row with `true`.
    """

    true: RowSet
    null: RowSet | None
    exact: bool


def negate(a: Answer, universe: RowSet) -> Answer:
    """NOT `a`, over the covered live rows `universe`.

    Raises `ValueError` where `a` is a superset or its NULL rows are not known: then no
    index tells its FALSE rows.
    """
    if not a.exact or a.null is None:
        raise ValueError("only an exact answer with known NULL rows has a complement")
    return Answer(universe - a.true - a.null, a.null & universe, exact=True)


def conjoin(a: Answer, b: Answer) -> Answer:
    """`a` AND `b`: a superset where either is one."""
    true = a.true & b.true
    exact = a.exact and b.exact
    if a.null is None or b.null is None or not exact:
        return Answer(true, None, exact)
    return Answer(true, ((a.true | a.null) & (b.true | b.null)) - true, exact)


def disjoin(a: Answer, b: Answer) -> Answer:
    """`a` OR `b`: a superset where either is one."""
    true = a.true | b.true
    exact = a.exact and b.exact
    if a.null is None or b.null is None or not exact:
        return Answer(true, None, exact)
    return Answer(true, (a.null | b.null) - true, exact)


def exclude(a: Answer, b: Answer) -> Answer:
    """`a` AND NOT `b`, as `conjoin(a, negate(b, …))` without the complement.

    Raises `ValueError` as `negate` does.
    """
    if not b.exact or b.null is None:
        raise ValueError("only an exact answer with known NULL rows has a complement")
    true = a.true - b.true - b.null
    null = None if a.null is None else (a.true | a.null) - b.true - true
    return Answer(true, null, a.exact)
