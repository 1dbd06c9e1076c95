"""The statements whose time and memory are looked into, by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance

from label_list import label_nearest
from list_element import condition_of
from tables import LABELS

Statement = Callable[[int], str]
"""A statement for each number: the same one, or with other literals each time."""

ASIDE = 0.000_001


def label_statements(path: Path) -> dict[str, Statement]:
    """Lookups of labels in the table at `path`, called images."""
    dataset = lance.dataset(path)
    rows = dataset.count_rows()
    rare, _ = label_nearest(dataset, 118 * rows // 1_000_000)
    often, _ = label_nearest(dataset, 354_000 * rows // 1_000_000)
    return {
        "array_has, few rows": lambda _: lookup("id", rare),
        "array_has, few rows, new literal": lambda n: lookup("id", f"label_{LABELS - 1 - n:04}"),
        "array_has, a third of the rows": lambda _: lookup("id", often),
        "COUNT(*) of those": lambda _: lookup("count(*)", often),
        "five columns, few rows": lambda _: lookup("*", rare),
    }


def element_statements(path: Path) -> dict[str, Statement]:
    """Lookups of elements in the same table."""
    dataset = lance.dataset(path)
    few, more = (condition_of(dataset, hits) for hits in (30, 250))

    def with_other_bound(number: int) -> str:
        return few.sql.replace(repr(few.bound), repr(few.bound - ASIDE * (number + 1)))

    return {
        "any_element, 30 elements": lambda _: few.sql,
        "any_element, 30 elements, new literal": with_other_bound,
        "any_element, 250 elements": lambda _: more.sql,
    }


def lookup(wanted: str, label: str) -> str:
    return f"SELECT {wanted} FROM images WHERE array_has(tags, '{label}')"
