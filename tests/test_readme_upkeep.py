"""The README's statements and commands for making and keeping indexes run as they stand."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from datafusion_lance.cli.main import main
from datafusion_lance.engine import LanceSessionContext

from .engine.indexed_images import write_images
from .source_tree import ROOT


def section(heading: str) -> str:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return readme.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


@pytest.fixture(autouse=True)
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_images(tmp_path / "images.lance")
    texts = ["the quick brown fox jumps", "the quick brown fox jumps over", None]
    lance.write_dataset(pa.table({"text": texts}), tmp_path / "docs.lance")


def test_statements_and_methods_are_the_same() -> None:
    rows = re.findall(r"^\| (`.+`)? ?\| `(.+)` \|$", section("Making and keeping indexes"), re.M)
    assert len(rows) == 8
    sql, python = LanceSessionContext(), LanceSessionContext()
    for session in (sql, python):
        session.register_lance("docs", "docs.lance")

    by_sql: list[list[str]] = []
    for statement, _ in rows:
        for text in re.sub(r"[\[\]]", "", statement).split("`"):
            if text:
                sql.sql(text).collect()
        by_sql.append(sorted(row["name"] for row in sql.sql("SHOW INDEXES").to_pylist()))
    lance.dataset("images.lance").drop_index("tags_idx")
    lance.dataset("docs.lance").drop_index("text_idx")
    python.refresh("docs")
    by_python: list[list[str]] = []
    for _, call in rows:
        exec(call, {"ctx": python})
        by_python.append(sorted(row["name"] for row in python.sql("SHOW INDEXES").to_pylist()))

    assert by_python == by_sql
    assert by_sql[-1] == ["tags_idx", "text_idx"]


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = re.findall(r"^```sh\n(.*?)^```$", section("Command line"), re.DOTALL | re.MULTILINE)
    for line in block.splitlines():
        program, *arguments = shlex.split(line)
        assert program == "datafusion-lance"
        found = [a if "/*/" not in a else next(map(str, tmp_path.glob(a))) for a in arguments]
        assert main(found) == 0, line
        assert capsys.readouterr().err == ""
