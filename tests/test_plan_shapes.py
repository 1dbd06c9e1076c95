"""Each of the hundred plan shapes gives plain DataFusion's answer, and nearly all use an index.

A statement runs in a session with indexes, in one without, and over the rows in memory. It uses
an index if one was searched when it ran and EXPLAIN says so (but for statements that write, and for
EXECUTE, which DataFusion does not explain). The run ends with the list of those that do not, and
with what EXPLAIN notes of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from datafusion import SessionContext

from datafusion_lance.engine import LanceSessionContext
from datafusion_lance.engine.index_scan import IndexScan
from datafusion_lance.indexes.row_set import RowSet

from .missing_postings import copy_without, no_postings
from .oracle_rows import Comparison, TwiceStored
from .plan_shape_tables import memory, session, store_tables
from .plan_shapes import PLAN_SHAPES, PlanShape

USING_AN_INDEX = 99


class Runs:
    """One session, in which each statement is set up anew whenever it is asked for."""

    def __init__(self, context: SessionContext, folder: Path) -> None:
        self.context = context
        self.folder = folder

    def answer(self, shape: PlanShape) -> pa.Table:
        self._set_up(shape)
        *_, last = (self._run(text, shape) for text in (shape.sql, *shape.then))
        return last

    def explained(self, shape: PlanShape) -> str:
        """What EXPLAIN says of the physical plan and of indexes."""
        self._set_up(shape)
        rows = self._run(f"EXPLAIN {shape.sql}", shape).to_pylist()
        return "\n".join(row["plan"] for row in rows if row["plan_type"] != "logical_plan")

    def _set_up(self, shape: PlanShape) -> None:
        for text in shape.setup:
            if text.startswith("PREPARE "):
                self._forget(text.split()[1].partition("(")[0])
            self._run(text, shape)

    def _forget(self, name: str) -> None:
        try:
            self.context.sql(f"DEALLOCATE {name}").collect()
        except Exception:  # it was never prepared
            return

    def _run(self, text: str, shape: PlanShape) -> pa.Table:
        text = text.replace("{folder}", str(self.folder))
        return self.context.sql(text, param_values=dict(shape.parameters)).to_arrow_table()


@contextmanager
def searches() -> Iterator[list[IndexScan]]:
    """The index scans that search meanwhile."""
    ran: list[IndexScan] = []
    found = IndexScan.found

    def recorded(self: IndexScan) -> RowSet:
        ran.append(self)
        return found(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(IndexScan, "found", recorded)
        yield ran


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[TwiceStored, ...]:
    return store_tables(tmp_path_factory.mktemp("shapes"))


@pytest.fixture(scope="module")
def runs(
    tables: tuple[TwiceStored, ...], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Runs]:
    contexts = {
        "memory": memory(tables),
        "indexed": session(tables, use_indexes=True),
        "unindexed": session(tables, use_indexes=False),
    }
    return {
        name: Runs(context, tmp_path_factory.mktemp(name)) for name, context in contexts.items()
    }


@pytest.mark.parametrize("shape", PLAN_SHAPES, ids=lambda s: f"{s.shape}: {s.name}")
def test_answer_is_that_of_plain_datafusion(runs: dict[str, Runs], shape: PlanShape) -> None:
    expected = runs["memory"].answer(shape)
    comparison = Comparison(ordered=shape.ordered)
    for where in ("indexed", "unindexed"):
        difference = comparison.difference(runs[where].answer(shape), expected)
        assert difference is None, f"{where}: {shape.sql}\n{difference}"


class UnservedReport:
    """Prints, at the end of a run, which shapes use no index, and what EXPLAIN notes of them."""

    def __init__(self, unserved: dict[str, str]) -> None:
        self.unserved = unserved

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        used = len(PLAN_SHAPES) - len(self.unserved)
        terminalreporter.section(f"{used} of {len(PLAN_SHAPES)} plan shapes use an index")
        for name, notes in self.unserved.items():
            terminalreporter.line(f"{name}: {notes or 'no note'}")


@pytest.fixture(scope="module")
def unserved(runs: dict[str, Runs], request: pytest.FixtureRequest) -> dict[str, str]:
    """The shapes that use no index, and EXPLAIN's notes of them."""
    found: dict[str, str] = {}
    indexed = runs["indexed"]
    for shape in PLAN_SHAPES:
        text = indexed.explained(shape)
        with searches() as ran:
            indexed.answer(shape)
        named = shape.writes or shape.sql.startswith("EXECUTE") or "IndexScan: " in text
        if not (ran and named):
            found[f"{shape.shape}: {shape.name}"] = _notes(text)
    request.config.pluginmanager.register(UnservedReport(found))
    return found


def _notes(explained: str) -> str:
    return "; ".join(line for line in explained.splitlines() if line.startswith(("table ", "a ")))


def test_nearly_all_shapes_use_an_index(unserved: dict[str, str]) -> None:
    assert len(PLAN_SHAPES) == 100
    assert len(PLAN_SHAPES) - len(unserved) >= USING_AN_INDEX


ANSWERED_ALIKE_BY_ANY_INDEX = frozenset(("not in: inner predicate, NULL in the list",))
"""NOT IN a list with NULL gives no row, whatever else is in the list."""


def test_answers_from_emptied_indexes_change(
    runs: dict[str, Runs],
    tables: tuple[TwiceStored, ...],
    unserved: dict[str, str],
    tmp_path: Path,
) -> None:
    """What is called an index scan reads what the index says: here, that no list has a label."""
    context = LanceSessionContext()
    for table in tables:
        copy = tmp_path / table.path.name
        copy_without(table.path, copy, no_postings, null_lists=False)
        context.register_lance(table.name, str(copy))
    emptied = Runs(context, tmp_path)

    alike = {
        f"{shape.shape}: {shape.name}"
        for shape in PLAN_SHAPES
        # Only label list indexes are emptied.
        if "any_element" not in shape.sql or "array_has" in shape.sql
        if not Comparison().difference(emptied.answer(shape), runs["memory"].answer(shape))
    }

    assert alike == unserved.keys() | ANSWERED_ALIKE_BY_ANY_INDEX
