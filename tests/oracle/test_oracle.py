"""A minute of the oracle on fixed seeds; and that it finds, shrinks and prints what is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from datafusion_lance.engine.index_scan import IndexScan
from datafusion_lance.indexes.row_set import RowSet

from .asking import Failed, compare
from .changes import AddColumn, Append, Compact, Delete, Keys
from .exploring import explore
from .scripts import script
from .shrinking import shrunk
from .tally import FETCHES, RULES, Tally
from .worlds import draw_world

WORLDS = range(100, 112)
STATEMENTS = 60


def test_fixed_seeds_give_no_difference() -> None:
    tally = Tally()
    for seed in WORLDS:
        for difference in explore(seed, STATEMENTS, tally):
            smallest = shrunk(difference)
            pytest.fail(script(smallest or difference))
    print(tally.report())
    assert tally.served >= 0.6 * tally.cases, tally.report()
    assert tally.selective >= 0.5 * tally.cases, tally.report()
    missed = [one for one in tally.never_hit() if one.startswith(("rule", "way", "fetch"))]
    assert not missed, missed


def test_a_world_follows_from_its_seed() -> None:
    one, other = draw_world(17), draw_world(17)
    assert (one.t.columns, one.asked_after) == (other.t.columns, other.asked_after)
    assert compare(one.t.first, other.t.first, ordered=True) is None
    assert [change.source() for change in one.t.changes] == [
        change.source() for change in other.t.changes
    ]


@pytest.fixture
def losing_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every search that finds more than two rows loses the last of them."""
    found = IndexScan.found

    def lossy(scan: IndexScan) -> RowSet:
        rows = found(scan)
        return rows if len(rows) <= 2 else RowSet.from_addresses(rows.addresses()[:-1])

    monkeypatch.setattr(IndexScan, "found", lossy)


@pytest.mark.usefixtures("losing_rows")
def test_a_fault_is_found_and_made_small(tmp_path: Path) -> None:
    difference = next(explore(7, 100, Tally()))
    smallest = shrunk(difference)
    assert smallest is not None
    assert smallest.words.startswith("with indexes: 2 rows, expected 3; missing 1")
    case = smallest.case
    assert case.world.t.first.num_rows + case.world.u.first.num_rows <= 4
    assert len(case.world.t.changes) <= 1
    text = case.statement.text(in_memory=False)
    assert text.startswith("SELECT key FROM ")
    assert len(text) < 200

    file = tmp_path / "difference.py"
    file.write_text(script(smallest))
    environment = {**os.environ, "LANCE_LOG": "error"}
    run = subprocess.run(
        [sys.executable, file], env=environment, capture_output=True, text=True, check=True
    )
    # Alone, without the fault, all three agree.
    memory, plain, indexed = run.stdout.split("----\n")[1:]
    assert memory.splitlines()[0] == plain.splitlines()[0] == indexed.splitlines()[0]


def test_a_tally_knows_what_was_never_hit() -> None:
    tally = Tally(cases=10, served=5, selective=9)
    tally.rules["And"] += 1
    assert "rule: Or" in tally.never_hit()
    assert "rule: And" not in tally.never_hit()
    assert len(tally.never_hit()) > len(RULES) + len(FETCHES) - 1
    assert tally.shortfalls()[0] == "5 of 10 cases used an index"


def test_answers_are_compared_bit_by_bit() -> None:
    nan, other_nan = np.array([0x7FF8000000000000, 0x7FF8000000000001], np.uint64).view(np.float64)
    for one, other, same in [
        (0.0, -0.0, False),
        (nan, nan, True),
        (nan, other_nan, True),  # as values; their bits are nobody's promise
        (1.0, None, False),
    ]:
        lists = [
            pa.table({"a": pa.array([[one], None])}),
            pa.table({"a": pa.array([[other], None])}),
        ]
        assert (compare(*lists, ordered=True) is None) is same
    rows = pa.table({"k": [1, 2, 2], "s": ["a", "b", None]})
    turned = rows.take([2, 1, 0])
    assert compare(turned, rows, ordered=False) is None
    assert compare(turned, rows, ordered=True) is not None
    assert compare(rows.take([0, 1, 1]), rows, ordered=False) is not None
    assert compare(Failed("why"), rows, ordered=False) == "fails: why"
    assert compare(Failed("one"), Failed("other"), ordered=False) is None


def test_changes_of_rows_in_memory() -> None:
    rows = pa.table({"key": pa.array(range(10), pa.int64())})
    held = Delete(Keys(1, 9, 3)).held(rows)
    assert held["key"].to_pylist() == [0, 2, 3, 5, 6, 8, 9]
    held = Append(pa.table({"key": pa.array([20], pa.int64())}), 5).held(held)
    held = AddColumn("more").held(Compact(5, deferred=False).held(held))
    assert held["more"].to_pylist()[-2:] == [10, 21]
