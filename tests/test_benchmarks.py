"""The benchmarks run, on small tables."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_label_list_times_every_contender_on_every_case(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    script = ROOT / "benchmarks" / "label_list.py"
    options = ["--rows=20000", "--runs=4", f"--tables={tmp_path}", f"--json={report}"]
    result = subprocess.run(
        [sys.executable, script, *options], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")
    cases = json.loads(report.read_text(encoding="utf-8"))["milliseconds"]
    assert len(cases) == 4
    for timings in cases.values():
        assert {name: len(runs) for name, runs in timings.items()} == {
            "datafusion-lance": 4,
            "pylance scan": 4,
            "pylance ds.sql": 4,
            "DataFusion, no index": 4,
            "DuckDB": 4,
            "Polars": 4,
        }


def test_any_element_times_both_on_every_case(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    script = ROOT / "benchmarks" / "any_element.py"
    options = ["--rows=20000", "--runs=2", f"--json={report}"]
    result = subprocess.run(
        [sys.executable, script, *options], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")
    cases = json.loads(report.read_text(encoding="utf-8"))["milliseconds"]
    assert len(cases) == 5
    assert all(timings.keys() == {"any_element", "array_any_match"} for timings in cases.values())
