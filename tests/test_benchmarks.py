"""The benchmarks run, on small tables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def timings(script: str, *options: str, folder: Path) -> dict[str, dict[str, list[float]]]:
    """What a benchmark measures, by case and contender."""
    report = folder / "report.json"
    result = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / script, f"--json={report}", *options],
        env=os.environ | {"LANCE_LOG": "error"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    return json.loads(report.read_text(encoding="utf-8"))["milliseconds"]


def test_label_list_times_every_contender_on_every_case(tmp_path: Path) -> None:
    options = ["--rows=20000", "--runs=4", f"--tables={tmp_path}"]
    cases = timings("label_list.py", *options, folder=tmp_path)
    assert len(cases) == 4
    for case in cases.values():
        assert {name: len(runs) for name, runs in case.items()} == {
            "datafusion-lance": 4,
            "pylance scan": 4,
            "pylance ds.sql": 4,
            "DataFusion, no index": 4,
            "DuckDB": 4,
            "Polars": 4,
        }


def test_list_element_times_every_contender_on_every_size(tmp_path: Path) -> None:
    options = ["--rows", "100000", "110000", "--runs=4", f"--tables={tmp_path}"]
    cases = timings("list_element.py", *options, folder=tmp_path)
    assert len(cases) == 4
    for case in cases.values():
        assert {name: len(runs) for name, runs in case.items()} == {
            "datafusion-lance": 4,
            "DataFusion, no index": 4,
            "DuckDB": 4,
            "Polars": 4,
        }


def test_any_element_times_both_on_every_case(tmp_path: Path) -> None:
    cases = timings("any_element.py", "--rows=20000", "--runs=4", folder=tmp_path)
    assert len(cases) == 5
    assert all(case.keys() == {"any_element", "array_any_match"} for case in cases.values())


def test_builds_are_timed_side_by_side(tmp_path: Path) -> None:
    options = ["--rows=20000", "--runs=4", f"--tables={tmp_path}"]
    (case,) = timings("list_element_build.py", *options, folder=tmp_path).values()
    assert {name: len(runs) for name, runs in case.items()} == {
        "list element index": 4,
        "pylance BTREE": 4,
    }


def test_pairs_are_timed_beside_both_peers(tmp_path: Path) -> None:
    options = ["--rows=2000", "--runs=1", f"--tables={tmp_path}"]
    cases = timings("minhash_pairs.py", *options, folder=tmp_path)
    assert {title: list(case) for title, case in cases.items()} == {
        "pairs from signatures": [
            "datafusion-lance",
            "datafusion-lance, clusters",
            "datasketch",
            "rensa",
        ],
        "pairs from texts": ["datafusion-lance", "datasketch", "rensa"],
    }


def test_searches_are_timed_beside_pylance_and_beside_no_index(tmp_path: Path) -> None:
    options = ["--rows=2000", "--runs=4", f"--tables={tmp_path}"]
    cases = timings("minhash_search.py", *options, folder=tmp_path)
    assert [list(case) for case in cases.values()] == (
        6 * [["datafusion-lance", "pylance"]] + 4 * [["datafusion-lance", "DataFusion, no index"]]
    )
