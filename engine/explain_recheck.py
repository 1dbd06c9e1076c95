"""How many rows of an index scan its recheck took away, read from a plan that ran.

The recheck is DataFusion's own filter above the scan, with whatever else the WHERE clause
asks; its count of rows is in the plan, rounded to three digits from a thousand on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

_PASSING: Final = ("RepartitionExec", "CoalesceBatchesExec", "CooperativeExec", "ProjectionExec")
"""Nodes that give every row that they get."""

_COUNTS: Final = re.compile(r"output_rows(?:\{[^}]*\})?=([\d.]+)(?: ([KMBT]))?[,\]]")
_TIMES: Final = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}


def removed_in_text(lines_above: Sequence[str], scan_line: str, returned: int) -> str | None:
    """Of the `returned` rows of a scan those that the filter above it took away.

    `lines_above` are the indented plan's up to the scan's. None where no filter is right
    above; a rounded number begins with `~`.

    >>> removed_in_text(["FilterExec: a, metrics=[output_rows=3]"], "  DatasetExec: ", 5)
    '2'
    >>> removed_in_text(["FilterExec: a, metrics=[output_rows=1.20 K]"], "  DatasetExec: ", 5000)
    '~3800'
    """
    depth = _depth(scan_line)
    for line in reversed(lines_above):
        if _depth(line) >= depth:
            continue
        depth = _depth(line)
        if line.strip().startswith(_PASSING):
            continue
        counts = _COUNTS.findall(line)
        if not line.strip().startswith("FilterExec") or not counts:
            return None
        kept = sum(round(float(number) * _TIMES[unit]) for number, unit in counts)
        about = "~" if any(unit for _, unit in counts) else ""
        return f"{about}{max(returned - kept, 0)}"
    return None


def removed_in_json(ancestors: Sequence[Mapping[str, Any]], returned: int) -> str | None:
    """The same of a plan as JSON; `ancestors` are the nodes above the scan, the root first.

    >>> removed_in_json([{"Node Type": "FilterExec", "Actual Rows": 3}], 5)
    '2'
    """
    for node in reversed(ancestors):
        if node["Node Type"] in _PASSING:
            continue
        if node["Node Type"] != "FilterExec" or "Actual Rows" not in node:
            return None
        return str(max(returned - node["Actual Rows"], 0))
    return None


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
