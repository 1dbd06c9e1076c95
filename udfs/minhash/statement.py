"""Statements that call the functions with parameters, planned with functions that have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from datafusion import DataFrame, SessionContext, col
from datafusion.expr import Expr

from ...indexes.errors import InvalidArgumentError
from ..elements.prepared import PreparedStatements
from ..elements.statement_text import filled_in, is_planned, plain_values
from ..elements.tokens import UnreadableTextError
from ..session_copy import session_copy
from .calls import RenamedCalls, mentions_function, rename_calls
from .recognized import is_registered

Plan = Callable[[SessionContext, str, dict[str, Any]], DataFrame]
"""Plans a statement's text in a context, with texts for its placeholders."""


@dataclass(frozen=True, slots=True)
class RenamedText:
    """A text with its calls renamed, and a private copy of the session that has the functions."""

    text: str
    context: SessionContext
    calls: RenamedCalls

    def named(self, frame: DataFrame) -> DataFrame:
        """The frame with its columns named as if the calls had kept their names."""
        names = frame.schema().names
        first = [self.calls.first_named(name) for name in names]
        if first == names or len(set(names)) < len(names):
            return frame
        return frame.select(
            *(_column(name).alias(new) for name, new in zip(names, first, strict=True))
        )


class MinHashStatements:
    """Plans the statements of one session that call the functions with parameters.

    Each call is renamed (`calls.rename_calls`), and the statement is planned in a private copy
    of the session that has functions of these names. Threads may share it.
    """

    def __init__(self) -> None:
        self._prepared = PreparedStatements("a MinHash function with parameters")

    def sql(
        self,
        context: SessionContext,
        query: str,
        param_values: Mapping[str, Any] | None,
        named_params: Mapping[str, Any] | None,
        plan: Plan,
    ) -> DataFrame:
        """What `plan` gives for the statement, as a DataFrame of `context`.

        An output column without alias is named as it would be if the call had kept its name;
        inside of views and subqueries it has that of the renamed function.

        Raises InvalidArgumentError for a parameter that is no literal or out of its range, and
        what `plan` raises.
        """
        texts = dict(named_params or {})
        prepared = self._prepared.context_of(context, query)
        if prepared is not None:
            return _moved(plan(prepared, query, texts), context)
        if not any(mentions_function(str(text)) for text in (query, *texts.values())):
            return plan(context, query, texts)
        try:
            text = filled_in(query, texts)
        except UnreadableTextError:
            return plan(context, query, texts)
        try:
            renamed = self.renamed(context, text, plain_values(param_values or {}))
        except InvalidArgumentError:
            # What seems to be a call may be the name of a table with its columns.
            if not is_planned(context, text):
                raise
            renamed = None
        if renamed is None:
            return plan(context, query, texts)
        frame = renamed.named(plan(renamed.context, renamed.text, {}))
        self._prepared.keep(context, renamed.calls.tokens, renamed.context)
        return _moved(frame, context)

    def renamed(
        self, context: SessionContext, text: str, values: Mapping[str, Any]
    ) -> RenamedText | None:
        """The text with its calls renamed; None where none gives parameters.

        So it is where a function of the user's has the name. Raises InvalidArgumentError for a
        parameter that is no literal, nor a placeholder with a value, or is out of its range.
        """
        calls = rename_calls(
            text,
            values,
            lambda base: is_registered(context, base),
            normalize=context.enable_ident_normalization(),
        )
        if calls is None:
            return None
        copy = session_copy(context, context, text)
        for function in calls.functions:
            copy.register_udf(function.udf)
        return RenamedText(calls.text, copy, calls)


def _column(name: str) -> Expr:
    quoted = name.replace('"', '""')
    return col(f'"{quoted}"')


def _moved(frame: DataFrame, context: SessionContext) -> DataFrame:
    return context.create_dataframe_from_logical_plan(frame.logical_plan())
