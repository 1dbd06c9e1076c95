"""Calls of this package's table functions in a plan that is explained."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import cycle
from typing import Final

from datafusion import DataFrame, SessionContext

from ..rewrites.scans import find_scans
from .function_scan import FunctionScan
from .minhash_arguments import FUNCTION_NAMES
from .scan_identity import watch
from .scan_label import ScanLabel

_EXPLAINED: Final = ("Explain", "Analyze")
_NAMES: Final = "|".join(FUNCTION_NAMES)
# A call is printed as a scan of a table of the function's name, with parentheses but for LATERAL.
_CALL: Final = re.compile(
    rf'(TableScan: |"Relation Name": ")((?:{_NAMES})(?:\(\))?)(?=[ ,\n\\"]|$)', re.MULTILINE
)


def called_in(dataframe: DataFrame) -> tuple[FunctionScan, ...]:
    """The calls in a DataFrame's plan, each once."""
    with watch(FunctionScan) as asked:
        dataframe.optimized_logical_plan()
    return tuple(dict.fromkeys(asked))


def calls_alone(dataframe: DataFrame) -> bool:
    """Whether a plan surely reads nothing but calls, so that there is no filter to serve.

    A plan that is to be explained is none of these.
    """
    plan = dataframe.logical_plan().display_indent()
    if plan.startswith(_EXPLAINED):
        return False
    return 0 < len(_CALL.findall(plan)) == plan.count("TableScan:")


def calls_in_turn(dataframe: DataFrame, context: SessionContext) -> list[FunctionScan | None]:
    """The scans of calls in the optimized plan as it is printed; None for one not to be told."""
    turn: list[FunctionScan | None] = []
    for found in find_scans(dataframe.optimized_logical_plan()):
        if not _CALL.fullmatch(f"TableScan: {found.reference[-1]}"):
            continue
        with watch(FunctionScan) as asked, suppress(Exception):
            context.create_dataframe_from_logical_plan(found.scan).optimized_logical_plan()
        turn.append(asked[0] if asked else None)
    return turn


def name_calls(
    plan: str, in_turn: Sequence[ScanLabel | None]
) -> tuple[str, Mapping[str, ScanLabel]]:
    """A printed logical plan with a name of its own for each call that has a label.

    A format may print the plan several times over. Where calls hide in subqueries it is not
    known which is which, and all keep their names.

    >>> label = ScanLabel("docs", ())
    >>> plan, labels = name_calls("TableScan: minhash_search() projection=[id]", [label])
    >>> plan, list(labels)
    ('TableScan: minhash_search()#0 projection=[id]', ['minhash_search()#0'])
    """
    found = _CALL.findall(plan)
    if not found or not in_turn or len(found) % len(in_turn):
        return plan, {}
    labels: dict[str, ScanLabel] = {}
    turn = cycle(in_turn)

    def named(call: re.Match[str]) -> str:
        label = next(turn)
        if label is None:
            return call[0]
        name = f"{call[2]}#{len(labels)}"
        labels[name] = label
        return f"{call[1]}{name}"

    return _CALL.sub(named, plan), labels
