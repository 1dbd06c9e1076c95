"""The memory that statements take beyond their result, each in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from datafusion_lance.engine import LanceSessionContext
from memory import most_memory
from report import number, print_table
from statements import Statement


@dataclass(frozen=True, slots=True)
class Memory:
    """MiB of a statement's result, and what its first run took at most beyond that."""

    result: float
    beyond: float


def prepared(path: Path, statement: str) -> Callable[[], pa.Table]:
    session = LanceSessionContext()
    session.register_lance("images", path)
    return lambda: session.sql(statement).to_arrow_table()


def beyond_results(path: Path, statements: Mapping[str, Statement]) -> dict[str, Memory]:
    """By name. A first run reads its part of the index, which the session keeps."""
    found = {}
    for name, statement in statements.items():
        result = prepared(path, statement(0))().nbytes
        most = most_memory(prepared, path, statement(0))
        found[name] = Memory(result / 2**20, max(most - result, 0) / 2**20)
    return found


def print_memory(found: Mapping[str, Memory]) -> None:
    """A row for each statement."""
    rows = [(name, number(one.result), number(one.beyond)) for name, one in found.items()]
    print_table("memory in MiB, first run", ("", "result", "beyond it"), rows)
