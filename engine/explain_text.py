"""Index scans by name in DataFusion's printed plans, one pair of functions for each format.

A logical plan shows an index scan as a `TableScan` under its table's name in that plan. A
physical plan shows it as a `DatasetExec` without a name, so there the labels come in the order
of those nodes, with None for those that are no index scan.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from .explain_recheck import removed_in_json, removed_in_text
from .scan_label import ScanLabel

Labels = Mapping[str, ScanLabel]
Order = Sequence[ScanLabel | None]


def label_logical(plan: str, labels: Labels) -> str:
    """An indented logical plan.

    >>> label = ScanLabel("t", (("index", "tags_idx"),))
    >>> print(label_logical("TableScan: s projection=[id]", {"s": label}))
    IndexScan: table=t, index=tags_idx, projection=[id]
    """
    for name, label in labels.items():
        plan = re.sub(
            rf"TableScan: {re.escape(name)}(?=([ ,\n\\\"]|$))",
            lambda found, text=label.text: text + ("," if found[1] == " " else ""),
            plan,
        )
    return plan


def label_scan_lines(plan: str, lines: Labels) -> str:
    """An indented logical plan, of whose scans those are meant that are printed as `lines`.

    >>> label = ScanLabel("t", (("index", "tags_idx"),))
    >>> plan = "TableScan: t projection=[id]\\nTableScan: t projection=[id, k]"
    >>> print(label_scan_lines(plan, {"TableScan: t projection=[id]": label}))
    IndexScan: table=t, index=tags_idx, projection=[id]
    TableScan: t projection=[id, k]
    """
    for line, label in lines.items():
        rest = _SCAN_NAME.sub("", line).lstrip(", ")
        labelled = f"{label.text}, {rest}" if rest else label.text
        plan = re.sub(rf"{re.escape(line)}(?=[\n\\\"]|$)", lambda _, text=labelled: text, plan)
    return plan


def label_physical(plan: str, order: Order) -> str:
    """An indented physical plan; measures go into the line's metrics.

    >>> label = ScanLabel("t", (("index", "tags_idx"),), (("rows_found", "3"),))
    >>> print(label_physical("DatasetExec: number_of_fragments=1, metrics=[]", [label]))
    IndexScan: table=t, index=tags_idx, number_of_fragments=1, metrics=[rows_found=3]
    """
    if len(_LEAF_LINE.findall(plan)) != len(order):
        return plan
    labels = iter(order)

    def labelled(found: re.Match[str]) -> str:
        label = next(labels)
        if label is None:
            return found[0]
        line = f"{found[1]}{label.text}, {found[2]}"
        above = plan[: found.start()].removesuffix("\n").split("\n")
        ran = label.rechecked(partial(removed_in_text, above, found[0]))
        measures = ", ".join(f"{key}={value}" for key, value in ran.measures)
        return f"{line[:-1]}{measures}]" if line.endswith("metrics=[]") else line

    return _LEAF_LINE.sub(labelled, plan)


def label_logical_json(plan: str, labels: Labels, lines: Labels = MappingProxyType({})) -> str:
    """A logical plan as JSON, in PostgreSQL's manner: a node of type IndexScan.

    `lines` are labels of scans by what an indented plan would print of them.
    """
    tree = json.loads(plan)
    for node in _nodes(tree):
        label = labels.get(node.get("Relation Name", "")) or lines.get(_scan_line(node))
        if label is not None:
            _put(node, label)
            node["Relation Name"] = label.table
    return _written(tree)


def label_physical_json(plan: str, order: Order) -> str:
    """A physical plan as JSON."""
    tree = json.loads(plan)
    leaves = [path for path in _paths(tree) if path[-1]["Node Type"] == "DatasetExec"]
    if len(leaves) != len(order):
        return plan
    for (*above, node), label in zip(leaves, order, strict=True):
        if label is not None:
            _put(
                node,
                label.rechecked(lambda returned, above=above: removed_in_json(above, returned)),
            )
            node["Details"] = label_physical(node["Details"], [label])
    return _written(tree)


def label_graphviz(plan: str, labels: Labels) -> str:
    """A logical plan as a graph."""
    return label_logical(plan, {name: label.quoted() for name, label in labels.items()})


def without_view(plan: str, view: str) -> str:
    """A plan of `SELECT * FROM view` in any format, as the plan of the view's query.

    >>> print(without_view("SubqueryAlias: v\\n  Limit: fetch=1\\n    TableScan: t", "v"))
    Limit: fetch=1
      TableScan: t
    """
    if plan.startswith("["):
        tree = json.loads(plan)
        for top in tree:
            if top["Plan"]["Node Type"] == "Subquery":
                top["Plan"] = top["Plan"]["Plans"][0]
        return _written(tree)
    if "digraph {" in plan:
        node = re.compile(
            rf'^ *(\d+)\[shape=box label="SubqueryAlias: {re.escape(view)}["\\].*\n', re.M
        )
        while found := node.search(plan):
            plan = plan[: found.start()] + plan[found.end() :]
            plan = re.sub(rf"^ *{found[1]} -> .*\n", "", plan, flags=re.M)
        return plan
    lines = plan.split("\n")
    while lines[0] == f"SubqueryAlias: {view}" or lines[0].startswith(f"Projection: {view}."):
        lines = [line.removeprefix("  ") for line in lines[1:]]
    return "\n".join(lines)


def under_table_name(plan: str, name: str, table: str) -> str:
    """A logical plan with `table` for the made-up name of an index scan.

    That name also qualifies columns, and with `_rest` it is that of the scan of what the index
    does not cover.

    >>> print(under_table_name("TableScan: s_rest full_filters=[s_rest.id > 1]", "s", "t"))
    TableScan: t full_filters=[t.id > 1]
    """
    name = re.escape(name)
    scan = re.compile(rf'(TableScan: |"Relation Name": "){name}_rest\b')
    plan = scan.sub(lambda found: found[1] + table, plan)
    return re.sub(rf"\b{name}(_rest)?\.", lambda _: f"{table}.", plan)


def number_of_fragments(plan: str) -> list[int]:
    """What each DatasetExec of an indented physical plan prints as its partitions, in order."""
    return [int(found[3]) for found in _LEAF_LINE.finditer(plan)]


_SCAN_NAME = re.compile(r"^TableScan: .+?(?= projection=\[|, \w+=|$)")

_LEAF_LINE = re.compile(r"^( *)DatasetExec: (number_of_fragments=(\d+).*)$", re.MULTILINE)


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """The nodes of a plan in JSON, a node before those below it."""
    return (path[-1] for path in _paths(tree))


def _paths(tree: Any) -> Iterator[list[dict[str, Any]]]:
    """The same, each node after those above it."""
    for top in tree:
        pending = [[top["Plan"]]]
        while pending:
            path = pending.pop()
            yield path
            pending.extend([*path, child] for child in reversed(path[-1].get("Plans", [])))


def _scan_line(node: Mapping[str, Any]) -> str:
    """The line of an indented plan for a scan in JSON."""
    columns = ", ".join(node.get("Output", ()))
    line = f"TableScan: {node.get('Relation Name')} projection=[{columns}]"
    filters = node.get("Full Filters")
    return f"{line}, full_filters=[{filters}]" if filters else line


def _put(node: dict[str, Any], label: ScanLabel) -> None:
    rest = {key: value for key, value in node.items() if key != "Node Type"}
    node.clear()
    node["Node Type"] = "IndexScan"
    node.update([("table", label.table), *label.entries, *label.measures])
    node.update(rest)


def _written(tree: Any) -> str:
    return json.dumps(tree, indent=2, ensure_ascii=False)
