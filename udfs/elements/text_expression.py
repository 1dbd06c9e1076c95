"""Expressions for a DataFrame, given as text that calls `any_element`."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from datafusion import DataFrame, lit
from datafusion.expr import Expr

from ...indexes.errors import InvalidArgumentError
from .calls import NAME, CallingStatement, find_calls
from .expressions import any_match
from .list_types import element_of
from .planning import Readers

_STAND_IN = "__any_element_"
_PARSED = "__any_element_parsed"


class TextExpressions:
    """What a DataFrame's `parse_sql_expr` would give if its session had the function.

    `body` gives the lambda's body for a predicate on elements of a type.
    """

    def __init__(
        self, frame: DataFrame, readers: Readers, body: Callable[[str, pa.DataType], str]
    ) -> None:
        self._frame = frame
        self._readers = readers
        self._body = body

    def parse(self, text: str) -> Expr | None:
        """The expression; None where no call is found in the text.

        Raises InvalidArgumentError for a call that is none of a list of structs and a predicate
        on its fields, and for a text that the dialects read differently; DataFusion's errors
        for what else is wrong with it.
        """
        calls = find_calls(text, {}, normalize=self._readers.normalize)
        if calls is None:
            return None
        self._check(calls)
        bodies = [
            self._body(call.predicate, self._element(text[call.list_start : call.list_end]))
            for call in calls.calls
        ]
        with_lambdas = self._readers.lambdas.create_dataframe_from_logical_plan(
            self._frame.logical_plan()
        )
        return with_lambdas.parse_sql_expr(
            calls.replaced(lambda n, lists: any_match(lists, bodies[n]))
        )

    def _element(self, lists: str) -> pa.DataType:
        parsed = self.parse(lists) or self._frame.parse_sql_expr(lists)
        type_ = self._frame.select(parsed.alias(_PARSED)).schema().field(0).type
        element = element_of(type_)
        if element is None:
            raise InvalidArgumentError("list_expr", str(type_), "a list of structs")
        return element

    def _check(self, calls: CallingStatement) -> None:
        """Raises where the dialects read the text differently, columns standing for the calls."""
        if self._readers.agree_on(calls.text):
            return
        rest = calls.replaced(lambda n, _: f"{_STAND_IN}{n}")
        columns = {f"{_STAND_IN}{n}": lit(True) for n in range(len(calls.calls))}
        plan = self._frame.with_columns(**columns).logical_plan()
        own, with_lambdas = (
            context.create_dataframe_from_logical_plan(plan)
            for context in (self._readers.own, self._readers.lambdas)
        )
        lists = [calls.text[call.list_start : call.list_end] for call in calls.calls]
        for text in (rest, *(text for text in lists if NAME not in text.lower())):
            if _form(own, text) == _form(with_lambdas, text):
                continue
            raise InvalidArgumentError(
                "expr",
                calls.text,
                f"an expression that DuckDB's dialect, in which {NAME} is planned, reads as the "
                "session's dialect does",
            )


def _form(frame: DataFrame, text: str) -> str:
    return repr(frame.select(frame.parse_sql_expr(text)).logical_plan())
