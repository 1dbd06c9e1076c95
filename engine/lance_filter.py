"""The part of a pushed filter that Lance's own scanner evaluates, as Lance's SQL.

Lance's scanner serves a filter from its BTREE, BITMAP, ZONEMAP and other scalar indexes, and
reads wide columns only for the rows that pass. It takes text, in which every literal is cast to
its exact type. Only shapes on which Lance and DataFusion were found to agree, with every kind
of index and without one, are sent; what is left of the filter is evaluated above the scan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import pyarrow as pa

from .blob_columns import holds_blob
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
    children_of,
    columns_of,
    conjuncts_of,
)

# Lance's planner recurses over the text's tree, so a chain of thousands of ORs stays out of it.
_MOST_NODES = 256

_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class LanceFilter:
    """`sql` for Lance's scanner and `rest` for the rows that pass it; None for no condition."""

    sql: str | None
    rest: Predicate | None


def split_filter(
    predicate: Predicate | None,
    schema: pa.Schema,
    zone_mapped: Callable[[], Collection[str]] = tuple,
) -> LanceFilter:
    """Divides the conjuncts of `predicate` between Lance and the evaluation above it.

    `zone_mapped` names the columns with a zone map, and is called only if that matters: a zone
    map has no place for a negative NaN, which is below -inf, so such floats are not sent.
    """
    if predicate is None:
        return LanceFilter(None, None)
    sent: list[str] = []
    kept: list[Predicate] = []
    for conjunct in conjuncts_of(predicate):
        sql = lance_sql(conjunct, schema)
        floats = [c for c in columns_of(conjunct) if pa.types.is_floating(schema.field(c).type)]
        if (
            sql is None
            or _nodes(conjunct) > _MOST_NODES
            or (floats and not set(floats).isdisjoint(zone_mapped()))
        ):
            kept.append(conjunct)
        else:
            sent.append(f"({sql})")
    rest = kept[0] if len(kept) == 1 else And(tuple(kept)) if kept else None
    return LanceFilter(" AND ".join(sent) or None, rest)


def lance_sql(predicate: Predicate, schema: pa.Schema) -> str | None:
    """The predicate in Lance's dialect; None where Lance might answer differently."""
    match predicate:
        case Column(name) if schema.field(name).type == pa.bool_():
            return _quoted(name, schema)
        case And(operands):
            return _joined(" AND ", operands, schema)
        case Or(operands):
            return _joined(" OR ", operands, schema)
        case Not(operand):
            sql = lance_sql(operand, schema)
            return f"NOT ({sql})" if sql is not None else None
        case IsNull(Column(name)):
            return _suffixed(name, "IS NULL", schema)
        case IsNotNull(Column(name)):
            return _suffixed(name, "IS NOT NULL", schema)
        case Comparison(operator, Column(name), Literal(value)):
            return _comparison(name, operator, value, schema)
        case Comparison(operator, Literal(value), Column(name)):
            return _comparison(name, _MIRRORED[operator], value, schema)
        case Comparison(operator, Column(left), Column(right)):
            return _column_comparison(left, operator, right, schema)
        case InList(Column(name), values):
            return _in_list(name, values, schema)
        case _:
            return None


def _joined(word: str, operands: tuple[Predicate, ...], schema: pa.Schema) -> str | None:
    parts = [lance_sql(operand, schema) for operand in operands]
    return word.join(f"({part})" for part in parts) if None not in parts else None


def _comparison(name: str, operator: str, value: pa.Scalar, schema: pa.Schema) -> str | None:
    literal = _literal(value, schema.field(name).type)
    return _suffixed(name, f"{operator} {literal}", schema) if literal is not None else None


def _column_comparison(left: str, operator: str, right: str, schema: pa.Schema) -> str | None:
    kind = schema.field(left).type
    # Without a literal Lance tells 0.0 from -0.0.
    if kind != schema.field(right).type or not _is_sent(kind) or pa.types.is_floating(kind):
        return None
    other = _quoted(right, schema)
    return _suffixed(left, f"{operator} {other}", schema) if other is not None else None


