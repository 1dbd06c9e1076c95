"""Index scans in the place of filtered scans, the plan rebuilt around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from datafusion import DataFrame
from datafusion.expr import Expr

from .analysis import Analysis, ServedScan
from .environment import Environment
from .guard import same_plan
from .names import column, quoted
from .rewritten import Rewritten
from .scans import FoundScan
from .spine import NotRebuildableError, Path, rebuild

_Scanned = Callable[[str, Any], DataFrame]
"""All of a table provider, under a name."""


def with_index_leaves(analysis: Analysis, environment: Environment) -> Rewritten | None:
    """The analysed plan with index scans; None where it cannot be rebuilt around them."""
    try:
        return _rebuilt(analysis, environment)
    except NotRebuildableError:
        return None
    except Exception as error:
        # DataFusion's own refusals have no class of their own. Most are of names that its
        # DataFrames read otherwise: an alias with a dot in it, say.
        if type(error) is not Exception:
            raise
        return None


def _rebuilt(analysis: Analysis, environment: Environment) -> Rewritten | None:
    scanned = partial(environment.scan, analysis.context)
    leaves: dict[Path, DataFrame] = {}
    originals: dict[Path, DataFrame] = {}
    index_scans: dict[str, Any] = {}
    for number, served in enumerate(analysis.served):
        name = f"__index_scan_{number}"
        scan = environment.index_scan(served.table, served.query, served.covered)
        path = served.found.path
        index_scans[name] = scan
        leaves[path] = _leaf(served, name, scan, environment, scanned)
        originals[path] = analysis.context.create_dataframe_from_logical_plan(served.found.plan)
    compared = rebuild(analysis.optimized, originals, analysis.context)
    if not same_plan(analysis.optimized, compared):
        return None
    result = rebuild(analysis.optimized, leaves, analysis.context)
    if not result.schema() == compared.schema() == analysis.schema:
        return None
    return Rewritten(result.logical_plan(), index_scans, served=len(index_scans))


def _leaf(
    served: ServedScan,
    name: str,
    scan: Any,
    environment: Environment,
    scanned: _Scanned,
) -> DataFrame:
    """The filtered scan, from the index where it covers and by scanning where not."""
    found = served.found
    leaf = _scan(found, name, scan, served.remaining, scanned)
    rest = served.table.shown_fragments - served.covered
    if not rest:
        return leaf
    rest_scan = environment.rest_scan(served.table, rest)
    filtered = () if found.predicate is None else (found.predicate,)
    other = _scan(found, f"{name}_rest", rest_scan, (*found.pushed, *filtered), scanned)
    return leaf.union(other).alias(quoted(found.reference))


def _scan(
    found: FoundScan,
    name: str,
    provider: Any,
    predicates: Sequence[Expr],
    scanned: _Scanned,
) -> DataFrame:
    """A scan of `provider` under the predicates, with the names that the found one has."""
    leaf = scanned(name, provider).alias(quoted(found.reference))
    columns = (column(*found.reference, field) for field in found.projection)
    return leaf.filter(*predicates).select(*columns)
