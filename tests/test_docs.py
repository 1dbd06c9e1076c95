"""The pages in `docs` are true: their examples run, and the notes that they explain exist."""

from __future__ import annotations

import ast
import contextlib
import io
import re
from pathlib import Path

import pytest

from .oracle.tally import REFUSALS
from .source_tree import ROOT

DOCS = ROOT / "docs"
PAGES = {str(path.relative_to(DOCS)): path.read_text("utf-8") for path in DOCS.rglob("*.md")}
NOT_SERVED = PAGES["not_served.md"]


def blocks(page: str) -> list[tuple[str, str]]:
    """Language and text of each code block."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", PAGES[page], re.DOTALL | re.MULTILINE)


def texts_in_the_sources() -> str:
    """All constant texts of the sources, those of f-strings in their pieces."""
    found: list[str] = []
    for folder in ("engine", "indexes", "rewrites"):
        for path in (ROOT / folder).rglob("*.py"):
            tree = ast.parse(path.read_text("utf-8"))
            found += [
                node.value
                for node in ast.walk(tree)
                if isinstance(node, ast.Constant) and isinstance(node.value, str)
            ]
    return "\n".join(found)


@pytest.mark.parametrize("page", sorted(p for p in PAGES if "```python" in PAGES[p]))
def test_examples_print_what_the_page_shows(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    examples = blocks("index.md") if page != "index.md" else []
    printed = shown = ""
    for language, code in [*examples, *blocks(page)]:
        if language == "python":
            assert printed == shown
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(code, names)
            printed, shown = output.getvalue().rstrip(), ""
        elif language == "text" and printed:
            shown = code.rstrip()
    assert printed == shown


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    named = re.findall(r"(\S+\.md)$", navigation, re.MULTILINE)
    assert sorted(named) == sorted(PAGES)


def test_every_link_leads_to_a_page_and_a_heading_of_it() -> None:
    for page, text in PAGES.items():
        for target in re.findall(r"\]\(([^)]+)\)", text):
            path, _, heading = target.partition("#")
            linked = str((DOCS / page).parent.joinpath(path).resolve().relative_to(DOCS))
            assert linked in PAGES, (page, target)
            headings = re.findall(r"^#+ (.+)$", PAGES[linked], re.MULTILINE)
            anchors = {re.sub(r"\W+", "-", title.lower()) for title in headings}
            assert not heading or heading in anchors, (page, target)


def test_every_note_that_the_page_explains_is_one_of_the_sources() -> None:
    sources = texts_in_the_sources()
    explained = re.findall(r"^\| `([^`]+)` \|", NOT_SERVED, re.MULTILINE)
    assert len(explained) > 20
    for note in explained:
        assert all(part in sources for part in re.split(r"\d+", note)), note


def test_every_reason_that_the_oracle_meets_is_explained() -> None:
    for words in REFUSALS.values():
        assert words in NOT_SERVED, words
