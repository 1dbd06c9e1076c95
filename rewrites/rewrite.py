"""A logical plan in, a plan of the same answer with index scans out."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pyarrow as pa
from datafusion import DataFrame

from .analysis import Analysis, Notes, analyse
from .bound_leaf import with_bound_leaves
from .environment import Environment
from .index_leaf import with_index_leaves
from .rewritten import Rewritten


def rewrite(dataframe: DataFrame, environment: Environment) -> Rewritten:
    """Finds the filters that an index answers and puts index scans in their place.

    The rewritten plan has the schema that the session's results of `dataframe` have, and
    gives the same rows.
    """
    plan = dataframe.logical_plan()
    notes: Notes = {}
    flat = analyse(plan, environment.flat_context(), environment, notes)
    if not flat.served:
        return Rewritten(notes=tuple(notes))

    @cache
    def own() -> Analysis:
        return analyse(plan, environment.own_context(), environment, notes)

    def keeps_schema(schema: pa.Schema) -> bool:
        # The optimizer may relax nullability, and the session's own results show that.
        return schema == dataframe.schema() or schema == own().schema

    rewritten = None
    if keeps_schema(flat.schema):
        rewritten = with_index_leaves(flat, environment)
    else:
        # Out of its expression, the count of a scalar subquery is nullable.
        nested = analyse(plan, environment.nested_context(), environment, notes)
        if nested.served and keeps_schema(nested.schema):
            rewritten = with_index_leaves(nested, environment)
    if rewritten is None:
        rewritten = with_bound_leaves(own(), plan, environment, notes)
    if rewritten is None and keeps_schema(flat.schema):
        rewritten = with_bound_leaves(flat, flat.optimized, environment, notes)
    if rewritten is None:
        rewritten = Rewritten()
    return replace(rewritten, notes=tuple(notes))
