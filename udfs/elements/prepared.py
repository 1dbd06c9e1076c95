"""Prepared statements that live in a copy of the session, which planned them."""

from __future__ import annotations

from collections.abc import Sequence

from datafusion import SessionContext

from .memory import Memory
from .tokens import Kind, Token, UnreadableTextError, named, tokenize


class PreparedStatements:
    """The contexts in which statements were prepared, by their names.

    `calling` says what such statements call. Threads may share it.
    """

    def __init__(self, calling: str) -> None:
        self._calling = calling
        self._contexts = Memory[str, SessionContext](limit=None)

    def keep(
        self, session: SessionContext, tokens: Sequence[Token], context: SessionContext
    ) -> None:
        """Notes that `context` has prepared what is a statement of the session.

        Any other statement is none of its business.
        """
        if not tokens[0].is_word("prepare"):
            return
        name = _statement_name(tokens, session.enable_ident_normalization())
        if name is not None:
            # The session has to know that the name is taken, and to be able to free it. Who
            # shares only its state is told so where he executes it.
            told = f"only the session that prepared it executes what calls {self._calling}"
            failing = f"SELECT CAST(told AS BIGINT) FROM (VALUES ('{told}')) AS notes(told)"
            session.sql(f"PREPARE {tokens[1].source} AS {failing}")
            self._contexts.put(name, context)

    def context_of(self, session: SessionContext, query: str) -> SessionContext | None:
        """The context that executes the query, where it executes one of them."""
        if not self._contexts:
            return None
        try:
            tokens = tokenize(query)
        except UnreadableTextError:
            return None
        if tokens and tokens[0].is_word("explain"):
            tokens = tokens[1:]
        name = _statement_name(tokens, session.enable_ident_normalization())
        if name is None or tokens[0].kind is not Kind.WORD:
            return None
        if tokens[0].is_word("execute"):
            return self._contexts.get(name)
        if tokens[0].is_word("deallocate"):
            self._contexts.drop(name)
        return None


def _statement_name(tokens: Sequence[Token], normalize: bool) -> str | None:
    """The name behind PREPARE, EXECUTE or DEALLOCATE [PREPARE]."""
    names = [token for token in tokens[1:3] if not token.is_word("prepare")]
    return named(names[0], normalize) if names else None
