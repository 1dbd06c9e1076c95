"""Expressions that wait for the DataFrame that they are for."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from datafusion import DataFrame, SessionContext
from datafusion.expr import Expr, SortExpr

from ...indexes.errors import InvalidArgumentError


@dataclass(frozen=True, slots=True)
class Binding:
    """What a deferred expression is bound to.

    `frames` are the DataFrames that may have its columns, those of a join from left to right;
    `context` reads its predicate.
    """

    frames: Sequence[DataFrame]
    context: SessionContext

    def type_of(self, expr: Expr) -> pa.DataType:
        """The expression's type in the first of the frames that has its columns.

        Raises DataFusion's error of the first one where none has them.
        """
        errors: list[Exception] = []
        for frame in self.frames:
            try:
                return frame.select(expr).schema().field(0).type
            except Exception as error:  # DataFusion's errors have no type of their own
                errors.append(error)
        raise errors[0]


Bind = Callable[[Binding], Any]


class Deferred:
    """An expression, or the order by one, that is made when it is bound.

    What DataFusion has compiled of it is not there before; `_COMPILED` are its names for that.
    """

    def __init__(self, shown: str, bind: Bind) -> None:
        self._shown = shown
        self.bind = bind

    def __repr__(self) -> str:
        return self._shown

    def __getattr__(self, name: str) -> Any:
        if name in _COMPILED:
            raise InvalidArgumentError(
                "of",
                None,
                "the DataFrame that the expression is for, or the type of its list: only the "
                f"methods of a LanceDataFrame find that out themselves, and {self!r} is for "
                "something else",
            )
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")


_COMPILED = frozenset({"expr", "raw_sort"})


class DeferredSortExpr(Deferred, SortExpr):
    """The order by a deferred expression."""


class DeferredExpr(Deferred, Expr):
    """An expression that is made when it is bound; what is made of it is deferred as well."""


def bound(value: Any, binding: Binding) -> Any:
    """An argument with what is deferred in it bound, also inside of lists, tuples and dicts."""
    match value:
        case Deferred():
            return value.bind(binding)
        case list():
            return [bound(item, binding) for item in value]
        case tuple():
            return tuple(bound(item, binding) for item in value)
        case dict():
            return {name: bound(item, binding) for name, item in value.items()}
        case Iterator():
            return (bound(item, binding) for item in value)
        case _:
            return value


def _deferring(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """The method of an expression that waits until it and its arguments are bound."""
    made = DeferredSortExpr if _returned(method) == SortExpr.__name__ else DeferredExpr
    forward = getattr(Expr, f"__{name[3:]}", None) if name.startswith("__r") else None

    def deferring(self: Deferred, *args: Any, **kwargs: Any) -> Any:
        def bind(binding: Binding) -> Any:
            first, *others = bound((self, *args), binding)
            if forward is not None and isinstance(others[0], Expr):
                # Asked instead of the left operand's own, since this class is derived from it.
                return forward(others[0], first)
            return method(first, *others, **bound(kwargs, binding))

        given = [*map(repr, args), *(f"{key}={value!r}" for key, value in kwargs.items())]
        return made(f"{self!r}.{name}({', '.join(given)})", bind)

    return functools.update_wrapper(deferring, method)


def _returned(member: Any) -> str | None:
    return member.__annotations__.get("return") if inspect.isfunction(member) else None


for _name, _member in vars(Expr).items():
    if _returned(_member) in (Expr.__name__, SortExpr.__name__):
        setattr(DeferredExpr, _name, _deferring(_name, _member))
