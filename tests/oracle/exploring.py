"""Worlds, one after the other, and every statement that each of them is asked."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from .asking import Asked, Failed, Statement, ask
from .conditions import Near
from .pools import Pool, draw_pools, draw_statement
from .situations import Moment, Sessions, Situation
from .tally import Tally
from .worlds import World, draw_world

_AGAIN = 0.08


@dataclass(frozen=True, slots=True)
class Case:
    """A statement, asked at a moment of a world."""

    world: World
    moment: Moment
    statement: Statement


@dataclass(frozen=True, slots=True)
class Difference:
    """A case that gave different answers, and in words how they differ."""

    case: Case
    words: str


def moments_of(world: World) -> list[Moment]:
    moments = [Moment(changes) for changes in world.asked_after]
    if world.past is not None:
        moments.append(Moment(len(world.t.changes), world.past))
    return moments


def explore(seed: int, statements: int, tally: Tally) -> Iterator[Difference]:
    """Asks the world of that seed `statements` statements, in all moments together.

    Some come again, in the same moment or in a later one: sessions remember what they planned.
    """
    world = draw_world(seed)
    draw = random.Random(seed)
    moments = moments_of(world)
    past: list[Statement] = []
    with TemporaryDirectory() as folder:
        situation = Situation(world, Path(folder))
        for number, moment in enumerate(moments):
            sessions = situation.at(moment)
            pools = draw_pools(draw, sessions)
            first, last = (n * statements // len(moments) for n in (number, number + 1))
            for _ in range(first, last):
                if past and draw.random() < _AGAIN:
                    statement = draw.choice(past[-20:])
                else:
                    statement = draw_statement(draw, pools, sessions)
                    past.append(statement)
                asked = ask(statement, sessions)
                selects = _selects(statement, asked, pools, sessions)
                tally.count(statement, asked, selects=selects)
                if asked.difference is not None:
                    yield Difference(Case(world, moment, statement), asked.difference)


def _selects(
    statement: Statement, asked: Asked, pools: dict[str, Pool], sessions: Sessions
) -> bool:
    """Whether its first condition is TRUE on some rows but not on all.

    Where it only orders by a distance, whether it leaves rows out.
    """
    conditions = [one for one in statement.conditions.values() if not isinstance(one, Near)]
    if conditions:
        return any(conditions[0] in pool.selecting for pool in pools.values())
    expected = asked.expected
    return not isinstance(expected, Failed) and expected.num_rows < sessions.rows["t"].num_rows
