"""A logical plan in, a plan of the same answer with index scans out."""

from __future__ import annotations

from dataclasses import replace

from datafusion import DataFrame, SessionContext

from .analysis import Analysis, Notes, analyse
from .bound_leaf import with_bound_leaves
from .environment import Environment
from .index_leaf import with_index_leaves
from .rewritten import Rewritten


def rewrite(dataframe: DataFrame, environment: Environment) -> Rewritten:
    """Finds the filters that an index answers and puts index scans in their place.

    The rewritten plan has the schema of `dataframe` and gives the same rows.
    """
    plan, schema = dataframe.logical_plan(), dataframe.schema()
    notes: Notes = {}

    def analysed(context: SessionContext) -> Analysis:
        analysis = analyse(plan, context, environment)
        notes.update(analysis.notes)
        return analysis

    own = None if environment.names_scans else environment.recall(plan)
    if own is not None:
        notes.update(own.notes)
    elif not environment.names_scans:
        own = analysed(environment.own_context())
        environment.keep(plan, own)
    # Where the private contexts would only come to the same plan, they are not made.
    flat = own if own and own.optimized_plainly else analysed(environment.flat_context())
    if not flat.served:
        return Rewritten(notes=tuple(notes))

    # Optimized, a plan may have other fields that admit NULL: the count of a scalar subquery,
    # once it is out of its expression. Only the plan itself then gives its own schema.
    rewritten = None
    if environment.rebuilds:
        shown = flat if flat.schema == schema else analysed(environment.nested_context())
        if shown.served and shown.schema == schema:
            rewritten = with_index_leaves(shown, environment)
    if rewritten is None or rewritten.served < len(flat.served):
        own = own or analysed(environment.own_context())
        unserved: Notes = {}
        bound = with_bound_leaves(own, flat, environment, unserved)
        if rewritten is None or (bound is not None and bound.served > rewritten.served):
            rewritten = bound
            notes.update(unserved)
    return replace(rewritten or Rewritten(), notes=tuple(notes))
