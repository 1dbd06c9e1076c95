"""`array_has`, `array_has_any`, `array_has_all` over a column with a label list index."""

from __future__ import annotations

import pyarrow as pa
from datafusion.expr import Expr

from ..indexes.manifest import LanceIndex
from ..indexes.query import HasAll, HasAny, Is, Not, Query
from .indexed_scan import IndexedScan
from .needles import bind_needles, distinct

_FUNCTIONS = ("array_has", "array_has_any", "array_has_all")


def read_label_list(predicate: Expr, scan: IndexedScan) -> Query | None:
    """The query of an array predicate, or None where the index cannot answer it.

    `array_has(tags, 'night')`            -> `array_has_any(tags, ['night'])`
    `array_has_any(['night'], tags)`      -> `array_has_any(tags, ['night'])`
    `array_has_any(tags, [])`             -> FALSE on every row, NULL lists included
    `array_has_all(tags, [])`             -> TRUE on every row, NULL lists included
    `tags IS NULL`                        -> the rows of the null lists
    """
    if predicate.variant_name() == "IsNull":
        return _read_null_list(predicate, scan)
    if predicate.variant_name() != "ScalarFunction":
        return None
    function = predicate.rex_call_operator()
    if function not in _FUNCTIONS:
        return None
    haystack, needle = predicate.rex_call_operands()
    if function == "array_has_any" and haystack.variant_name() == "Literal":
        haystack, needle = needle, haystack
    column = scan.column_of(haystack)
    if column is None:
        return None
    index = scan.index_on(column, "LabelList")
    if index is None:
        return None
    if not scan.calls_own(function):
        scan.note(index, f"{function} is a registered function, not DataFusion's own")
        return None
    if needle.variant_name() != "Literal":
        scan.note(index, f"{predicate.canonical_name()}: the needle is not a literal")
        return None
    return _read_needles(predicate, function, column, index, needle, scan)


def _read_null_list(predicate: Expr, scan: IndexedScan) -> Query | None:
    operand = predicate.rex_call_operands()[0]
    column = scan.column_of(operand) if operand.variant_name() == "Column" else None
    index = scan.index_on(column, "LabelList") if column is not None else None
    if column is None or index is None:
        return None
    query = _nothing(index, column, scan)
    return Is(query, None) if query.null_known else None


def _read_needles(
    predicate: Expr,
    function: str,
    column: str,
    index: LanceIndex,
    needle: Expr,
    scan: IndexedScan,
) -> Query | None:
    value = needle.python_value()
    if not value.is_valid:
        scan.note(index, f"{predicate.canonical_name()}: a NULL needle makes it NULL on every row")
        return None
    needles = value.values if function != "array_has" else pa.repeat(value, 1)
    if len(needles) == 0:
        never = Is(_nothing(index, column, scan), True)
        return never if function == "array_has_any" else Not(never)
    match_null = needles.null_count > 0
    labels = bind_needles(needles, scan.element_type(column))
    if labels is None:
        scan.note(
            index,
            f"{predicate.canonical_name()}: the elements, {scan.element_type(column)}, are "
            f"compared as {needles.type}, which may make different elements equal",
        )
        return None
    if function != "array_has_all":
        return HasAny(index, column, labels, match_null)
    if len(labels) < len(distinct(needles)):
        return _nothing(index, column, scan)
    return HasAll(index, column, labels, match_null)


def _nothing(index: LanceIndex, column: str, scan: IndexedScan) -> Query:
    """FALSE on every list, NULL on the null lists."""
    return HasAny(index, column, pa.array([], scan.element_type(column)), False)
