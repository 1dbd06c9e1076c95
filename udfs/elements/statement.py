"""Statements that call `any_element`, planned with `array_any_match` in its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from datafusion import DataFrame, SessionContext, SQLOptions
from datafusion.expr import Expr
from datafusion.plan import LogicalPlan

from .calls import NAME, CallingStatement, find_calls
from .memory import Memory
from .planning import Readers
from .predicate import lambda_body
from .prepared import PreparedStatements
from .statement_planning import StatementPlanning, WrittenStatement
from .statement_text import filled_in, is_planned, plain_values
from .text_expression import TextExpressions
from .tokens import UnreadableTextError, calls_functions, tokenize


@dataclass(frozen=True, slots=True)
class _Planned:
    """A statement and the plan that it gave, in full."""

    written: WrittenStatement
    plan: LogicalPlan


class AnyElementStatements:
    """Plans the statements of one session that call `any_element`.

    Each call is written as `array_any_match` over a lambda (`predicate.lambda_body`), and the
    statement is planned in a private context whose dialect has lambdas. A statement that this
    dialect reads otherwise than the session's is refused. What comes out is a DataFrame of the
    session. Threads may share it.
    """

    def __init__(self) -> None:
        self._bodies = Memory[tuple[str, pa.DataType, bool], str]()
        self._planned = Memory[tuple[str, bool], _Planned]()
        self._prepared = PreparedStatements(NAME)

    def sql(
        self,
        context: SessionContext,
        query: str,
        options: SQLOptions | None = None,
        param_values: Mapping[str, Any] | None = None,
        named_params: Mapping[str, Any] | None = None,
        present: Readers | None = None,
    ) -> DataFrame | None:
        """What `context.sql` would give of the same arguments if it had the function.

        None where `context.sql` may be asked itself: where no call is found, where the text
        cannot be read, or where the session has a function of that name. An output column
        without alias is named as a function's would be (`any_element(t.d,Utf8("…"))`); inside
        of views and subqueries it has the name of what it is planned as.

        `present` are copies of the context as it is now, if there are any; other statements may
        be using them.

        Raises InvalidArgumentError for a call that is none of a list of structs and a predicate
        on its fields, and DataFusion's errors for the rest.
        """
        values, texts = dict(param_values or {}), dict(named_params or {})
        prepared = self._prepared.context_of(context, query)
        if prepared is not None:
            return _moved(prepared.sql(query, options, values, **texts), context)
        given = (query, *(str(value) for value in texts.values()))
        if not any(NAME in text.lower() for text in given):
            return None
        present = present or Readers(context)
        if present.have_function(NAME):
            return None
        try:
            text = filled_in(query, texts)
        except UnreadableTextError:
            return None
        again = self._planned_again(text, present, options, values)
        if again is not None:
            return _moved(again, context)
        # Planning anew registers functions in its copies, which are nobody else's therefore.
        readers = Readers(context, " ".join((text, *map(str, values.values()))))
        try:
            statement = find_calls(text, plain_values(values), normalize=readers.normalize)
            if statement is None:
                return None
            frame = self._plan(statement, readers, options, values)
        except Exception:  # DataFusion's errors have no type of their own
            if is_planned(context, text):
                return None
            raise
        self._prepared.keep(context, statement.tokens, readers.lambdas)
        return _moved(frame, context)

    def expression(self, context: SessionContext, frame: DataFrame, text: str) -> Expr | None:
        """What `frame.parse_sql_expr` would give of the text if the session had the function.

        None where the frame may be asked itself, as in `sql`; raises the same errors.
        """
        readers = Readers(context, text)
        if NAME not in text.lower() or readers.have_function(NAME):
            return None
        bodies = TextExpressions(
            frame, readers, lambda predicate, element: self.body(predicate, element, readers)
        )
        return bodies.parse(text)

    def forget(self) -> None:
        """Lets go of the plans of past statements, and with them of the tables they read."""
        self._planned.clear()

    def _plan(
        self,
        statement: CallingStatement,
        readers: Readers,
        options: SQLOptions | None,
        values: dict[str, Any],
    ) -> DataFrame:
        planning = StatementPlanning(
            statement, readers, lambda predicate, element: self.body(predicate, element, readers)
        )
        text = planning.written()
        frame = readers.lambdas.sql(text, options, values)
        written = WrittenStatement(text, planning.names(frame))
        if planning.agreed and all(readers.agree_on(call.predicate) for call in statement.calls):
            planned = _Planned(written, frame.logical_plan())
            self._planned.put((statement.text, readers.normalize), planned)
        return written.named(frame)

    def _planned_again(
        self,
        text: str,
        readers: Readers,
        options: SQLOptions | None,
        values: dict[str, Any],
    ) -> DataFrame | None:
        """A statement as it was written before, where it still gives the plan that it gave."""
        planned = self._planned.get((text, readers.normalize))
        if planned is None or not readers.agree:
            return None
        try:
            frame = readers.lambdas.sql(planned.written.text, options, values)
        except Exception:  # DataFusion's errors have no type of their own
            return None
        return planned.written.named(frame) if frame.logical_plan() == planned.plan else None

    def body(self, predicate: str, element: pa.DataType, readers: Readers) -> str:
        """The lambda's body for a predicate; kept where nothing makes anything else of it.

        A dialect may, and a function that takes the place of another one.
        """
        key = (predicate, element, readers.normalize)
        lasting = readers.agree_on(predicate) and not calls_functions(tokenize(predicate))
        body = self._bodies.get(key) if lasting else None
        if body is None:
            body = lambda_body(predicate, element, readers)
            if lasting:
                self._bodies.put(key, body)
        return body


def _moved(frame: DataFrame, context: SessionContext) -> DataFrame:
    return context.create_dataframe_from_logical_plan(frame.logical_plan())
