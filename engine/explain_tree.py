"""Index scans by name in the boxes of DataFusion's tree format.

Boxes of one depth stand side by side, so a box that grows makes its whole row grow:

    ┌───────────────────────────┐
    │         IndexScan         │
    │    --------------------   │
    │        table=images       │
    └───────────────────────────┘
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from .scan_label import ScanLabel

_INSIDE = 27
_TEXT = 25
_RULE = "-" * 20


def label_tree(plan: str, order: Sequence[ScanLabel | None]) -> str:
    """The tree with the labels in its DatasetExec boxes, which stand in `order` from the left."""
    rows = [list(row) for row in _rows(plan.split("\n"))]
    leaves = sorted(
        (column, number)
        for number, row in enumerate(rows)
        for column in _boxes(row)
        if _inside(row[1], column).strip() == "DatasetExec"
    )
    if len(leaves) != len(order):
        return plan
    for (column, number), label in zip(leaves, order, strict=True):
        if label is not None:
            _fill(rows[number], column, _lines(label))
    return "\n".join(line for row in rows for line in row)


def _rows(lines: Sequence[str]) -> Iterator[Sequence[str]]:
    """The lines of each row of boxes, from their upper edges to their lower ones."""
    start = 0
    for end, line in enumerate(lines, 1):
        if "└" in line:
            yield lines[start:end]
            start = end
    if start < len(lines):
        yield lines[start:]


def _boxes(row: Sequence[str]) -> Sequence[int]:
    """The columns at which the boxes of a row begin."""
    return [column for column, sign in enumerate(row[0]) if sign == "┌"]


def _inside(line: str, column: int) -> str:
    return line[column + 1 : column + 1 + _INSIDE]


def _fill(row: list[str], column: int, content: Sequence[str]) -> None:
    """Writes the content into the box, after making the row as high as it needs."""
    missing = len(content) - (len(row) - 2)
    row[-1:-1] = [_blank(row[-1])] * missing
    for number in range(1, len(row) - 1):
        text = content[number - 1] if number <= len(content) else ""
        line = row[number]
        row[number] = f"{line[: column + 1]}{text.center(_INSIDE)}{line[column + 1 + _INSIDE :]}"


def _blank(lower_edges: str) -> str:
    """A line that continues the row above its lower edges: walls of boxes, and passing lines."""
    line = ""
    inside = False
    for sign in lower_edges:
        if sign in "└┘":
            inside = sign == "└"
            line += "│"
        else:
            line += " " if inside else sign
    return line


def _lines(label: ScanLabel) -> list[str]:
    lines = ["IndexScan", _RULE]
    for key, value in (("table", label.table), *label.entries, *label.measures):
        lines += textwrap.wrap(f"{key}={value}", _TEXT)
    return lines
