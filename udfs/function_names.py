"""What a copied session calls by names of which DataFusion's own functions have several.

DataFusion copies a session's functions one by one, in any order, each under its name and all of
its aliases. One that was registered in the place of `array_has` then loses that name to
DataFusion's own, which is still there as `list_has`, if that is copied after it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from datafusion import SessionContext

_WORD = re.compile(r"\w+")


def keep_names(context: SessionContext, copy: SessionContext, text: str | None) -> None:
    """Lets `copy` call by the names in `text`, or by any for None, what `context` does."""
    words = None if text is None else set(_WORD.findall(text.lower()))
    for kind, by_name in enumerate(_groups()):
        find, register = _kind(context, kind)[1], _kind(copy, kind)[2]
        used = by_name.keys() if words is None else words & by_name.keys()
        for group in {by_name[name] for name in used}:
            # A name's own function first: it comes with aliases, which others may have taken.
            for name in group:
                function = _found(find, name)
                if function is not None and function.name == name:
                    register(function)


def _kind(
    context: SessionContext, kind: int
) -> tuple[Callable[[], Iterable[str]], Callable[[str], Any], Callable[[Any], None]]:
    """The names, the search and the registration of scalar or aggregate functions."""
    return (
        (context.udfs, context.udf, context.register_udf),
        (context.udafs, context.udaf, context.register_udaf),
    )[kind]


def _found(find: Callable[[str], Any], name: str) -> Any | None:
    try:
        return find(name)
    except KeyError:  # it was deregistered
        return None


@cache
def _groups() -> tuple[Mapping[str, tuple[str, ...]], ...]:
    """The names of DataFusion's own functions that have several, the first without the aliases.

    By each of the names, for scalar and for aggregate functions.
    """
    plain = SessionContext()
    kinds = []
    for kind in range(2):
        names, find, _ = _kind(plain, kind)
        aliases: dict[str, list[str]] = {}
        for name in sorted(names()):
            if (own := find(name).name) != name:
                aliases.setdefault(own, []).append(name)
        groups = [(own, *others) for own, others in aliases.items()]
        kinds.append({name: group for group in groups for name in group})
    return tuple(kinds)
