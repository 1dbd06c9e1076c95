"""A text as statements."""

from __future__ import annotations

from ..udfs.elements.tokens import UnreadableTextError, tokenize


def statements(text: str) -> list[str]:
    """The statements of a text, without the semicolons; what cannot be told apart is one.

    >>> statements("SELECT ';' ; -- one; more\\nSELECT 2;")
    ["SELECT ';'", '-- one; more\\nSELECT 2']
    """
    try:
        tokens = tokenize(text)
    except UnreadableTextError:
        return [text]
    found: list[str] = []
    begin, empty = 0, True
    for token in tokens:
        if not token.is_symbol(";"):
            empty = False
            continue
        if not empty:
            found.append(text[begin : token.start].strip())
        begin, empty = token.end, True
    if not empty:
        found.append(text[begin:].strip())
    return found


def is_complete(text: str) -> bool:
    """Whether a text that is being typed is at its end: a semicolon that is in no string.

    >>> is_complete("SELECT 1"), is_complete("SELECT ';"), is_complete("SELECT 1; -- done")
    (False, False, True)
    """
    try:
        tokens = tokenize(text)
    except UnreadableTextError:
        return False
    return bool(tokens) and tokens[-1].is_symbol(";")
