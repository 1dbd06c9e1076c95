"""How many rows of an index scan its recheck took away, read from a plan that ran.

The recheck is DataFusion's own filter above the scan, with whatever else the WHERE clause
asks; its counts of rows are in the plan, rounded to three digits from a thousand on. They tell
the rows taken away only where the filter has seen just those that the scan returned: not where
a LIMIT ended it, where it reads fragments without index, too, or where it is one of several.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

_PASSING: Final = ("RepartitionExec", "CoalesceBatchesExec", "CooperativeExec", "ProjectionExec")
"""Nodes that give every row that they get."""

_NODE: Final = re.compile(r"( *)(\w+Exec)(?=[:,]|$)")
# Nothing in the metrics has a bracket; a literal before them may.
_MEASURED: Final = re.compile(r"(.*?)(?:, fetch=(\d+))?, metrics=\[([^\]]*)\]", re.DOTALL)
_FETCH: Final = re.compile(r", fetch=(\d+)$")
_KEPT: Final = re.compile(r"output_rows(?:\{[^}]*\})?=([\d.]+)(?: ([KMBT]))?(?:,|$)")
_SEEN: Final = re.compile(r"/([\d.]+)(?: ([KMBT]))?\)")
_TIMES: Final = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}
_ROUNDING: Final = 0.005


@dataclass(frozen=True, slots=True)
class _Filter:
    """Rows that a filter gave and saw; `fetch` is how many were enough."""

    kept: int
    seen: int
    fetch: int | None

    def removed(self, returned: int) -> int | None:
        if self.fetch is not None and self.kept >= self.fetch:
            return None
        if abs(self.seen - returned) > _ROUNDING * returned * (self.seen >= 1000):
            return None
        return max(returned - self.kept, 0)


def removed_in_text(lines_above: Sequence[str], scan_line: str, returned: int) -> str | None:
    """Of the `returned` rows of a scan those that the filter above it took away.

    `lines_above` are the indented plan's up to the scan's. None where no filter is right
    above, or where its counts do not tell; a rounded number begins with `~`.

    >>> metrics = "metrics=[output_rows=3, selectivity=60% (3/5)]"
    >>> removed_in_text([f"FilterExec: a, {metrics}"], "  DatasetExec: ", 5)
    '2'
    >>> metrics = "metrics=[output_rows=1.20 K, selectivity=24% (1.20 K/5.00 K)]"
    >>> removed_in_text([f"FilterExec: a, {metrics}"], "  DatasetExec: ", 5000)
    '~3800'
    """
    depth = len(scan_line) - len(scan_line.lstrip(" "))
    for above, name, node in reversed(list(_nodes(lines_above))):
        if above >= depth:
            continue
        depth = above
        if name in _PASSING:
            continue
        measured = _MEASURED.fullmatch(node)
        if name != "FilterExec" or measured is None:
            return None
        _, fetch, metrics = measured.groups()
        counts, seen = _KEPT.findall(metrics), _SEEN.findall(metrics)
        if not counts:
            return None
        filter_ = _Filter(_total(counts), _total(seen), None if fetch is None else int(fetch))
        removed = filter_.removed(returned)
        about = "~" if any(unit for _, unit in counts) else ""
        return None if removed is None else f"{about}{removed}"
    return None


def removed_in_json(ancestors: Sequence[Mapping[str, Any]], returned: int) -> str | None:
    """The same of a plan as JSON; `ancestors` are the nodes above the scan, the root first.

    >>> measures = {"Actual Rows": 3, "Extras": {"selectivity": "60% (3/5)"}}
    >>> removed_in_json([{"Node Type": "FilterExec", "Details": "", **measures}], 5)
    '2'
    """
    for node in reversed(ancestors):
        if node["Node Type"] in _PASSING:
            continue
        if node["Node Type"] != "FilterExec" or "Actual Rows" not in node:
            return None
        fetch = _FETCH.search(node["Details"])
        seen = _total(_SEEN.findall(str(node.get("Extras", {}).get("selectivity", ""))))
        removed = _Filter(
            node["Actual Rows"], seen, None if fetch is None else int(fetch[1])
        ).removed(returned)
        return None if removed is None else str(removed)
    return None


def _nodes(lines: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """The depth, the name and the text of each node: several lines where a literal has them."""
    node: list[str] = []
    for line in lines:
        if node and _NODE.match(line):
            yield _node(node)
            node = []
        node.append(line)
    if node:
        yield _node(node)


def _node(lines: Sequence[str]) -> tuple[int, str, str]:
    found = _NODE.match(lines[0])
    return (len(found[1]), found[2], "\n".join(lines)) if found else (0, "", "")


def _total(counts: Sequence[tuple[str, str]]) -> int:
    return sum(round(float(number) * _TIMES[unit]) for number, unit in counts)
