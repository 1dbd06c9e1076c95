"""A filter's predicate, read into a query tree and a leftover.

The three-valued connectives are read here; what a leaf looks like is each index's own rule
(`rules.RULES`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from datafusion.expr import Expr

from ..indexes.query import And, Is, Not, Or, Query, Superset
from .conjunction import conjuncts, disjuncts

Leaf = Callable[[Expr], Query | None]
"""Reads a leaf predicate; None where no index answers it."""

Note = Callable[[str], None]
"""Takes the reason why a predicate is not served."""

_TESTS: dict[str, tuple[bool | None, bool]] = {
    # variant: (the tested value, whether the test is negated)
    "IsTrue": (True, False),
    "IsFalse": (False, False),
    "IsUnknown": (None, False),
    "IsNull": (None, False),
    "IsNotTrue": (True, True),
    "IsNotFalse": (False, True),
    "IsNotUnknown": (None, True),
    "IsNotNull": (None, True),
}


@dataclass(frozen=True, slots=True)
class ReadPredicate:
    """A predicate as `query AND leftover`.

    `query` answers the conjuncts that an index takes part in, None where there is none;
    `recheck` holds those of them whose answer is a superset, to be evaluated once more on
    the rows found; `leftover` the conjuncts that no index answers.
    """

    query: Query | None
    recheck: tuple[Expr, ...]
    leftover: tuple[Expr, ...]


def read_predicate(predicate: Expr, leaf: Leaf, note: Note) -> ReadPredicate:
    """Splits `predicate` into what indexes answer and the rest.

    `leaf` reads the leaves; `note` is told of a predicate that an index could have answered.
    """
    queries: list[Query] = []
    recheck: list[Expr] = []
    leftover: list[Expr] = []
    reader = _Reader(leaf, note)
    for conjunct in conjuncts(predicate):
        query = reader.read(conjunct)
        if query is None:
            leftover.append(conjunct)
            continue
        queries.append(query)
        if not query.exact:
            recheck.append(conjunct)
    if not queries:
        return ReadPredicate(None, (), tuple(leftover))
    query = queries[0] if len(queries) == 1 else And(tuple(queries))
    return ReadPredicate(query, tuple(recheck), tuple(leftover))


@dataclass(frozen=True, slots=True)
class _Reader:
    leaf: Leaf
    note: Note

    def read(self, predicate: Expr) -> Query | None:
        """The query whose TRUE rows hold those of `predicate`; None where no index says."""
        variant = predicate.variant_name()
        if variant == "BinaryExpr":
            return self._read_binary(predicate)
        if variant == "Not":
            child = self.read(predicate.rex_call_operands()[0])
            return Not(child) if child is not None and self._negatable(child) else None
        query = self.leaf(predicate)
        if query is None and variant in _TESTS:
            operand = predicate.rex_call_operands()[0]
            query = self._read_test(operand, *_TESTS[variant])
        return query

    def _read_binary(self, predicate: Expr) -> Query | None:
        operator = predicate.rex_call_operator()
        if operator == "AND":
            sides = [self.read(side) for side in conjuncts(predicate)]
            known = tuple(side for side in sides if side is not None)
            if not known:
                return None
            query = known[0] if len(known) == 1 else And(known)
            return query if len(known) == len(sides) else Superset(query)
        if operator == "OR":
            sides = [self.read(side) for side in disjuncts(predicate)]
            known = tuple(side for side in sides if side is not None)
            if known and len(known) < len(sides):
                self.note(f"{predicate.canonical_name()}: no index answers every side of the OR")
            return Or(known) if len(known) == len(sides) else None
        if operator in ("IS DISTINCT FROM", "IS NOT DISTINCT FROM"):
            left, right = predicate.rex_call_operands()
            if left.variant_name() == "Literal":
                left, right = right, left
            if right.variant_name() == "Literal":
                value = right.python_value().as_py()
                if value is None or isinstance(value, bool):
                    return self._read_test(left, value, operator == "IS DISTINCT FROM")
        return self.leaf(predicate)

    def _read_test(self, operand: Expr, value: bool | None, negated: bool) -> Query | None:
        """`operand IS [NOT] value`."""
        child = self.read(operand)
        if child is None:
            return None
        if value is True and not negated:
            return Is(child, True)
        if not self._negatable(child):
            return None
        test = Is(child, value)
        return Not(test) if negated else test

    def _negatable(self, query: Query) -> bool:
        """Whether the rows on which the query is FALSE are known."""
        known = query.exact and query.null_known
        if not known:
            self.note(f"{query}: the index does not know on which rows it is FALSE")
        return known
