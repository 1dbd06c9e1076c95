"""Conditions for one moment of a world, with how many rows each is TRUE on."""

from __future__ import annotations

import random
from dataclasses import dataclass

from datafusion import SessionContext

from .asking import Statement, placeholders
from .columns import Labels
from .conditions import Condition, Spelling, draw_condition
from .shapes import SHAPES, SIMPLE
from .situations import Sessions

_POOL = 48
_TABLES = {"p": "t", "q": "t", "r": "t", "v": "u", "w": "u"}
_WEIGHTS = [shape.weight for shape in SHAPES]


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
        conditions = [draw_condition(draw, columns) for _ in range(_POOL)]
        rows = sessions.rows[table].num_rows
        counts = [_count(condition, table, sessions.memory) for condition in conditions]
        selecting, others = [], []
        for condition, count in zip(conditions, counts, strict=True):
            selects = count is not None and 0 < count < rows
            # What DataFusion refuses is asked now and then.
            if selects or count is not None or draw.random() < 0.2:
                (selecting if selects else others).append(condition)
        pools[table] = Pool(tuple(selecting), tuple(others))
    return pools


def _count(condition: Condition, table: str, memory: SessionContext) -> int | None:
    """On how many rows it is TRUE; None where DataFusion refuses it."""
    where = condition.sql(Spelling(in_memory=True))
    try:
        return memory.sql(f"SELECT key FROM {table} WHERE {where}").count()
    except Exception:
        return None


def draw_statement(draw: random.Random, pools: dict[str, Pool], sessions: Sessions) -> Statement:
    shape = draw.choices(SHAPES, _WEIGHTS)[0]
    needed = {*placeholders(shape), *(name for one in SIMPLE for name in placeholders(one))}
    conditions = {name: pools[_TABLES[name]].draw(draw) for name in sorted(needed)}
    (a,) = [c for c in sessions.columns["t"] if isinstance(c, Labels) and c.name == "a"]
    return Statement(shape, conditions, draw.choice(a.kind.literals))
