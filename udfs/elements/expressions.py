"""Expressions over the fields of an element, read from text and compared in one canonical form."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa
from datafusion import SessionContext
from datafusion.expr import Expr

ELEMENT = "__element"
"""The lambda's parameter."""

_LISTS = "__lists"
_ALIAS = "__predicate"
# With quotes in it, it cannot stand inside of a name or literal of a plan's repr.
_END = f', relation: None, name: "{_ALIAS}", metadata: None }})], input: '
_BEGIN = "Projection(Projection { expr: [Alias(Alias { expr: "
_GIVEN_NAME = re.compile(r'name: "(?:[^"\\]|\\.)*"(?=, metadata: None \}\))', re.DOTALL)
_BODY = f'params: ["{ELEMENT}"], body: '
_BODY_END = " })] })"


class ElementExpressions:
    """Scalar expressions whose columns are an element's fields.

    `form` gives the expression that DataFusion makes of a text, printed in full: equal forms
    are equal expressions.
    """

    def __init__(self, context: SessionContext, fields: Iterable[pa.Field]) -> None:
        schema = pa.schema(list(fields))
        self._rows = context.read_batch(pa.RecordBatch.from_pylist([], schema=schema))

    def parse(self, text: str) -> Expr:
        """The one expression that the text is. Raises DataFusion's error where it is none."""
        return self._rows.parse_sql_expr(text)

    def type_of(self, text: str) -> pa.DataType:
        # Named after a text with a zero byte in it, a field could not be handed over.
        return self._rows.select(self.parse(text).alias(_ALIAS)).schema().field(0).type

    def form(self, text: str) -> str:
        plan = repr(self._rows.select(self.parse(text).alias(_ALIAS)).logical_plan())
        form, _, source = plan.removeprefix(_BEGIN).rpartition(_END)
        # What is no scalar expression is computed by a node below the projection.
        return _unnamed(form) if source.startswith("TableScan(") else f"{form}, input: {source}"


class LambdaBodies:
    """Scalar expressions over a lambda's parameter, which is one element of a list."""

    def __init__(self, context: SessionContext, element: pa.DataType) -> None:
        self._context = context
        schema = pa.schema([pa.field(_LISTS, pa.list_(element))])
        self._rows = context.read_batch(pa.RecordBatch.from_pylist([], schema=schema))

    def match(self, body: str) -> Expr:
        """`array_any_match` with the given body, over lists of such elements."""
        return self._rows.parse_sql_expr(any_match(_LISTS, body))

    def evaluate(self, match: Expr, lists: pa.Array) -> pa.Array:
        """The match's answers for lists of such elements, of any list type."""
        rows = self._context.read_batch(pa.RecordBatch.from_arrays([lists], [_LISTS]))
        answers = rows.select(match).collect()
        return pa.concat_arrays([batch.column(0) for batch in answers])

    def form(self, body: str) -> str:
        """The body's form, comparable with those of other bodies."""
        plan = repr(self._rows.select(self.match(body).alias(_ALIAS)).logical_plan())
        _, _, form = plan.partition(_BODY)
        return _unnamed(form.rpartition(_END)[0].removesuffix(_BODY_END))


def _unnamed(form: str) -> str:
    """Without the names that some functions give to what they make of their arguments."""
    return _GIVEN_NAME.sub('name: ""', form)


def any_match(lists: str, body: str, parameter: str = ELEMENT) -> str:
    """SQL for whether the body is TRUE on an element, in a dialect that has lambdas."""
    return f"array_any_match({lists}, {parameter} -> ({body}))"
