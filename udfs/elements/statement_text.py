"""A statement's text, and the values for its placeholders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from datafusion import SessionContext

from .tokens import Kind, tokenize


def is_planned(context: SessionContext, text: str) -> bool:
    """Whether a context without the function plans the statement: what seemed to call it is none.

    It may be the name of a table with its columns.
    """
    try:
        context.sql(f"EXPLAIN {text}")
    except Exception:  # DataFusion's errors have no type of their own
        return False
    return True


def plain_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values for placeholders as Python's."""
    return {
        name: value.as_py() if isinstance(value, pa.Scalar) else value
        for name, value in values.items()
    }


def filled_in(query: str, named_params: Mapping[str, Any]) -> str:
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
