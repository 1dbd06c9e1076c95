"""A session like another, with a catalog of its own."""

from __future__ import annotations

from datafusion import SessionConfig, SessionContext

from ..udfs.session_copy import session_copy

CATALOG = "lance"
SCHEMA = "private"


def private_session(context: SessionContext) -> SessionContext:
    """The same rules, functions, configuration and runtime, but none of the tables.

    What is registered or set here is out of sight of those who use `context`. Tables go into
    the schema `lance.private`.
    """
    config = SessionConfig().with_default_catalog_and_schema(CATALOG, SCHEMA)
    return session_copy(context, SessionContext(config))
