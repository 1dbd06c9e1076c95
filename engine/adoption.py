"""Subclasses whose inherited methods keep the subclass.

DataFusion's Python classes name themselves in what they return: `SessionContext.table` makes a
`DataFrame` and `DataFrame.filter` another. `inherit` redefines a class's inherited methods so
that a hook of the subclass sees what each of them returns. New methods of a later DataFusion are
taken along, since methods are found by looking, not by a list.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type)
Method = Callable[..., Any]


def inherited_methods(base: type, subclass: type) -> dict[str, Method]:
    """The instance methods of `base` that `subclass` does not define itself.

    Underscored ones are left out, but for `__getitem__`-like ones that a class may be used by.
    """
    return {
        name: member
        for name, member in vars(base).items()
        if inspect.isfunction(member)
        and name not in vars(subclass)
        and (not name.startswith("_") or name in _OPERATORS)
    }


def inherit(base: type, wrapper: Callable[[str, Method], Method]) -> Callable[[Class], Class]:
    """A class decorator: each inherited method becomes what `wrapper` makes of its name and it."""

    def decorate(subclass: Class) -> Class:
        for name, method in inherited_methods(base, subclass).items():
            setattr(subclass, name, functools.update_wrapper(wrapper(name, method), method))
        return subclass

    return decorate


_OPERATORS = frozenset({"__getitem__", "__repr__", "_repr_html_", "__arrow_c_stream__"})
