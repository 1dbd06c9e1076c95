"""`any_element` predicates as SQL over a lambda's element, and plans of them."""

from __future__ import annotations

import re

import pyarrow as pa
from datafusion import SessionConfig, SessionContext
from datafusion.plan import LogicalPlan


def masked(predicate: str) -> str:
    """The predicate with each `e.field` read as `any_element` reads it: NULL on a NULL element."""
    return re.sub(r"\be\.(\w+)", r"CASE WHEN e IS NOT NULL THEN e['\1'] END", predicate)


def duckdb() -> SessionConfig:
    """A configuration whose SQL has arrow lambdas."""
    return SessionConfig().set("datafusion.sql_parser.dialect", "duckdb")


def analysing_context() -> SessionContext:
    """A context that optimizes as the one in which a session's plans are analysed."""
    context = SessionContext(duckdb())
    context.remove_optimizer_rule("common_sub_expression_eliminate")
    return context


def the_filter(context: SessionContext, name: str, rows: pa.Table, condition: str) -> LogicalPlan:
    """The plan `Filter: condition` over a table, optimized."""
    context.from_arrow(rows, name=name)
    plan = context.sql(f"SELECT * FROM {name} WHERE {condition}").optimized_logical_plan()
    assert type(plan.to_variant()).__name__ == "Filter", plan.display_indent()
    return plan
