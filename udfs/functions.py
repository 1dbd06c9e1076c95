"""`any_element` for DataFrames, and for sessions that are not this package's."""

from __future__ import annotations

import pyarrow as pa
from datafusion import DataFrame, SessionContext, functions, udf
from datafusion.expr import Expr

from ..indexes.errors import InvalidArgumentError
from .elements.calls import NAME
from .elements.deferred import Binding, DeferredExpr, bound
from .elements.evaluation import Evaluation
from .elements.expressions import LambdaBodies
from .elements.list_types import element_of
from .elements.planning import Readers
from .elements.predicate import lambda_body


def any_element(
    list_expr: Expr,
    predicate: str,
    of: DataFrame | pa.DataType | None = None,
    *,
    context: SessionContext | None = None,
) -> Expr:
    """Whether a predicate is TRUE on an element of a list of structs, as SQL's `any_element`.

    TRUE where it is TRUE on at least one element; else NULL where the list is NULL or the
    predicate is UNKNOWN on an element; else FALSE. Every field of a null element is NULL.

    `of` is the DataFrame that the expression is for, or the list's type. Without it the
    expression is deferred: the methods of a LanceDataFrame take it, and what is made of it by
    operators and by methods of expressions, and find the type in their own columns. DataFusion's
    functions and other DataFrames do not.

    The predicate is read in the dialect and with the functions of `context`, by default those
    of the LanceDataFrame's session, or with `of` those of a new one.

    Raises InvalidArgumentError for what is no list of structs, for a predicate that is not
    one boolean expression over the fields of the structs, and for a deferred expression where
    nothing binds it.

    >>> from datafusion import SessionContext, col
    >>> rows = SessionContext().from_pydict({"d": [[{"k": 1}, {"k": 5}], [{"k": 2}]]})
    >>> rows.select(any_element(col("d"), "k > 3", rows).alias("found")).to_pydict()
    {'found': [True, False]}
    """
    if not isinstance(list_expr, Expr):
        raise InvalidArgumentError(
            "list_expr", list_expr, 'an expression, such as col("detections")'
        )
    if not isinstance(predicate, str):
        raise InvalidArgumentError("predicate", predicate, "a text")
    if isinstance(of, pa.DataType):
        element = _element_type("of", of)
        return _match(list_expr, predicate, element, context or SessionContext())
    if not isinstance(of, DataFrame | None):
        raise InvalidArgumentError("of", of, "a DataFrame or the type of a list of structs")

    def bind(binding: Binding) -> Expr:
        lists: Expr = bound(list_expr, binding)
        element = _element_type("list_expr", binding.type_of(lists))
        return _match(lists, predicate, element, context or binding.context)

    if of is None:
        return DeferredExpr(f"{NAME}({list_expr!r}, {predicate!r})", bind)
    return bind(Binding((of,), context or SessionContext()))


def _match(
    list_expr: Expr, predicate: str, element: pa.StructType, context: SessionContext
) -> Expr:
    readers = Readers(context, predicate)
    # DataFusion coerces types in a lambda before it looks up those of the lambda's variable, so
    # that one without a type, or with another one, would give other answers.
    planned = LambdaBodies(readers.lambdas, element).match(lambda_body(predicate, element, readers))
    body = Expr(planned.rex_call_operands()[1].to_variant().body())
    return functions.array_any_match(list_expr, lambda __element: body)


def register_any_element(context: SessionContext, list_type: pa.DataType, name: str = NAME) -> None:
    """Gives any session the SQL function `any_element(list, 'predicate')` for one list type.

    It takes the place of a function of the same name: for several types, give each its own.
    What the predicate reads is settled now: the dialect, the options and the functions that the
    session has. Its errors come when a query runs. A LanceSessionContext has the function already,
    and runs the registered one in its place.

    Raises InvalidArgumentError for a type that is no list of structs.
    """
    element = _element_type("list_type", list_type)
    evaluation = Evaluation(Readers(context, None), list_type, element)
    context.register_udf(
        udf(evaluation.any_element, [list_type, pa.string()], pa.bool_(), "immutable", name)
    )


def _element_type(argument: str, list_type: pa.DataType) -> pa.StructType:
    element = element_of(list_type)
    if element is not None and pa.types.is_struct(element):
        return element
    raise InvalidArgumentError(argument, list_type, "a list of structs")
