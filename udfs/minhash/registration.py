"""Giving a session the functions."""

from __future__ import annotations

from collections.abc import Callable

from datafusion import SessionContext

from .definitions import DEFINITIONS, function_of


def register_minhash(context: SessionContext) -> None:
    """Registers each function whose name no function of the context has, of whatever kind."""
    for base in DEFINITIONS:
        if not any(_finds(find, base) for find in (context.udf, context.udaf, context.udwf)):
            context.register_udf(function_of(base).udf)


def _finds(find: Callable[[str], object], name: str) -> bool:
    try:
        find(name)
    except KeyError:
        return False
    return True
