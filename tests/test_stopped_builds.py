"""A build or an upkeep that is stopped at any point leaves the table as it was.

`STOPS=100 pytest tests/test_stopped_builds.py` stops each kind of work at so many points.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from random import Random

import pytest

from .stopped_builds import WORK, stop_at_random, write_indexed_table, write_table

STOPS = int(os.environ.get("STOPS", "2"))


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGINT], ids=["killed", "cancelled"])
@pytest.mark.parametrize("stable_row_ids", [False, True], ids=["addresses", "stable row ids"])
@pytest.mark.parametrize("name", WORK)
def test_stopped_at_any_point(
    tmp_path: Path, name: str, stable_row_ids: bool, by: signal.Signals
) -> None:
    template = tmp_path / "template"
    write = write_indexed_table if WORK[name][1] else write_table
    write(template, stable_row_ids=stable_row_ids)

    stops = stop_at_random(name, template, tmp_path, STOPS, Random(STOPS), by)

    # Shown with -s.
    print(f"{name}, {by.name}: {stops}")
    assert stops.before + stops.between
