"""The smallest case that still gives different answers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from .asking import ask
from .changes import Append, Change, Merge, Rewrite
from .exploring import Case, Difference
from .situations import Moment, Situation
from .worlds import Life, World


def shrunk(difference: Difference, seconds: float = 60.0) -> Difference | None:
    """The same kind of difference in fewer changes, fewer rows and a smaller statement.

    None where the case alone gives none: it then depends on what the sessions did before.
    """
    stop = time.monotonic() + seconds
    words = tried(difference.case)
    if words is None:
        return None
    smallest = Difference(difference.case, words)
    found = True
    while found and time.monotonic() < stop:
        found = False
        for case in _smaller(smallest.case):
            if time.monotonic() > stop:
                break
            words = tried(case)
            if words is not None:
                smallest, found = Difference(case, words), True
                break
    return smallest


def tried(case: Case) -> str | None:
    """How the answers to a case differ; None where they do not, or where it cannot be."""
    with TemporaryDirectory() as folder:
        try:
            sessions = Situation(case.world, Path(folder)).at(case.moment)
        except Exception:
            return None  # a change is missing that a later one builds on
        return ask(case.statement, sessions).difference


def _smaller(case: Case) -> Iterator[Case]:
    world, moment = case.world, case.moment
    for fewer, at in _fewer_changes(world.t.changes, moment):
        yield replace(case, world=replace(world, t=replace(world.t, changes=fewer)), moment=at)
    if world.u.changes:
        yield replace(case, world=replace(world, u=replace(world.u, changes=())))
    for statement in case.statement.smaller():
        yield replace(case, statement=statement)
    for life in _fewer_rows(world.t):
        yield replace(case, world=replace(world, t=life))
    for life in _fewer_rows(world.u):
        yield replace(case, world=replace(world, u=life))
    for column in world.t.columns:
        t, u = (_without(life, column.name) for life in (world.t, world.u))
        yield replace(case, world=replace(world, t=t, u=u))
    yield from (replace(case, world=one) for one in _plainer(world))


def _without(life: Life, column: str) -> Life:
    """The life without a column; where something needs it, it cannot be tried."""
    changes = tuple(
        replace(change, rows=change.rows.drop_columns([column]))
        if isinstance(change, Append | Merge | Rewrite) and column in change.rows.column_names
        else change
        for change in life.changes
    )
    columns = tuple(one for one in life.columns if one.name != column)
    first = life.first.drop_columns([column])
    return replace(life, columns=columns, first=first, changes=changes)


def _fewer_changes(
    changes: tuple[Change, ...], moment: Moment
) -> Iterator[tuple[tuple[Change, ...], Moment]]:
    if len(changes) > moment.changes:
        yield changes[: moment.changes], moment
        return
    if moment.past is not None:
        yield changes, Moment(moment.changes)
    for at in reversed(range(len(changes))):
        past = moment.past if moment.past is None or moment.past <= at else moment.past - 1
        yield (*changes[:at], *changes[at + 1 :]), Moment(moment.changes - 1, past)


def _fewer_rows(life: Life) -> Iterator[Life]:
    for rows in _parts(life.first):
        yield replace(life, first=rows)
    for at, change in enumerate(life.changes):
        if isinstance(change, Append | Merge | Rewrite):
            for rows in _parts(change.rows):
                fewer = replace(change, rows=rows)
                changes = (*life.changes[:at], fewer, *life.changes[at + 1 :])
                yield replace(life, changes=changes)


def _parts(rows: pa.Table) -> Iterator[pa.Table]:
    """The rows without some of them: halves, quarters, ..., single ones of the last few."""
    step = -(-rows.num_rows // 2)
    while step:
        for low in range(0, rows.num_rows, step):
            places = [*range(low), *range(low + step, rows.num_rows)]
            yield rows.take(pa.array(places, pa.int64()))
        step = step // 2 if step > 1 and rows.num_rows < 40 * step else 0


def _plainer(world: World) -> Iterator[World]:
    if world.t.stable_row_ids:
        yield replace(world, t=replace(world.t, stable_row_ids=False))
    for life, name in ((world.t, "t"), (world.u, "u")):
        if life.rows_per_fragment < life.first.num_rows:
            one = replace(life, rows_per_fragment=life.first.num_rows)
            yield replace(world, t=one) if name == "t" else replace(world, u=one)
    if world.batch_size != 8192:
        yield replace(world, batch_size=8192)
    if world.target_partitions != 1:
        yield replace(world, target_partitions=1)
    if world.own_function:
        yield replace(world, own_function=None)
