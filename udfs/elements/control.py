"""Whether two dialects read one statement as the same.

In one plan the calls are calls of a function, in the other they are matches with a probing
lambda (`list_types.probe`); apart from that, both have to be equal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from datafusion.plan import LogicalPlan

from .calls import NAME, CallingStatement
from .debug_form import read_node
from .list_types import PROBE

_CALL = re.compile(
    r"ScalarFunction\(ScalarFunction \{ func: ScalarUDF \{ inner: PythonFunctionScalarUDF \{ name: "
    rf'"{NAME}".*?parameter_names: None \}}, return_field: Field \{{.*?\}} \}} \}}, args: \['
)
_MATCH = re.compile(
    r"HigherOrderFunction\(HigherOrderFunction \{ func: HigherOrderUDF \{ inner: ArrayAnyMatch \{"
    r".*?aliases: \[.*?\] \} \}, args: \["
)
_LAMBDA = re.compile(rf'Lambda\(Lambda \{{ params: \["{PROBE}(\d+)"\], body: ')
_DEFINITION = re.compile(r'definition: Some\("(?:[^"\\]|\\.)*"\)', re.DOTALL)
_NULLABLE = re.compile(r", nullable: true|;N")


def same_statement(
    called: LogicalPlan, probed: LogicalPlan, statement: CallingStatement, numbers: Sequence[int]
) -> bool:
    """Whether the plan with calls and the one with probes are of the same statement.

    `numbers` are those of the probes of the statement's calls.
    """
    predicates = sorted({call.predicate for call in statement.calls}, key=len, reverse=True)
    marks = {
        number: predicates.index(call.predicate)
        for number, call in zip(numbers, statement.calls, strict=True)
    }
    # The full form leaves out what is in subqueries, the other one does not.
    forms = (
        (repr(called), repr(probed)),
        (called.display_indent_schema(), probed.display_indent_schema()),
    )
    return all(
        _marked(_without_calls(with_calls), predicates)
        == _marked(_without_probes(with_probes, marks), predicates)
        for with_calls, with_probes in forms
    )


def _without_calls(plan: str) -> str:
    # The statement may have matches of its own, which both plans have.
    return _MATCH.sub("match([", _CALL.sub("match([", plan))


def _marked(plan: str, predicates: Sequence[str]) -> str:
    """The plan with marks for predicates' texts, which other literals may have, too."""
    for mark, predicate in enumerate(predicates):
        plan = plan.replace(f'Literal(Utf8("{predicate}"), None)', f"<{mark}>")
        # In names of columns, which the full form has in quotes.
        for shown in (f'Utf8("{predicate}")', _in_quotes(f'Utf8("{predicate}")')):
            plan = plan.replace(shown, f"<{mark}>")
    return _leveled(plan)


def _without_probes(plan: str, marks: dict[int, int]) -> str:
    plan = _MATCH.sub("match([", plan)
    parts: list[str] = []
    position = 0
    for found in _LAMBDA.finditer(plan):
        _, end = read_node(plan, found.end())
        parts += [plan[position : found.start()], f"<{marks[int(found.group(1))]}>"]
        position = end + len(" })")
    plan = "".join([*parts, plan[position:]])
    for number, mark in marks.items():
        plan = plan.replace(f"({PROBE}{number}) -> {PROBE}{number} IS NULL", f"<{mark}>")
    return plan


def _leveled(plan: str) -> str:
    """Without the statement's own text, the function's name and what is known about NULLs."""
    plan = _DEFINITION.sub("definition", plan)
    return _NULLABLE.sub("", plan.replace("array_any_match(", f"{NAME}("))


def _in_quotes(text: str) -> str:
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return "".join(escapes.get(character, character) for character in text)
