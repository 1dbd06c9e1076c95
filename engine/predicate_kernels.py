"""Evaluates a pushed filter on batches in memory, with DataFusion's meaning.

pyarrow's kernels decide where they agree with DataFusion (integers, text, decimals, times,
three-valued logic). They do not for

- floats: DataFusion orders them totally, NaN by its bits (positive NaN above every number,
  negative NaN below) and equal to itself, with -0.0 equal to 0.0; so floats are compared as the
  integers that have this order;
- `IN` on floats, which compares bits: -0.0 is not 0.0 there;
- `IN` and `NOT IN` on NULL, which is NULL (pyarrow: false and true);
- lists, structs and maps, which pyarrow does not compare: see `nested_order`.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .nested_order import order_preserving_bytes
from .pushed_filter import (
    And,
    Column,
    Comparison,
    InList,
    IsNotNull,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
)

_KERNELS = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def keep(predicate: Predicate, batch: pa.RecordBatch) -> pa.BooleanArray | bool:
    """Which rows of `batch` pass: TRUE where the predicate is TRUE, NULL or FALSE elsewhere.

    A plain `bool` where one value goes for every row. The batch has to hold every column that
    the predicate reads, under its name.
    """
    value = evaluate(predicate, batch)
    if isinstance(value, pa.Scalar):
        return value.as_py() is True
    return value


def evaluate(predicate: Predicate, batch: pa.RecordBatch) -> pa.Array | pa.Scalar:
    """The predicate's value for each row, three-valued; a scalar where no column is read."""
    match predicate:
        case Column(name):
            return _plain(batch.column(batch.schema.get_field_index(name)))
        case Literal(value):
            return value
        case Comparison(operator, left, right):
            return _compare(operator, evaluate(left, batch), evaluate(right, batch))
        case And(operands):
            return reduce(pc.and_kleene, (_truth(o, batch) for o in operands))
        case Or(operands):
            return reduce(pc.or_kleene, (_truth(o, batch) for o in operands))
        case Not(operand):
            return pc.invert(_truth(operand, batch))
        case IsNull(operand):
            return pc.is_null(evaluate(operand, batch))
        case IsNotNull(operand):
            return pc.is_valid(evaluate(operand, batch))
        case InList(operand, values):
            return _in_list(evaluate(operand, batch), values)


def _truth(predicate: Predicate, batch: pa.RecordBatch) -> pa.Array | pa.Scalar:
    value = evaluate(predicate, batch)
    return value.cast(pa.bool_()) if pa.types.is_null(value.type) else value


def _plain(array: pa.Array) -> pa.Array:
    """Without dictionary and extension type: DataFusion compares what lies below them."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    return array


def _compare(
    operator: str, left: pa.Array | pa.Scalar, right: pa.Array | pa.Scalar
) -> pa.Array | pa.Scalar:
    left, right = _same_type(left, right)
    kernel = _KERNELS[operator]
    if pa.types.is_null(left.type):
        return _unknown(left, right)
    if pa.types.is_floating(left.type):
        return kernel(_total_order(left), _total_order(right))
    if pa.types.is_nested(left.type):
        compared = kernel(_nested_order(left), _nested_order(right))
        known = pc.and_(pc.is_valid(left), pc.is_valid(right))
        return pc.if_else(known, compared, pa.scalar(None, pa.bool_()))
    return kernel(left, right)


def _unknown(left: pa.Array | pa.Scalar, right: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
    for side in (left, right):
        if isinstance(side, pa.Array):
            return pa.nulls(len(side), pa.bool_())
    return pa.scalar(None, pa.bool_())


def _same_type(
    left: pa.Array | pa.Scalar, right: pa.Array | pa.Scalar
) -> tuple[pa.Array | pa.Scalar, pa.Array | pa.Scalar]:
    """Both sides in one type; DataFusion's differ at most in the encoding of text."""
    left, right = _plain_scalar(left), _plain_scalar(right)
    if left.type == right.type:
        return left, right
    if isinstance(left, pa.Scalar) and not pa.types.is_null(right.type):
        return left.cast(right.type), right
    if not pa.types.is_null(left.type):
        return left, right.cast(left.type)
    return left.cast(right.type), right


def _plain_scalar(value: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
    if isinstance(value, pa.DictionaryScalar):
        return value.value if value.is_valid else pa.scalar(None, value.type.value_type)
    if isinstance(value, pa.ExtensionScalar):
        return value.value if value.is_valid else pa.scalar(None, value.type.storage_type)
    return value


def _total_order(floats: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
    """Signed integers in the floats' order: by bits, but -0.0 like 0.0. NULL stays NULL."""
    if isinstance(floats, pa.Scalar):
        return _total_order(pa.repeat(floats, 1))[0]
    bits = _bits(floats)
    sign = np.dtype(bits.dtype).itemsize * 8 - 1
    minus_zero = np.iinfo(bits.dtype).min
    bits = np.where(bits == minus_zero, 0, bits)
    # Negative floats are ordered by descending magnitude: flip all bits but the sign.
    ordered = bits ^ ((bits >> sign) & np.iinfo(bits.dtype).max)
    return pa.array(ordered, mask=_null_mask(floats))


def _bits(floats: pa.Array) -> np.ndarray:
    """The bits as signed integers of the same width; what lies below NULL is arbitrary."""
    integer = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[floats.type.bit_width]
    buffers = [None, floats.buffers()[1]]
    raw = pa.Array.from_buffers(integer, len(floats), buffers, offset=floats.offset)
    return raw.to_numpy(zero_copy_only=True)


def _null_mask(array: pa.Array) -> np.ndarray | None:
    if array.null_count == 0:
        return None
    return array.is_null().to_numpy(zero_copy_only=False)


def _nested_order(value: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
    if isinstance(value, pa.Scalar):
        return order_preserving_bytes(pa.repeat(value, 1))[0]
    return order_preserving_bytes(value)


def _in_list(operand: pa.Array | pa.Scalar, values: pa.Array) -> pa.Array | pa.Scalar:
    operand = _plain_scalar(operand)
    values = values.cast(operand.type)
    if pa.types.is_floating(operand.type):
        if isinstance(operand, pa.Scalar):
            return _in_list(pa.repeat(operand, 1), values)[0]
        found = pa.array(np.isin(_bits(operand), _bits(values)))
    else:
        found = pc.is_in(operand, value_set=values)
    return pc.if_else(pc.is_valid(operand), found, pa.scalar(None, pa.bool_()))
