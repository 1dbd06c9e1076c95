"""The benchmarks run, on small tables, and say whether goals are met."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent


def timings(script: str, *options: str, folder: Path) -> dict[str, dict[str, list[float]]]:
    """What a benchmark measures, by case and contender."""
    return reported(script, *options, folder=folder)["milliseconds"]


def reported(script: str, *options: str, folder: Path) -> dict[str, Any]:
    """The report of a benchmark."""
    report = folder / "report.json"
    result = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / script, f"--json={report}", *options],
        env=os.environ | {"LANCE_LOG": "error"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    return json.loads(report.read_text(encoding="utf-8"))


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """The benchmarks' modules can be imported."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")


SCANS = {"DataFusion, no index", "DuckDB", "Polars"}


def test_bench_compares_phases_and_grows_in_one_report(tmp_path: Path) -> None:
    parts = ["--only", "labels", "elements", "phases", "growth", "fetch"]
    sizes = ["--rows", "20000", "25000", "--runs=1", "--cold-runs=0", f"--tables={tmp_path}"]
    report = reported("bench.py", *parts, *sizes, folder=tmp_path)
    cases = report["cases"]
    labels, elements = (
        [case for case in cases if case["group"] == group]
        for group in ("label list", "list element")
    )
    assert [case["title"].partition(",")[0] for case in labels] == [
        *("id", "count(*)") * 2,
        "all columns",
    ]
    for case in labels:
        assert case["milliseconds"].keys() == {
            *SCANS,
            "datafusion-lance",
            "pylance scan",
            "pylance ds.sql",
        }
    assert [case["milliseconds"].keys() for case in elements] == [
        *[{*SCANS, "datafusion-lance"}] * 2,
        *[{"20,000 rows", "25,000 rows"}] * 2,
    ]
    assert all(len(runs) == 4 for case in cases for runs in case["milliseconds"].values())
    assert len(report["growth"]) == 5
    assert len(report["where_time_goes"]) == 8
    assert {point["rows"] for point in report["fetch"]} >= {1, 10_000, 20_000}
    assert report["machine"]["cores"] == os.cpu_count()
    drawn = [sys.executable, ROOT / "benchmarks" / "plots.py", tmp_path / "report.json"]
    subprocess.run([*drawn, f"--to={tmp_path}"], check=True, capture_output=True)
    assert len(list(tmp_path.glob("*.svg"))) == 6


@pytest.mark.usefixtures("modules")
def test_a_goal_is_met_beside_the_named_peer_or_the_fastest() -> None:
    report, timing = importlib.import_module("report"), importlib.import_module("measure").Timing
    times = {"ours": timing((2.0, 3.0, 4.0)), "fast": timing((2.0,)), "slow": timing((6.0,))}

    def met(*goal: Any) -> bool | None:
        return report.Case("group", "title", times, "ours", report.Goal(*goal)).met

    assert met(1.5)
    assert not met(1.4)
    assert met(0.5, "slow")
    assert met(0.5, "absent") is None
    assert report.Case("group", "title", times, "ours").met is None


@pytest.mark.usefixtures("modules")
def test_cold_runs_time_opening_and_asking_in_a_fresh_process() -> None:
    opener = partial(partial, time.sleep, 0.02)
    assert importlib.import_module("cold").first_run(opener) >= 20


@pytest.mark.usefixtures("modules")
def test_memory_is_the_most_of_a_run_beyond_what_was_there() -> None:
    most = importlib.import_module("memory").most_memory(partial, bytearray, 64 << 20)
    assert 60 << 20 < most < 80 << 20


@pytest.mark.usefixtures("modules")
def test_a_package_has_its_tags_or_none() -> None:
    row = {"Package": "a\n", "Tag": "role::program, use::editing,\n works-with::text\n"}
    table = importlib.import_module("packages").table_of([row, {"Package": "b\n"}])
    assert table["tags"].to_pylist() == [
        ["role::program", "use::editing", "works-with::text"],
        None,
    ]
    assert table["name"].to_pylist() == ["a", "b"]


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
