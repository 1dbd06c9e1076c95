"""What a check of an index against its table found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MOST_DIFFERENCES: Final = 10
"""How many differences a report tells of."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Something in which an index is not as its table or its specification says.

    `row` is the address of the row that it is about, `fragment << 32 | offset`; None where it
    is about a file or the metadata.
    """

    what: str
    row: int | None = None

    def __str__(self) -> str:
        if self.row is None:
            return self.what
        return f"row {self.row & 0xFFFFFFFF} of fragment {self.row >> 32}: {self.what}"


@dataclass(frozen=True, slots=True)
class IndexCheck:
    """The result of a check: `sound`, or the first differences.

    `rows` is the number of live rows whose entries were compared, `entries` that of the entries
    read from the index. Fragments that the index does not cover are no differences.
    `different_rows` counts the rows that differ, of which `differences` has the first.
    """

    index: str
    kind: str
    rows: int
    entries: int
    different_rows: int
    differences: tuple[Difference, ...]

    @property
    def sound(self) -> bool:
        return not self.differences

    def __str__(self) -> str:
        head = f"{self.index} ({self.kind}): {self.rows} rows, {self.entries} entries"
        if self.sound:
            return f"{head}: sound"
        lines = [f"  {difference}" for difference in self.differences]
        told = sum(difference.row is not None for difference in self.differences)
        if self.different_rows > told:
            lines.append(f"  and {self.different_rows - told} rows more")
        return "\n".join([f"{head}: NOT SOUND", *lines])
