"""A session like another, with a catalog of its own."""

from __future__ import annotations

from typing import Any

from datafusion import SessionConfig, SessionContext
from datafusion.catalog import CatalogProviderList

CATALOG = "lance"
SCHEMA = "private"


def private_session(context: SessionContext) -> SessionContext:
    """The same rules, functions, configuration and runtime, but none of the tables.

    What is registered or set here is out of sight of those who use `context`. Tables go into
    the schema `lance.private`.
    """
    # The one method that copies the state of a session whole.
    private = context.enable_url_table()
    config = SessionConfig().with_default_catalog_and_schema(CATALOG, SCHEMA)
    private.register_catalog_provider_list(_Catalogs(SessionContext(config)))
    return private


class _Catalogs(CatalogProviderList):
    """The catalogs of a new session, in place of the shared ones."""

    def __init__(self, owner: SessionContext) -> None:
        self._owner = owner

    def catalog_names(self) -> set[str]:
        return self._owner.catalog_names()

    def catalog(self, name: str) -> Any:
        return self._owner.catalog(name).catalog if name in self.catalog_names() else None

    def register_catalog(self, name: str, catalog: Any) -> None:
        self._owner.register_catalog_provider(name, catalog)
