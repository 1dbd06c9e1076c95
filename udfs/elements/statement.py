"""Statements that call `any_element`, planned with `array_any_match` in its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from .statement_planning import StatementPlanning, WrittenStatement
from .text_expression import TextExpressions
from .tokens import Kind, Token, UnreadableTextError, calls_functions, named, tokenize


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
        self._prepared = Memory[str, SessionContext](limit=None)

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
        if self._prepared:
            prepared = self._prepared_context(query, context.enable_ident_normalization())
            if prepared is not None:
                return _moved(prepared.sql(query, options, values, **texts), context)
        given = (query, *(str(value) for value in texts.values()))
        if not any(NAME in text.lower() for text in given):
            return None
        present = present or Readers(context)
        if present.have_function(NAME):
            return None
        try:
            text = _filled_in(query, texts)
        except UnreadableTextError:
            return None
        again = self._planned_again(text, present, options, values)
        if again is not None:
            return _moved(again, context)
        # Planning anew registers functions in its copies, which are nobody else's therefore.
        readers = Readers(context, " ".join((text, *map(str, values.values()))))
        try:
            statement = find_calls(text, _plain(values), normalize=readers.normalize)
            if statement is None:
                return None
            frame = self._plan(statement, readers, options, values)
        except Exception:  # DataFusion's errors have no type of their own
            if _is_planned(context, text):
                return None
            raise
        if statement.tokens[0].is_word("prepare"):
            self._keep_prepared(statement, context, readers)
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

    # Prepared statements live in the context that planned them

    def _keep_prepared(
        self, statement: CallingStatement, context: SessionContext, readers: Readers
    ) -> None:
        name = _statement_name(statement.tokens, readers.normalize)
        if name is not None:
            # The session has to know that the name is taken, and to be able to free it. Who
            # shares only its state is told so where he executes it.
            told = f"only the session that prepared it executes what calls {NAME}"
            failing = f"SELECT CAST(told AS BIGINT) FROM (VALUES ('{told}')) AS notes(told)"
            context.sql(f"PREPARE {statement.tokens[1].source} AS {failing}")
            self._prepared.put(name, readers.lambdas)

    def _prepared_context(self, query: str, normalize: bool) -> SessionContext | None:
        try:
            tokens = tokenize(query)
        except UnreadableTextError:
            return None
        if tokens and tokens[0].is_word("explain"):
            tokens = tokens[1:]
        name = _statement_name(tokens, normalize)
        if name is None or tokens[0].kind is not Kind.WORD:
            return None
        if tokens[0].is_word("execute"):
            return self._prepared.get(name)
        if tokens[0].is_word("deallocate"):
            self._prepared.drop(name)
        return None


def _statement_name(tokens: Sequence[Token], normalize: bool) -> str | None:
    """The name behind PREPARE, EXECUTE or DEALLOCATE [PREPARE]."""
    names = [token for token in tokens[1:3] if not token.is_word("prepare")]
    return named(names[0], normalize) if names else None


def _is_planned(context: SessionContext, text: str) -> bool:
    """Whether a context without the function plans the statement: what seemed to call it is none.

    It may be the name of a table with its columns.
    """
    try:
        context.sql(f"EXPLAIN {text}")
    except Exception:  # DataFusion's errors have no type of their own
        return False
    return True


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values for placeholders as Python's."""
    return {
        name: value.as_py() if isinstance(value, pa.Scalar) else value
        for name, value in values.items()
    }


def _filled_in(query: str, named_params: Mapping[str, Any]) -> str:
    """The query with its placeholders `$name` replaced by the text given for the name."""
    if not named_params:
        return query
    parts: list[str] = []
    position = 0
    for token in tokenize(query):
        if token.kind is Kind.PLACEHOLDER and token.value[1:] in named_params:
            parts += [query[position : token.start], str(named_params[token.value[1:]])]
            position = token.end
    return "".join([*parts, query[position:]])


def _moved(frame: DataFrame, context: SessionContext) -> DataFrame:
    return context.create_dataframe_from_logical_plan(frame.logical_plan())
