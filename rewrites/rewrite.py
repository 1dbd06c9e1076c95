"""A logical plan in, a plan of the same answer with index scans out."""

from __future__ import annotations

from dataclasses import replace

from datafusion import DataFrame

from .analysis import Notes, analyse
from .bound_leaf import with_bound_leaves
from .environment import Environment
from .index_leaf import with_index_leaves
from .rewritten import Rewritten


def rewrite(dataframe: DataFrame, environment: Environment) -> Rewritten:
    """Finds the filters that an index answers and puts index scans in their place.

    The rewritten plan has the schema of `dataframe` and gives the same rows.
    """
    plan = dataframe.logical_plan()
    notes: Notes = {}
    flat = analyse(plan, environment.flat_context(), environment, notes)
    if not flat.served:
        return Rewritten(notes=tuple(notes))

    # Optimized, a plan may have other fields that admit NULL: the count of a scalar subquery,
    # once it is out of its expression. Only the plan itself then gives its own schema.
    schema = dataframe.schema()
    rewritten = None
    if flat.schema == schema:
        rewritten = with_index_leaves(flat, environment)
    else:
        nested = analyse(plan, environment.nested_context(), environment, notes)
        if nested.served and nested.schema == schema:
            rewritten = with_index_leaves(nested, environment)
    if rewritten is None:
        own = analyse(plan, environment.own_context(), environment, notes)
        rewritten = with_bound_leaves(own, plan, environment, notes)
    if rewritten is None:
        rewritten = Rewritten()
    return replace(rewritten, notes=tuple(notes))
