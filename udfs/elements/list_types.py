"""The types of the lists that a statement's calls are on, found by planning it."""

from __future__ import annotations

import re
from collections.abc import Collection

import pyarrow as pa
from datafusion import SessionContext, udf

from ...indexes.errors import InvalidArgumentError
from .calls import CallingStatement
from .debug_form import Node, arrow_type, quoted, read_node
from .expressions import any_match
from .tokens import joined, query_blocks, tokenize

PROBE = "__any_element_"

_PROBED = re.compile(r'params: \["__any_element_(\d+)"\], body: ')
_REFUSAL = re.compile(
    r"coercion from (.*) to the signature Exact\(Boolean, Boolean\) failed", re.DOTALL
)
_NAME = re.compile(r'"(?:[^"\\]|\\.)*"')


def element_of(type_: pa.DataType) -> pa.DataType | None:
    """The type of the elements of a list that DataFusion matches; None for another type."""
    if (
        pa.types.is_list(type_)
        or pa.types.is_large_list(type_)
        or pa.types.is_fixed_size_list(type_)
    ):
        return type_.value_type
    return None


def probe(number: int, lists: str) -> str:
    """A call that a plan shows together with the type of its list's elements."""
    parameter = f"{PROBE}{number}"
    return any_match(lists, f"{parameter} IS NULL", parameter)


def same_expressions(statement: CallingStatement) -> tuple[int, ...]:
    """A number for each call, the same for those that are the same text in the same SELECT."""
    blocks = query_blocks(statement.tokens)
    block_at = {token.start: block for token, block in zip(statement.tokens, blocks, strict=True)}
    numbers: dict[tuple[int, str, str], int] = {}
    return tuple(
        numbers.setdefault((block_at[call.start], call.predicate, lists), len(numbers))
        for call in statement.calls
        for lists in [joined(tokenize(statement.text[call.list_start : call.list_end]))]
    )


def shown_elements(plan: str) -> dict[int, list[pa.DataType]]:
    """By number, the types of probed lists' elements, as far as a plan's `repr` shows them."""
    found: dict[int, list[pa.DataType]] = {}
    for match in _PROBED.finditer(plan):
        body, _ = read_node(plan, match.end())
        types = found.setdefault(int(match.group(1)), [])
        variable: Node = body.arguments[0].arguments[0]
        element = _element(variable.fields["field"].arguments[0].fields["data_type"])
        if element not in types:
            types.append(element)
    return found


def _element(node: Node) -> pa.DataType:
    try:
        return arrow_type(node)
    except ValueError as error:
        raise InvalidArgumentError(
            "list_expr", "a list of elements", f"elements of types that pyarrow has ({error})"
        ) from error


def refused_element(
    statement: CallingStatement, calls: Collection[int], context: SessionContext, before: str
) -> pa.DataType:
    """The type of the elements of some calls' list, wherever in the statement they stand.

    A plan does not show what is in its subqueries. But an error names the types of a function's
    arguments, so the calls are replaced by one that is in error. `before` is put before the
    statement.
    """
    function = f"{PROBE}type"
    signature = [pa.bool_(), pa.bool_()]
    context.register_udf(udf(lambda a, b: a, signature, pa.bool_(), "immutable", function))

    def write(number: int, lists: str) -> str:
        return f"{function}({lists}, TRUE)" if number in calls else f"({lists} IS NULL)"

    try:
        plan = context.sql(before + statement.replaced(write)).logical_plan()
        if plan.display().partition(":")[0] in ("Explain", "Analyze"):
            plan = plan.inputs()[0]  # an EXPLAIN shows the error, it does not raise it
        context.create_dataframe_from_logical_plan(plan).optimized_logical_plan()
    except Exception as error:
        refusal = _REFUSAL.search(str(error))
        if refusal is None:
            raise
        return _named_type(refusal.group(1).removesuffix(", Boolean"), context)
    finally:
        context.deregister_udf(function)
    raise InvalidArgumentError("list_expr", "no list", "a list of structs")


def _named_type(name: str, context: SessionContext) -> pa.DataType:
    """The type of the elements of a list type, given the name that DataFusion has for it."""
    # A name that is empty or has escapes in it would not be read back as what it was.
    odd: dict[str, str] = {}

    def plain(match: re.Match[str]) -> str:
        if len(match.group()) > 2 and "\\" not in match.group():
            return match.group()
        stand_in = f"__odd_{len(odd)}"
        odd[stand_in] = read_node(match.group(), 0)[0]
        return f'"{stand_in}"'

    spelled = _NAME.sub(plain, name)
    try:
        frame = context.sql(f"SELECT arrow_cast(NULL, {quoted(spelled)})")
        type_ = frame.schema().field(0).type
    except Exception as error:
        raise InvalidArgumentError("list_expr", name, "a list of structs") from error
    element = element_of(type_)
    if element is None:
        raise InvalidArgumentError("list_expr", name, "a list of structs")
    return _renamed(element, odd)


def _renamed(type_: pa.DataType, names: dict[str, str]) -> pa.DataType:
    if not pa.types.is_struct(type_):
        return type_
    return pa.struct(
        [
            field.with_name(names.get(field.name, field.name)).with_type(
                _renamed(field.type, names)
            )
            for field in type_
        ]
    )
