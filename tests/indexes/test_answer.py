"""Three-valued answers against SQL's truth tables, row by row."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from datafusion_lance.indexes.answer import Answer, conjoin, disjoin, exclude, negate
from datafusion_lance.indexes.row_set import RowSet

_ROWS = 12
_UNIVERSE = RowSet.from_bitmaps({0: BitMap(range(_ROWS))})

_values = st.lists(st.sampled_from([True, False, None]), min_size=_ROWS, max_size=_ROWS)
Values = list[bool | None]


def _rows(values: Values, wanted: bool | None) -> RowSet:
    return RowSet.from_bitmaps({0: BitMap([i for i, v in enumerate(values) if v is wanted])})


def _answer(values: Values) -> Answer:
    return Answer(_rows(values, True), _rows(values, None), exact=True)


def _values_of(answer: Answer) -> Values:
    assert answer.null is not None
    assert not answer.true & answer.null
    true, null = set(answer.true.bitmap(0)), set(answer.null.bitmap(0))
    return [True if i in true else None if i in null else False for i in range(_ROWS)]


def _not(a: bool | None) -> bool | None:
    return None if a is None else not a


def _and(a: bool | None, b: bool | None) -> bool | None:
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


def _or(a: bool | None, b: bool | None) -> bool | None:
    return _not(_and(_not(a), _not(b)))


@given(_values)
def test_not(values: Values) -> None:
    assert _values_of(negate(_answer(values), _UNIVERSE)) == [_not(v) for v in values]


@given(_values, _values)
def test_and_or_and_not(a: Values, b: Values) -> None:
    cases: list[tuple[Callable[[Answer, Answer], Answer], Values]] = [
        (conjoin, [_and(x, y) for x, y in zip(a, b, strict=True)]),
        (disjoin, [_or(x, y) for x, y in zip(a, b, strict=True)]),
        (exclude, [_and(x, _not(y)) for x, y in zip(a, b, strict=True)]),
    ]
    for combine, values in cases:
        combined = combine(_answer(a), _answer(b))
        assert combined.exact
        assert _values_of(combined) == values


@given(_values, _values, st.sets(st.integers(0, _ROWS - 1)))
def test_a_superset_stays_one(a: Values, b: Values, more: set[int]) -> None:
    loose = Answer(_answer(a).true | RowSet.from_bitmaps({0: BitMap(more)}), None, exact=False)
    for combine, truth in ((conjoin, _and), (disjoin, _or)):
        combined = combine(loose, _answer(b))
        assert not combined.exact
        assert combined.null is None
        must = {i for i, (x, y) in enumerate(zip(a, b, strict=True)) if truth(x, y)}
        assert must <= set(combined.true.bitmap(0))


@given(_values, _values)
def test_unknown_nulls_leave_true_exact(a: Values, b: Values) -> None:
    unknown = Answer(_answer(a).true, None, exact=True)
    for combine in (conjoin, disjoin):
        combined = combine(unknown, _answer(b))
        assert combined == Answer(combine(_answer(a), _answer(b)).true, None, exact=True)


@pytest.mark.parametrize(
    "answer", [Answer(_UNIVERSE, None, exact=False), Answer(_UNIVERSE, None, exact=True)]
)
def test_nothing_tells_the_false_rows_of_these(answer: Answer) -> None:
    with pytest.raises(ValueError, match="complement"):
        negate(answer, _UNIVERSE)
    with pytest.raises(ValueError, match="complement"):
        exclude(_answer([True] * _ROWS), answer)
