"""The documentation in docs/: its examples run as they stand, and its reasons are the real ones."""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from .documentation import (
    DOCS,
    PAGES,
    README,
    anchor_of,
    blocks,
    links,
    namespace,
    printed,
    sections,
)
from .oracle.tally import REFUSALS
from .source_tree import ROOT, module_files

REASONS = DOCS / "when_the_index_is_not_used.md"
CONFIG = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def name_of(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


def code_of(page: Path) -> list[Any]:
    return blocks(page.read_text(encoding="utf-8"))


def is_shown(output: str, shown: str) -> bool:
    """Whether the output is what a page shows, where `…` stands for what differs in a line."""
    return output == shown or bool(
        re.fullmatch(".+".join(map(re.escape, shown.split("…"))), output)
    )


EXAMPLES = [page for page in PAGES if {one.language for one in code_of(page)} & {"python", "sh"}]


@pytest.mark.parametrize("page", EXAMPLES, ids=name_of)
def test_examples_print_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = namespace(page)
    every = code_of(page)
    tried = 0
    for block, shown in pairwise([*every, blocks("```text\n```")[0]]):
        if block.language in ("python", "sh"):
            wanted = shown.code if shown.language == "text" else ""
            assert is_shown(printed(block, names), wanted)
            tried += 1
    assert tried


def test_every_block_is_code_that_runs_or_the_syntax_of_a_statement() -> None:
    for page in PAGES:
        languages = [one.language for one in code_of(page)]
        known = {"python", "sh", "text"}
        if page.parent.name == "statements" or page == REASONS:
            known.add("sql")
        assert set(languages) <= known, page
        for before, language in pairwise([None, *languages]):
            assert language != "text" or before in ("python", "sh"), page


def test_functions_and_statements_have_a_page_with_an_example() -> None:
    for folder in ("functions", "statements"):
        assert set((DOCS / folder).glob("*.md")) <= set(EXAMPLES)


def test_all_pages_are_in_the_navigation() -> None:
    listed = re.findall(r": (\S+\.md)(?: #.*)?$", CONFIG, re.MULTILINE)
    assert sorted(listed) == sorted(["index.md", *map(name_of, PAGES)])


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        path, _, anchor = link.partition("#")
        if path.startswith("https:"):
            continue
        target = (page.parent / path).resolve() if path else page
        assert target.is_file(), link
        assert not anchor or anchor in {anchor_of(heading) for heading, _ in sections(target)}, link


def test_pictures_are_well_formed_and_shown() -> None:
    shown = {(DOCS / link).resolve() for page in PAGES for link in links(page) if ".svg" in link}
    pictures = set((DOCS / "pictures").glob("*.svg"))
    assert pictures <= shown
    for picture in pictures:
        assert ElementTree.parse(picture).getroot().tag.endswith("svg")


# -- when the index is not used ---------------------------------------------------------------


def parts(reason: str) -> list[str]:
    """The words of a reason between what differs from case to case, which is written as `…`."""
    return [part for part in re.split(r"…|: $", reason) if part.strip(" ,:")]


def pattern(reason: str) -> str:
    return ".*".join(map(re.escape, parts(reason)))


LISTED = [
    (heading, text)
    for heading, text in sections(REASONS)
    if heading[0].islower() or heading[0] == "…"
]
IN_TABLE = re.findall(r"^\| ((?:its|field|it|the) .+?) \| ", REASONS.read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("reasons"))
        names = namespace(REASONS)
        printed(next(one for one in code_of(REASONS) if one.language == "python"), names)
        yield names["ctx"]


WITH_STATEMENTS = [
    (reason, [block.code for block in blocks(text) if block.language == "sql"])
    for reason, text in LISTED
    if "```sql" in text
]


@pytest.mark.parametrize(("reason", "statements"), WITH_STATEMENTS)
def test_explain_gives_the_reason_and_what_to_do_helps(
    reason: str, statements: list[str], tables: Any
) -> None:
    refused, *served = (explained(tables, statement) for statement in statements)
    assert re.search(pattern(reason), refused["index_notes"])
    assert "IndexScan: " not in refused["physical_plan"]
    for plans in served:
        assert "IndexScan: " in plans["physical_plan"]
        assert "index_notes" not in plans


def explained(session: Any, statement: str) -> dict[str, str]:
    rows = session.sql(f"EXPLAIN FORMAT INDENT {statement}").to_pydict()
    return dict(zip(rows["plan_type"], rows["plan"], strict=True))


def texts(node: ast.expr) -> str:
    """A text as it stands in the source, `…` for what is put into it."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(texts, node.values))
    return "…"


def written_texts() -> str:
    """All texts in the sources of what rewrites and searches."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in module_files()]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    return "\n".join(texts(n) for n in nodes if isinstance(n, ast.Constant | ast.JoinedStr))


def test_every_listed_reason_is_one_of_the_sources() -> None:
    written = written_texts()
    for reason in [*(heading for heading, _ in LISTED), *IN_TABLE]:
        for part in re.split(r", and (?=as|it scans)", reason):
            for words in parts(part.replace("65536", "…").replace("more than 8", "more than …")):
                assert words.strip(" ,") in written, reason


def test_every_refusal_that_the_oracle_knows_is_listed() -> None:
    listed = "\n".join([*(heading for heading, _ in LISTED), *IN_TABLE])
    for words in REFUSALS.values():
        assert words in listed


NOTED = ("note", "note_calls", "UnusableIndexError", "UnsupportedVersionError")
READERS = ("label_list/reader.py", "list_element/details.py", "minhash_lsh/details.py")


def test_every_reason_in_the_sources_is_listed() -> None:
    files = [*module_files("rewrites"), *(ROOT / "indexes" / name for name in READERS)]
    calls = [
        node
        for path in files
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and len(node.args) > 1
        and getattr(node.func, "attr", getattr(node.func, "id", "")) in NOTED
    ]
    reasons = {texts(call.args[1]) for call in calls} - {"…"}
    assert len(reasons) > 25
    listed = "\n".join([*(heading for heading, _ in LISTED), *IN_TABLE])
    missing = [
        reason for reason in reasons if not re.search(pattern(reason.removeprefix("…: ")), listed)
    ]
    assert not missing
