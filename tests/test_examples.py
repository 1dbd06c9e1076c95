"""What a newcomer runs first: the README's first query and the demo."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
QUESTIONS = 9
# pylance warns of each index type that it does not know.
QUIET = {"LANCE_LOG": "error"}
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(heading: str) -> list[tuple[str, str]]:
    """Language and text of each code block under a heading of the README."""
    section = README.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^```(\w+)\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)


def run(code: str, folder: Path) -> str:
    """Standard output of `code`, run in `folder` by a new interpreter that prints no warning."""
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=os.environ | QUIET,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


def nodes(plan: str) -> list[str]:
    """The lines of a physical plan, without indents and repartitioning."""
    lines = [line.strip() for line in plan.splitlines()]
    return [line for line in lines if line and not line.startswith("RepartitionExec:")]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What the demo prints, and the folder that it had for temporary files."""
    folder = tmp_path_factory.mktemp("demo")
    result = subprocess.run(
        [sys.executable, ROOT / "examples" / "python_stdlib.py"],
        cwd=folder,
        env={"TMPDIR": str(folder), **QUIET},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout, folder


@pytest.mark.parametrize("heading", ["A first query", "Near-duplicate texts"])
def test_the_readmes_scripts_print_what_the_readme_shows(tmp_path: Path, heading: str) -> None:
    (language, code), (_, shown), *_ = blocks(heading)
    assert language == "python"
    assert run(code, tmp_path) == shown


def test_the_readmes_ways_to_call_any_element_go_on_from_the_first_query(tmp_path: Path) -> None:
    (_, first), (_, before), *_ = blocks("A first query")
    (language, code), (_, shown) = blocks("any_element")
    assert language == "python"
    assert run(first + code, tmp_path) == before + shown


def test_the_readmes_plan_is_what_explain_prints(tmp_path: Path) -> None:
    """But for the repartitioning, which depends on the machine's processors."""
    (_, code), *_ = blocks("A first query")
    (language, statement), (_, shown), *_ = blocks("How to read EXPLAIN")
    assert language == "sql"
    more = f"""
plans = ctx.sql({statement!r}).to_pylist()
print(next(row["plan"] for row in plans if row["plan_type"] == "physical_plan"))
"""
    printed = run(code + more, tmp_path)
    assert nodes(printed)[-len(nodes(shown)) :] == nodes(shown)


def test_the_demos_answers_are_the_same_with_and_without_the_index(
    demo: tuple[str, Path],
) -> None:
    printed, _ = demo
    assert printed.count("; the same answer\n") == QUESTIONS
    assert "All answers are the same with and without the index" in printed


def test_the_demo_uses_the_index_in_every_query(demo: tuple[str, Path]) -> None:
    printed, _ = demo
    plans = printed.split("EXPLAIN:\n")[1:]
    assert len(plans) == QUESTIONS
    for plan in plans:
        assert re.search(r"IndexScan: table=stdlib, .*kind=(Label|ListElement|MinHash)", plan)
    assert sum("kind=ListElement" in plan for plan in plans) == 1
    assert sum("MinHashLsh" in plan for plan in plans) == 2
    assert sum("kind=LabelList+ListElement" in plan for plan in plans) == 2


def test_the_demo_leaves_nothing_behind(demo: tuple[str, Path]) -> None:
    _, folder = demo
    assert not list(folder.iterdir())
