"""What this package recognizes: one rule for each shape of a leaf predicate."""

from __future__ import annotations

from collections.abc import Callable

from datafusion.expr import Expr

from ..indexes.query import Query
from .indexed_scan import IndexedScan
from .label_list import read_label_list
from .list_element import read_list_element
from .minhash import read_minhash

Rule = Callable[[Expr, IndexedScan], Query | None]

RULES: tuple[Rule, ...] = (read_label_list, read_list_element, read_minhash)


def read_leaf(predicate: Expr, scan: IndexedScan) -> Query | None:
    """The query of the first rule that reads the predicate."""
    for rule in RULES:
        query = rule(predicate, scan)
        if query is not None:
            return query
    return None
