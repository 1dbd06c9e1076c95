"""The documentation's reference pages name all there is: exports, methods, columns, metrics."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from datafusion import SessionContext

from datafusion_lance import engine, udfs
from datafusion_lance.cli.main import make_parser

from .documentation import DOCS, PAGES, README, namespace

EXPLAIN = DOCS / "statements" / "explain.md"
SHOW_INDEXES = DOCS / "statements" / "show_indexes.md"
COMMAND_LINE = DOCS / "command_line.md"


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def first_cells(page: Path) -> list[str]:
    """What stands as code in the first column of a page's tables."""
    cells = re.findall(r"^\| (`.+?) \| ", text_of(page), re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def test_all_exports_have_an_entry() -> None:
    entries = re.findall(r"^::: [\w.]+\.(\w+)$", "\n".join(map(text_of, PAGES)), re.MULTILINE)
    assert sorted(entries) == sorted([*engine.__all__, *udfs.__all__])


def test_all_methods_that_the_readme_calls_are_members_of_the_sessions_entry() -> None:
    members = re.findall(r"^ +- (\w+)$", text_of(DOCS / "session.md"), re.MULTILINE)
    called = set(re.findall(r"\bctx\.(\w+)\(", text_of(README)))
    assert len(called) > 8
    assert called - set(members) <= set(dir(SessionContext))


def test_all_columns_of_show_indexes_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ctx = namespace(SHOW_INDEXES)["ctx"]
    assert sorted(first_cells(SHOW_INDEXES)) == sorted(ctx.sql("SHOW INDEXES").schema().names)


def test_all_metrics_of_explain_analyze_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ctx = namespace(DOCS / "when_the_index_is_not_used.md")["ctx"]
    ctx.register_lance("images", "images.lance")
    printed: set[str] = set()
    for query in (
        "SELECT * FROM images WHERE any_element(detections, $$label = 'car' AND confidence <> 1$$)",
        "SELECT * FROM minhash_pairs('docs', 'text', 0.1)",
    ):
        plan = ctx.sql(f"EXPLAIN ANALYZE {query}").to_pylist()[0]["plan"]
        (line,) = (line for line in plan.splitlines() if "IndexScan: " in line)
        printed.update(re.findall(r"(\w+)=", line.partition("metrics=[")[2]))
    told = first_cells(EXPLAIN)
    assert set(told) == printed
    assert len(told) == len(printed)


def test_all_commands_are_told() -> None:
    commands = re.findall(r"^ {4}([a-z-]+)(?: |$)", make_parser().format_help(), re.MULTILINE)
    assert [cell.split()[0] for cell in first_cells(COMMAND_LINE)] == commands
