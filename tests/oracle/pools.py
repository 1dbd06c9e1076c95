"""Conditions for one moment of a world, with how many rows each is TRUE on."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from datafusion import SessionContext

from .asking import Statement, placeholders
from .columns import Labels
from .conditions import Condition, Near, Spelling, draw_condition
from .near_shapes import DUPLICATES, MOST_COMPARED, SEARCHES
from .shape import NEAR, Shape
from .shapes import ON_U, SHAPES
from .situations import Sessions
from .texts import DEFAULT, Distance, Texts, draw_distance, draw_order, draw_plain_distance

_SIZES = {"t": 40, "u": 16}
"""How many conditions a moment has for each table."""

_EQUATED = re.compile(r"\b[ns] (?:=|IN\b|IS NULL)")
_WITHOUT_TEXTS = tuple(shape for shape in SHAPES if shape.kind != "nearest")


@dataclass(frozen=True, slots=True)
class Pool:
    """Conditions on one table: `selecting` are TRUE on some rows but not on all."""

    selecting: tuple[Condition, ...]
    others: tuple[Condition, ...]

    def draw(self, draw: random.Random) -> Condition:
        if self.selecting and (not self.others or draw.random() < 0.85):
            return draw.choice(self.selecting)
        return draw.choice(self.others)


def draw_pools(draw: random.Random, sessions: Sessions) -> dict[str, Pool]:
    """A pool for each table."""
    pools = {}
    for table, columns in sessions.columns.items():
        conditions = [draw_condition(draw, columns) for _ in range(_SIZES[table])]
        rows = sessions.rows[table].num_rows
        counts = _counts(conditions, table, sessions.memory)
        selecting, others = [], []
        for condition, count in zip(conditions, counts, strict=True):
            selects = count is not None and 0 < count < rows
            # What DataFusion refuses is asked now and then.
            if selects or count is not None or draw.random() < 0.2:
                (selecting if selects else others).append(condition)
        pools[table] = Pool(tuple(selecting), tuple(others))
    return pools


def _counts(conditions: list[Condition], table: str, memory: SessionContext) -> list[int | None]:
    """On how many rows each is TRUE; None where DataFusion refuses it."""
    texts = [condition.sql(Spelling(in_memory=True)) for condition in conditions]
    counts = ", ".join(
        f"count(*) FILTER (WHERE {text}) AS c{number}" for number, text in enumerate(texts)
    )
    try:
        return [*memory.sql(f"SELECT {counts} FROM {table}").to_pylist()[0].values()]
    except Exception:
        if len(conditions) == 1:
            return [None]
    half = len(conditions) // 2
    return [
        count
        for part in (conditions[:half], conditions[half:])
        for count in _counts(part, table, memory)
    ]


def draw_statement(draw: random.Random, pools: dict[str, Pool], sessions: Sessions) -> Statement:
    texts = [column for column in sessions.columns["t"] if isinstance(column, Texts)]
    shape = _draw_shape(draw, _shapes(sessions) if texts else _WITHOUT_TEXTS)
    conditions: dict[str, Condition] = {}
    for name in sorted(placeholders(shape)):
        if name in NEAR:
            distance = _draw_distance(draw, name, draw.choice(texts), sessions)
            conditions[name] = Near(distance, with_direction=name == "o")
        else:
            pool = pools["u" if name == ON_U else "t"]
            conditions[name] = pool.draw(draw)
            while shape.kind == "grouping sets" and _equates(conditions[name]):
                conditions[name] = pool.draw(draw)
    (a,) = [c for c in sessions.columns["t"] if isinstance(c, Labels) and c.name == "a"]
    return Statement(shape, conditions, draw.choice(a.kind.literals))


def _shapes(sessions: Sessions) -> tuple[Shape, ...]:
    """Those that a table with texts is asked; a table function takes the first index there is."""
    if len(sessions.signings) > 1:
        return SHAPES
    few = sessions.rows["t"].num_rows <= MOST_COMPARED
    return (*SHAPES, *SEARCHES, *DUPLICATES) if few else (*SHAPES, *SEARCHES)


def _draw_distance(draw: random.Random, name: str, column: Texts, sessions: Sessions) -> Distance:
    match name:
        case "o":
            return draw_order(draw, column)
        case "f":
            return draw_plain_distance(draw, column, (*sessions.signings, DEFAULT)[0])
        case _:
            return draw_distance(draw, column)


def _equates(condition: Condition) -> bool:
    """Whether it may fix a column that is grouped by.

    DataFusion then believes the groups to be in order, those without the column included, and
    gives some of them several times.
    """
    return _EQUATED.search(condition.sql(Spelling(in_memory=True))) is not None


def _draw_shape(draw: random.Random, shapes: Sequence[Shape]) -> Shape:
    return draw.choices(shapes, [shape.weight for shape in shapes])[0]
