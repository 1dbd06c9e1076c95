"""DataFusion sessions that read Lance tables through the indexes stored beside them."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "LanceSessionContext":
        from .session import LanceSessionContext

        return LanceSessionContext
    if name == "LanceDataFrame":
        from .dataframe import LanceDataFrame

        return LanceDataFrame
    raise AttributeError(name)
