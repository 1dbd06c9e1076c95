"""Names in DataFusion's own quoting, so that no name is folded or split."""

from __future__ import annotations

from collections.abc import Iterable

from datafusion.expr import Expr


def quoted(parts: Iterable[str | None]) -> str:
    """A reference of one part or more; parts that are None are left out.

    >>> print(quoted((None, "public", 'my "own" t')))
    "public"."my ""own"" t"
    """
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts if part is not None)


def column(*parts: str | None) -> Expr:
    """The column of that name, qualified where more parts than one are given."""
    return Expr.column(quoted(parts))


def requoted(reference: str) -> str:
    """A table reference as DataFusion prints it, without quotes, in quotes.

    A name with a dot inside cannot be told from two names; it is read as two.

    >>> requoted("datafusion.public.My")
    '"datafusion"."public"."My"'
    """
    return quoted(reference.split("."))
