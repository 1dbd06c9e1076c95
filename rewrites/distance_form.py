"""Expressions that are settled by how many positions of two signatures differ.

`minhash_distance(text, 'q')` is different / num_hashes, and `1 - minhash_similarity(text, 'q')`
is another way to write it. Such an expression has a value for each number of different
positions from 0 to num_hashes. They are computed here as DataFusion computes them, so that no
rounding can put a row on the other side of a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from datafusion.expr import Expr

from ..indexes.minhash_lsh.parameters import MinHashParameters
from .cast_type import cast_type
from .environment import DistanceFunction
from .top_k import Renaming

DISTANCE: Final = "minhash_distance"
SIMILARITY: Final = "minhash_similarity"

Recognize: TypeAlias = Callable[[str], DistanceFunction | None]
"""The distance or similarity of that name; None for any other function."""

_STRINGS: Final = (pa.string(), pa.large_string(), pa.string_view())
_ARITHMETIC: Final[Mapping[str, np.ufunc]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
}
_EXACT: Final = 2**53
"""Up to there, a float holds each whole number."""

_MOST_DIGITS: Final = 15
"""A power of ten with so many zeros is exact as a float, and its multiples below it are."""


@dataclass(frozen=True, slots=True, eq=False)
class DistanceForm:
    """An expression of what `function` gives for a column's texts and one `text`.

    `values` are (num_hashes + 1,), the one at `k` where k positions differ: finite floats, or
    the unscaled integers of decimals. The expression's type is `kind`. It is NULL on rows
    without signature, and on all rows where `text` is NULL or has none.
    """

    function: str
    column: str
    text: str | None
    parameters: MinHashParameters
    values: npt.NDArray[Any]
    kind: pa.DataType

    def literal(self, expression: Expr) -> Any | None:
        """A literal to be compared with the values; None for one of another type, and NULL."""
        if expression.variant_name() != "Literal":
            return None
        value = expression.python_value()
        if value.type != self.kind or not value.is_valid:
            return None
        number = value.as_py()
        if pa.types.is_floating(self.kind):
            return self.values.dtype.type(number)
        return int(number.scaleb(self.kind.scale))


class NotALiteralError(Exception):
    """A distance to something else than a literal; `column` is the name of the column."""

    def __init__(self, column: str, call: Expr) -> None:
        super().__init__(f"{call.canonical_name()}: the other text is not a literal")
        self.column = column


def read_distance(
    expression: Expr, recognize: Recognize, below: Renaming | None = None
) -> DistanceForm | None:
    """The form of an expression over one column; None for any other expression.

    `below` are the nodes between the expression and the scan. Raises NotALiteralError for a
    distance between a column and no literal.

    `minhash_distance(u, 'q')`                  -> 0, 1 / n, … 1
    `1 - minhash_similarity('q', u)`            -> 1 - n / n, 1 - (n - 1) / n, … 1
    `CAST(minhash_distance(u, 'q') AS FLOAT)`   -> the same, each rounded to 32 bits
    """
    below = below or Renaming()
    variant = expression.variant_name()
    if variant == "ScalarFunction":
        return _read_call(expression, recognize, below)
    if variant == "Column":
        computed = below.expression(expression.to_variant().name())
        return None if computed is None else read_distance(computed[0], recognize, computed[1])
    if variant == "BinaryExpr":
        return _read_arithmetic(expression, recognize, below)
    # Not a negation: DataFusion fails to sort by that of a call over several partitions.
    if variant not in ("Alias", "Cast"):
        return None
    form = read_distance(expression.rex_call_operands()[0], recognize, below)
    return form if form is None or variant == "Alias" else _cast(form, cast_type(expression))


def _column_name(expression: Expr, below: Renaming) -> str | None:
    """The scan's name of a text column, through casts from one type of text to another."""
    variant = expression.variant_name()
    if variant == "Alias" or (variant == "Cast" and cast_type(expression) in _STRINGS):
        return _column_name(expression.rex_call_operands()[0], below)
    if variant != "Column":
        return None
    name = expression.to_variant().name()
    if not below.has_projections:
        return name
    source = below.expression(name)
    return None if source is None else _column_name(*source)


def _read_call(call: Expr, recognize: Recognize, below: Renaming) -> DistanceForm | None:
    name = call.rex_call_operator()
    function = recognize(name) if name.startswith((DISTANCE, SIMILARITY)) else None
    if function is None:
        return None
    # What follows the texts is in the function already.
    one, other = call.rex_call_operands()[:2]
    column, literal = _column_name(one, below), other
    if column is None:
        column, literal = _column_name(other, below), one
    if column is None:
        return None
    if literal.variant_name() != "Literal":
        raise NotALiteralError(column, call)
    text = literal.python_value().as_py()
    num_hashes = function.parameters.num_hashes
    count = np.arange(num_hashes + 1)
    values = (count[::-1] if function.similar else count) / num_hashes
    return DistanceForm(name, column, text, function.parameters, values, pa.float64())


def _read_arithmetic(
    expression: Expr, recognize: Recognize, below: Renaming
) -> DistanceForm | None:
    operate = _ARITHMETIC.get(expression.rex_call_operator())
    if operate is None:
        return None
    left, right = expression.rex_call_operands()
    flipped = left.variant_name() == "Literal"
    form = read_distance(right if flipped else left, recognize, below)
    if form is None or not pa.types.is_floating(form.kind):
        return None
    number = form.literal(left if flipped else right)
    if number is None:
        return None
    with np.errstate(all="ignore"):
        values = operate(number, form.values) if flipped else operate(form.values, number)
    return replace(form, values=values) if np.isfinite(values).all() else None


def _cast(form: DistanceForm, kind: pa.DataType | None) -> DistanceForm | None:
    if kind is None or not pa.types.is_floating(form.kind):
        return None
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        with np.errstate(over="ignore"):
            values = form.values.astype(kind.to_pandas_dtype())
        return replace(form, values=values, kind=kind) if np.isfinite(values).all() else None
    if not (pa.types.is_decimal128(kind) and 0 <= kind.scale <= _MOST_DIGITS):
        return None
    scaled = form.values.astype(np.float64) * 10.0**kind.scale
    if not (np.abs(scaled) < min(_EXACT, 10**kind.precision - 1)).all():
        return None
    whole = np.trunc(scaled)
    # As arrow-rs rounds: a half away from zero. The difference of the two is exact.
    whole += np.where(np.abs(scaled - whole) >= 0.5, np.copysign(1.0, scaled), 0.0)
    return replace(form, values=whole.astype(np.int64), kind=kind)
