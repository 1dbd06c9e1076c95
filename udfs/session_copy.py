"""A copy of a session, over catalogs of one's choice."""

from __future__ import annotations

from typing import Any

from datafusion import SessionContext
from datafusion.catalog import CatalogProviderList

from .function_names import keep_names


def session_copy(
    context: SessionContext, catalogs_of: SessionContext, text: str | None = ""
) -> SessionContext:
    """The same rules, functions, configuration and runtime, with the catalogs of `catalogs_of`.

    By the names in `text` (None: by all) it calls what `context` does; by another one it may
    call DataFusion's own where a function was registered in its place.

    What is set or registered in it is out of sight of those who use `context`; tables go into
    those catalogs.
    """
    # The one method that copies the state of a session whole.
    copy = context.enable_url_table()
    # It also reads names of files as tables; a session does so only where it was asked to.
    copy.register_catalog_provider_list(_Catalogs(catalogs_of))
    keep_names(context, copy, text)
    return copy


class _Catalogs(CatalogProviderList):
    """The catalogs of a context."""

    def __init__(self, owner: SessionContext) -> None:
        self._owner = owner

    def catalog_names(self) -> set[str]:
        return self._owner.catalog_names()

    def catalog(self, name: str) -> Any:
        return self._owner.catalog(name).catalog if name in self.catalog_names() else None

    def register_catalog(self, name: str, catalog: Any) -> None:
        self._owner.register_catalog_provider(name, catalog)
