"""A statement in which predicates are left open."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """`ordered`: it orders totally. `setup` runs before it, `teardown` after.

    Where `cached`, the DataFrame's rows are asked of its `cache()`, which plans another DataFrame
    over it, so that tables cannot tell its scans apart.

    `memory` is what plain DataFusion is asked, where that is something else. Where answers
    differ, its conditions are first tried alone, in `SIMPLE` and `SIMPLE_ON_U`.
    """

    kind: str
    text: str
    ordered: bool = False
    setup: tuple[str, ...] = ()
    teardown: tuple[str, ...] = ()
    is_chain: bool = False
    cached: bool = False
    weight: float = 1.0
    memory: str | None = None


def shapes_of(
    kind: str, *texts: str, ordered: bool = False, weight: float = 1.0
) -> tuple[Shape, ...]:
    return tuple(Shape(kind, text, ordered, weight=weight) for text in texts)


NEAR = ("o", "d", "f")
"""The names in shapes of what is no condition but a distance."""
