"""Which function a plan calls by a name: this package's own, or somebody else's of that name."""

from __future__ import annotations

import re

from datafusion import SessionContext, lit

from ...indexes.errors import InvalidArgumentError
from ...indexes.minhash_lsh.parameters import MinHashParameters
from .definitions import DEFINITIONS, DISTANCE, SIMILARITY, MinHashFunction, function_named


def distance_call(function_name: str, plan_repr: str) -> MinHashParameters | None:
    """The parameters of the MinHash distance that a plan calls by this name.

    None where the name is another function's, or where the plan calls one by it that is not this
    package's own. `plan_repr` is the `repr` of a plan with the call, or of a part of it. The
    first two operands of the call are the texts.
    """
    function = _own(function_name, plan_repr)
    return function.parameters if function is not None and function.base == DISTANCE else None


def similarity_call(function_name: str, plan_repr: str) -> MinHashParameters | None:
    """The parameters of the MinHash similarity that a plan calls by this name.

    As `distance_call` in all else.
    """
    function = _own(function_name, plan_repr)
    return function.parameters if function is not None and function.base == SIMILARITY else None


def is_registered(context: SessionContext, base: str) -> bool:
    """Whether the context's function of that name is this package's own."""
    try:
        call = context.udf(base)(*[lit(None)] * DEFINITIONS[base].texts)
        plan = context.empty_table().select(call).logical_plan()
    except Exception:  # DataFusion's errors have no type of their own
        return False
    return _own(base, repr(plan)) is not None


def _own(name: str, plan_repr: str) -> MinHashFunction | None:
    try:
        function = function_named(name)
    except InvalidArgumentError:
        return None
    # A literal may look like this, too. What it adds can only make the name another's.
    shown = rf'PythonFunctionScalarUDF {{ name: "{re.escape(name)}", func: Py\(0x([0-9a-f]+)\)'
    called = {int(address, 16) for address in re.findall(shown, plan_repr)}
    return function if called == {id(function)} else None
