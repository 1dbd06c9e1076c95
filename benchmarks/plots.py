"""Draws the plots of a report of bench.py: the ratios to the best peer, and growth.

python benchmarks/plots.py REPORT [--to FOLDER]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parent.parent
COLOR, FAINT = "#1f5fa8", "#b9c4d0"


def ratios(cases: Sequence[Mapping[str, Any]]) -> Figure:
    """A bar for each warm case: what part of the best peer's time ours takes; ticks are goals."""
    shown = [case for case in cases if case["caches"] == "warm"][::-1]
    figure = Figure(figsize=(9, 1 + 0.3 * len(shown)), layout="constrained")
    axes = figure.subplots()
    names = [f"{case['group']}: {case['title']} ({case['best_peer']})" for case in shown]
    axes.barh(names, [case["ratio"] for case in shown], color=COLOR, height=0.6)
    for at, case in enumerate(shown):
        goal = case["goal"]
        if goal is not None and goal["peer"] in (None, case["best_peer"]):
            axes.plot([goal["most"]] * 2, [at - 0.45, at + 0.45], color="black")
    axes.set_xscale("log")
    axes.axvline(1, color=FAINT)
    axes.set_xlabel("time of datafusion-lance / time of the best peer (in parentheses)")
    return figure


def growth(series: Mapping[str, Any]) -> Figure:
    """Medians with the 10th and 90th percentile, and a line of linear growth through the last."""
    counts = [int(count) for count in series["milliseconds"]]
    runs = list(series["milliseconds"].values())
    medians = [median(some) for some in runs]
    low, high = zip(*(np.percentile(some, [10, 90]) for some in runs), strict=True)
    figure = Figure(figsize=(5, 3.2), layout="constrained")
    axes = figure.subplots()
    linear = [medians[-1] * count / counts[-1] for count in counts]
    axes.plot(counts, linear, color=FAINT, linestyle="dashed", label="linear")
    axes.fill_between(counts, low, high, color=COLOR, alpha=0.25, linewidth=0)
    axes.plot(counts, medians, color=COLOR, marker="o", markersize=3)
    axes.set(xscale="log", yscale="log", xlabel=series["grows"], ylabel="ms", title=series["title"])
    axes.set_ylim(bottom=min(low) / 2)
    axes.legend(frameon=False)
    return figure


def save(figure: Figure, path: Path) -> None:
    """As an SVG file whose text is text, the same for the same figure."""
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    print(path)


def file_name(title: str) -> str:
    """
    >>> file_name("COUNT(*), any_element: ranges of keys")
    'count-any-element-ranges-of-keys'
    """
    words = "".join(letter if letter.isalnum() else " " for letter in title.lower())
    return "-".join(words.split())


def main() -> None:
    arguments = argparse.ArgumentParser(description="plots of a report of bench.py")
    arguments.add_argument("report", type=Path)
    arguments.add_argument("--to", type=Path, default=ROOT / "docs" / "pictures")
    given = arguments.parse_args()
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "plots", "font.size": 9})
    report = json.loads(given.report.read_text(encoding="utf-8"))
    given.to.mkdir(exist_ok=True)
    if report["cases"]:
        save(ratios(report["cases"]), given.to / "benchmarks.svg")
    for series in report.get("growth", []):
        name = file_name(f"{series['title']} {series['grows']}")
        save(growth(series), given.to / f"growth-{name}.svg")


if __name__ == "__main__":
    main()
