"""Predicates that stand further up than right above a scan, and still say which rows it needs.

DataFusion moves a filter down to its scan where it can. It cannot below an outer join that gives
NULLs for missing rows, nor where an OR mixes the columns of two tables, nor out of an aggregate's
FILTER; yet there, too, rows of the scan on which the predicate is not TRUE have no part in the
answer. The predicate stays where it is and looks again; `column_trace` says when this is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Final

from datafusion import SessionContext
from datafusion.expr import Expr
from datafusion.plan import LogicalPlan

from ..indexes.query import And, Is, Not, Or, Query, Superset
from .aggregate_filter import aggregate_filter
from .column_trace import Trace, trace
from .spine import Path


@dataclass(frozen=True, slots=True)
class RowDemand:
    """A predicate that is TRUE on every row of the answer, or of what is aggregated.

    `stated_by` is the node that it stands in, and `columns` are the columns of one scan in it, by
    their qualified names there; `names` gives the scan's names of them, by the bare ones there.
    `may_miss` and `barrier` are as in `Trace`.
    """

    stated_by: LogicalPlan
    predicate: Expr
    columns: frozenset[str]
    names: Mapping[str, str]
    may_miss: bool
    barrier: str | None

    def concerns(self, leaf: Expr) -> bool:
        """Whether a part of the predicate reads columns of the scan, and of nothing else."""
        read = _columns(leaf)
        return bool(read) and read.keys() <= self.columns


def row_demands(plan: LogicalPlan, context: SessionContext) -> Mapping[Path, Sequence[RowDemand]]:
    """The demands on the rows of each scan, by the paths of the scans (as in `FoundScan`)."""
    demands: dict[Path, list[RowDemand]] = {}
    for path, demand in _found(plan, context, ()):
        demands.setdefault(path, []).append(demand)
    return demands


def true_on_missing_row(query: Query) -> bool:
    """Whether what a query answers may be TRUE where all lists are NULL.

    So it is on the NULLs that an outer join gives for a row that is not there.
    """
    return _on_null_lists(query) is True


def _on_null_lists(query: Query) -> bool | None:
    """The value of the query where all lists are NULL; TRUE where it is a superset's."""
    match query:
        case And():
            values = [_on_null_lists(child) for child in query.children]
            return False if False in values else None if None in values else True
        case Or():
            values = [_on_null_lists(child) for child in query.children]
            return True if True in values else None if None in values else False
        case Not():
            value = _on_null_lists(query.child)
            return None if value is None else not value
        case Is():
            return _on_null_lists(query.child) is query.value
        case Superset():
            return _on_null_lists(query.child)
        case _:
            return None


# -- where predicates stand -------------------------------------------------------------------


def _found(
    plan: LogicalPlan, context: SessionContext, path: Path
) -> Iterator[tuple[Path, RowDemand]]:
    node, inputs = plan.to_variant(), plan.inputs()
    kind = type(node).__name__
    if kind == "Filter":
        if type(inputs[0].to_variant()).__name__ == "TableScan":
            return
        yield from _demanded(plan, Expr(node.predicate()), [(inputs[0], (*path, 0), None)])
    elif kind == "Join" and node.filter() is not None:
        barriers = _BARRIERS_OF_ON.get(str(node.join_type()), (_ON, _ON))
        sides = [
            (side, (*path, i), barrier)
            for i, (side, barrier) in enumerate(zip(inputs, barriers, strict=True))
        ]
        yield from _demanded(plan, Expr(node.filter()), sides)
    elif kind == "Aggregate":
        filters = [aggregate_filter(Expr(call), context) for call in node.aggregate_exprs()]
        stated = [predicate for predicate in filters if predicate is not None]
        if stated:
            barrier = None
            if len(stated) < len(filters):
                barrier = "another aggregate beside it takes other rows"
            if node.group_by_exprs():
                barrier = "groups in which an aggregate's FILTER finds no row stay in the answer"
            predicate = reduce(or_, stated)
            yield from _demanded(plan, predicate, [(inputs[0], (*path, 0), barrier)])
    for i, child in enumerate(inputs):
        yield from _found(child, context, (*path, i))


_ON = "it is in the ON of a join that keeps rows on which it is not TRUE"

_BARRIERS_OF_ON: Mapping[str, tuple[str | None, str | None]] = {
    # The sides of which a row has a part in the answer only if the condition is TRUE on it.
    "Inner": (None, None),
    "Left": (_ON, None),
    "Right": (None, _ON),
    "LeftSemi": (None, None),
    "RightSemi": (None, None),
}

_Side = tuple[LogicalPlan, Path, str | None]


def _demanded(
    plan: LogicalPlan, predicate: Expr, sides: Sequence[_Side]
) -> Iterator[tuple[Path, RowDemand]]:
    """The demands that a predicate over the outputs of the `sides` makes of each scan below."""
    bare = _columns(predicate)
    traced: dict[Path, dict[str, Trace]] = {}
    for column in bare:
        for side, path, barrier in sides:
            found = trace(side, path, column)
            if found is not None:
                found = replace(found, barrier=barrier or found.barrier)
                traced.setdefault(found.path, {})[column] = found
    for path, columns in traced.items():
        names = {bare[column]: found.name for column, found in columns.items()}
        if any(names[bare[column]] != found.name for column, found in columns.items()):
            continue  # one name for two columns: a rule reads bare names
        yield (
            path,
            RowDemand(
                plan,
                predicate,
                frozenset(columns),
                names,
                any(one.may_miss for one in columns.values()),
                next((one.barrier for one in columns.values() if one.barrier), None),
            ),
        )


_COMPOUND: Final = frozenset(
    {
        "Between",
        "BinaryExpr",
        "Case",
        "Cast",
        "HigherOrderFunction",
        "InList",
        "IsFalse",
        "IsNotFalse",
        "IsNotNull",
        "IsNotTrue",
        "IsNotUnknown",
        "IsNull",
        "IsTrue",
        "IsUnknown",
        "Like",
        "Not",
        "ScalarFunction",
        "TryCast",
    }
)
"""Expressions whose operands DataFusion gives; one that is an atom gives itself."""


def _columns(expression: Expr) -> dict[str, str]:
    """The columns that rules may read in an expression: bare names by qualified ones.

    Those inside lambdas and subqueries are left out.
    """
    names: dict[str, str] = {}
    waiting = [expression]
    while waiting:
        one = waiting.pop()
        variant = one.variant_name()
        if variant == "Column":
            column = one.to_variant()
            names[column.qualified_name()] = column.name()
        elif variant in _COMPOUND:
            waiting.extend(one.rex_call_operands())
    return names
