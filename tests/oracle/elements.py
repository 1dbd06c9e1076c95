"""Predicates on the fields of one element, as SQL in which `e.name` is a field."""

from __future__ import annotations

import random

import pyarrow as pa

from .columns import Elements
from .kinds import Kind


def draw_element_predicate(draw: random.Random, column: Elements) -> str:
    """One that keys answer, partly answer, or do not, by weights."""
    match draw.random():
        case x if x < 0.6:
            return _sargable(draw, column)
        case x if x < 0.75:
            return _both(_sargable(draw, column), _anything(draw, column))
        case x if x < 0.9:
            return f"({_sargable(draw, column)}) OR ({_sargable(draw, column)})"
        case _:
            return _anything(draw, column)


def _both(one: str, other: str) -> str:
    """DataFusion makes FALSE of two INs without a common item, be it UNKNOWN for a NULL; see the
    README."""
    return one if " IN (" in one and " IN (" in other else f"{one} AND {other}"


def _sargable(draw: random.Random, column: Elements) -> str:
    """A conjunction that fixes the first keys of an index and may have a range on the next."""
    fields = {name for name, _ in column.fields}
    keys = [key for key in draw.choice(column.keys) if key in fields]
    if not keys:
        return _anything(draw, column)
    fixed = draw.randrange(1, len(keys) + 1) if draw.random() < 0.6 else 1
    conditions = [_fixing(draw, key, column.kind_of(key)) for key in keys[:fixed]]
    if fixed < len(keys) and draw.random() < 0.6:
        conditions.append(_range(draw, keys[fixed], column.kind_of(keys[fixed])))
    draw.shuffle(conditions)
    return " AND ".join(conditions)


def _fixing(draw: random.Random, key: str, kind: Kind) -> str:
    shape = draw.choices(("equal", "in", "either", "null", "turned"), (6, 3, 1, 1.5, 1))[0]
    if pa.types.is_boolean(kind.type) and draw.random() < 0.5:
        return draw.choice((f"e.{key}", f"NOT e.{key}"))
    if shape == "null":
        return f"e.{key} IS NULL"
    if shape == "in":
        items = {_listed(draw, kind) for _ in range(2 if pa.types.is_floating(kind.type) else 3)}
        return f"e.{key} IN ({', '.join(sorted(items))})"
    one = _literal(draw, kind)
    if shape == "either":
        return f"(e.{key} = {_listed(draw, kind)} OR e.{key} = {_listed(draw, kind)})"
    return f"{one} = e.{key}" if shape == "turned" else f"e.{key} = {one}"


def _range(draw: random.Random, key: str, kind: Kind) -> str:
    one, other = _literal(draw, kind), _literal(draw, kind)
    if kind.type in (pa.string(), pa.large_string()) and draw.random() < 0.4:
        return f"e.{key} LIKE '{draw.choice(('a', 'w', 'w1', 'é', ''))}%'"
    match draw.randrange(4):
        case 0:
            return f"e.{key} BETWEEN {one} AND {other}"
        case 1:
            return f"e.{key} > {one} AND e.{key} <= {other}"
        case _:
            return f"e.{key} {draw.choice(('<', '<=', '>', '>='))} {one}"


def _anything(draw: random.Random, column: Elements) -> str:
    name, kind = draw.choice(column.fields)
    one, listed = _literal(draw, kind), _listed(draw, kind)
    shapes = [
        *(f"e.{name} <> {one}", f"e.{name} IS NOT NULL", f"e.{name} NOT IN ({listed})"),
        *(f"(e.{name} IS NOT DISTINCT FROM {one})", f"NOT (e.{name} = {one})"),
        *(
            f"(e.{name} = {one}) IS NOT TRUE",
            f"(e.{name} = {one}) IS TRUE",
            _range(draw, name, kind),
        ),
        *(f"e.{name} IN ({listed}, NULL)", f"e.{name} = {one}"),
    ]
    if kind.type in (pa.string(), pa.large_string()):
        shapes += [f"e.{name} LIKE '%a%'", f"character_length(e.{name}) = 1"]
    if pa.types.is_boolean(kind.type):
        shapes += [f"e.{name} IS NOT TRUE", f"e.{name} IS UNKNOWN"]
    if pa.types.is_integer(kind.type) and kind.type.bit_width < 32:
        shapes.append(f"e.{name} + 1 > {one}")
    return draw.choice(shapes)


def _literal(draw: random.Random, kind: Kind) -> str:
    if kind.others and draw.random() < 0.07:
        return draw.choice(kind.others)
    common = kind.literals[:6]
    return draw.choice(common if draw.random() < 0.7 else kind.literals)


def _listed(draw: random.Random, kind: Kind) -> str:
    """A literal for an IN, or for an OR of equalities.

    DataFusion compares floats by their bits in both, if they are not shorter than some items;
    `any_element` does not, see the README. So zeros are left out, and floats come by twos.
    """
    if not pa.types.is_floating(kind.type):
        return draw.choice(kind.literals)
    return draw.choice([one for one in kind.literals if one not in ("0.0", "-0.0")])