def _in_list(name: str, values: pa.Array, schema: pa.Schema) -> str | None:
    kind = schema.field(name).type
    if pa.types.is_floating(kind):
        return None
    literals = [_literal(value, kind) for value in values]
    if None in literals:
        return None
    return _suffixed(name, f"IN ({', '.join(map(str, literals))})", schema)


def _suffixed(name: str, test: str, schema: pa.Schema) -> str | None:
    quoted = _quoted(name, schema)
    return f"{quoted} {test}" if quoted is not None else None


def _quoted(name: str, schema: pa.Schema) -> str | None:
    # Lance finds no column whose name holds a backtick, and takes a blob for its place.
    if not name or "`" in name or holds_blob(schema.field(name)):
        return None
    return f"`{name}`"


def _nodes(predicate: Predicate) -> int:
    return 1 + sum(map(_nodes, children_of(predicate)))


def _is_sent(kind: pa.DataType) -> bool:
    """Whether columns of the type may be compared in Lance's text."""
    if pa.types.is_dictionary(kind):
        return _is_sent(kind.value_type)
    return pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or _is_bytes(kind)


def _is_bytes(kind: pa.DataType) -> bool:
    return (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def _literal(value: pa.Scalar, kind: pa.DataType) -> str | None:
    """A constant of the column's type; None for NULL and for types that are not sent."""
    if not value.is_valid or not _is_sent(kind):
        return None
    if isinstance(value, pa.DictionaryScalar):
        value = value.value
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if value.type != kind:
        value = value.cast(kind)
    types = pa.types
    if types.is_boolean(kind):
        return "true" if value.as_py() else "false"
    if types.is_integer(kind):
        # The least int64 cannot be written as the negation of a positive literal.
        return (
            str(value.as_py()) if value.as_py() > -(1 << 63) else f"arrow_cast('{value}', 'Int64')"
        )
    if types.is_string(kind) or types.is_large_string(kind):
        return "'" + value.as_py().replace("'", "''") + "'"
    if types.is_binary(kind) or types.is_large_binary(kind):
        return f"X'{value.as_py().hex()}'"
    if types.is_fixed_size_binary(kind):
        return f"arrow_cast(X'{value.as_py().hex()}', 'FixedSizeBinary({kind.byte_width})')"
    if types.is_floating(kind):
        # The text has one NaN, floats have many, and DataFusion tells them apart.
        if value.as_py() != value.as_py():
            return None
        return f"arrow_cast('{value.as_py()!r}', 'Float{kind.bit_width}')"
    if types.is_decimal(kind):
        width, precision, scale = kind.bit_width, kind.precision, kind.scale
        return f"arrow_cast('{value.as_py():f}', 'Decimal{width}({precision}, {scale})')"
    if types.is_date32(kind):
        return f"arrow_cast(arrow_cast({value.value}, 'Int32'), 'Date32')"
    if types.is_date64(kind):
        return f"arrow_cast({value.value}, 'Date64')"
    if types.is_time32(kind):
        return f"arrow_cast(arrow_cast({value.value}, 'Int32'), 'Time32({_UNITS[kind.unit]})')"
    if types.is_time64(kind):
        return f"arrow_cast({value.value}, 'Time64({_UNITS[kind.unit]})')"
    if types.is_timestamp(kind):
        zone = f'Some("{kind.tz}")' if kind.tz is not None else "None"
        return f"arrow_cast({value.value}, 'Timestamp({_UNITS[kind.unit]}, {zone})')"
    if types.is_duration(kind):
        return f"arrow_cast({value.value}, 'Duration({_UNITS[kind.unit]})')"
    return None


_UNITS = {"s": "Second", "ms": "Millisecond", "us": "Microsecond", "ns": "Nanosecond"}
