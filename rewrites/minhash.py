"""A bound on `minhash_distance` or `minhash_similarity`, over a column with a MinHash index."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from datafusion.expr import Expr

from ..indexes.errors import UnusableIndexError
from ..indexes.manifest import LanceIndex
from ..indexes.minhash_lsh.details import KIND, parameters_of
from ..indexes.query import Is, Not, Or, Query, WithinDistance
from .distance_form import DISTANCE, SIMILARITY, DistanceForm, NotALiteralError, read_distance
from .indexed_scan import IndexedScan
from .top_k import Renaming

_Mask: TypeAlias = npt.NDArray[np.bool_]
"""Where a condition is TRUE: (num_hashes + 1,), at `k` for texts that differ in k positions."""

_MOST_RANGES: Final = 8
"""Into how many ranges of distances a condition is taken apart: each is searched by itself."""

_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "IS DISTINCT FROM": np.equal,
    "IS NOT DISTINCT FROM": np.equal,
}
_ABOVE_ALL: Final = ("<", "<=", "!=")
"""The comparisons that are TRUE with NaN on the right, which DataFusion has above every number."""

_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def read_minhash(predicate: Expr, scan: IndexedScan) -> Query | None:
    """The query of a bound on a distance, or None where no index answers it.

    With an index of 128 values a signature:

    `minhash_distance(u, 'q') <= 0.2`         -> at most 25 positions differ
    `0.9 < minhash_similarity('q', u)`        -> at most 12 positions differ
    `minhash_distance(u, 'q') <> 0.5`         -> NOT 64 positions differ
    `minhash_distance(u, 'q') IN (0, 0.5)`    -> 0 positions differ, OR 64 do
    `minhash_distance(u, 'q') IS NULL`        -> the rows on which any bound is NULL
    """
    try:
        return _read(predicate, scan)
    except NotALiteralError as error:
        note_unread(error, scan)
        return None


def distance_over(
    expression: Expr, scan: IndexedScan, below: Renaming | None = None
) -> DistanceForm | None:
    """`read_distance` of an expression over a scan: the form's column is the table's.

    None also where the column is no text.
    """
    form = read_distance(expression, scan.distance_function, below)
    if form is None:
        return None
    form = replace(form, column=scan.own_name(form.column))
    kind = scan.schema.field(form.column).type
    return form if pa.types.is_string(kind) or pa.types.is_large_string(kind) else None


def index_for(form: DistanceForm, scan: IndexedScan) -> LanceIndex | None:
    """The first index whose signatures tell the form's distances; others are noted."""
    for index in scan.indexes_on(form.column, KIND):
        try:
            signs_like = parameters_of(index).signs_like(form.parameters)
        except UnusableIndexError as error:
            scan.notes.append(f"table {scan.table_name}: {error}")
            continue
        if signs_like:
            return index
        scan.note(index, f"its signatures are not made with the parameters of {form.function}")
    return None


def note_unread(error: NotALiteralError, scan: IndexedScan) -> None:
    """Records of each MinHash index on the column that it could have served."""
    for index in scan.indexes_on(scan.own_name(error.column), KIND):
        scan.note(index, str(error))


def note_calls(expression: Expr, reason: str, scan: IndexedScan) -> None:
    """Records that no MinHash index serves an expression, where a MinHash function is in it."""
    if expression.variant_name() == "Alias":
        expression = expression.rex_call_operands()[0]
    text = expression.canonical_name()
    if DISTANCE in text or SIMILARITY in text:
        for index in scan.snapshot.indexes:
            if index.kind == KIND:
                scan.note(index, f"{text}: {reason}")


def _read(predicate: Expr, scan: IndexedScan) -> Query | None:
    variant = predicate.variant_name()
    if variant == "BinaryExpr" and predicate.rex_call_operator() in _COMPARISONS:
        return _read_comparison(predicate, scan)
    if variant == "InList":
        return _read_list(predicate, scan)
    if variant in ("IsNull", "IsNotNull"):
        return _read_null(predicate, scan)
    return None


def _read_comparison(comparison: Expr, scan: IndexedScan) -> Query | None:
    operator = comparison.rex_call_operator()
    operand, literal = comparison.rex_call_operands()
    if operand.variant_name() == "Literal":
        operand, literal = literal, operand
        operator = _MIRRORED.get(operator, operator)
    form = distance_over(operand, scan)
    if form is None:
        note_calls(comparison, "no comparison of a distance with a literal", scan)
        return None
    index = index_for(form, scan)
    if index is None:
        return None
    number = form.literal(literal)
    if number is None:
        scan.note(index, f"{comparison.canonical_name()}: the bound is no literal of its type")
        return None
    query = _query(form, index, _true(form, operator, number))
    if query is None or not operator.startswith("IS "):
        return query
    equal = Is(query, True)
    return equal if operator == "IS NOT DISTINCT FROM" else Not(equal)


def _read_list(membership: Expr, scan: IndexedScan) -> Query | None:
    variant = membership.to_variant()
    form = distance_over(Expr(variant.expr()), scan)
    if form is None:
        note_calls(membership, "no comparison of a distance with a literal", scan)
        return None
    index = index_for(form, scan)
    if index is None:
        return None
    numbers = [form.literal(Expr(one)) for one in variant.list()]
    equal = [_true(form, "=", number) for number in numbers if number is not None]
    # DataFusion compares the bits of floats in a list, but makes equalities of a short one.
    same = [_same_bits(form, number) for number in numbers if number is not None]
    if len(equal) < len(numbers) or not np.array_equal(equal, same):
        scan.note(index, f"{membership.canonical_name()}: not every item is a literal of its type")
        return None
    query = _query(form, index, reduce(np.logical_or, equal))
    if query is None:
        scan.note(index, f"{membership.canonical_name()}: more than {_MOST_RANGES} searches")
        return None
    return Not(query) if variant.negated() else query


def _read_null(test: Expr, scan: IndexedScan) -> Query | None:
    form = distance_over(test.rex_call_operands()[0], scan)
    index = None if form is None else index_for(form, scan)
    if form is None or index is None:
        return None
    nothing = _query(form, index, np.zeros(len(form.values), np.bool_))
    assert nothing is not None
    null = Is(nothing, None)
    return null if test.variant_name() == "IsNull" else Not(null)


def _true(form: DistanceForm, operator: str, number: Any) -> _Mask:
    if number != number:
        return np.full(len(form.values), operator in _ABOVE_ALL)
    return _COMPARISONS[operator](form.values, number)


def _same_bits(form: DistanceForm, number: Any) -> _Mask:
    bits = f"i{form.values.itemsize}"
    return form.values.view(bits) == form.values.dtype.type(number).view(bits)


def _query(form: DistanceForm, index: LanceIndex, true: _Mask) -> Query | None:
    """The query that is TRUE where the mask is; None where that takes too many searches."""

    def within(low: int, high: int) -> WithinDistance:
        return WithinDistance(index, form.column, form.text, low, high)

    ranges, others = _runs(true), _runs(~true)
    if not ranges:
        return within(0, -1)
    if len(ranges) == 1:
        return within(*ranges[0])
    if len(others) == 1:
        return Not(within(*others[0]))
    if len(ranges) > _MOST_RANGES:
        return None
    return Or(tuple(within(*one) for one in ranges))


def _runs(mask: _Mask) -> list[tuple[int, int]]:
    """The first and the last position of each run of TRUE."""
    edges = np.flatnonzero(np.diff(mask, prepend=False, append=False))
    return [(low, end - 1) for low, end in edges.reshape(-1, 2).tolist()]
