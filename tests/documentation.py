"""The documentation's pages: their code, what it prints, their headings and links."""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datafusion_lance.cli.main import main

from .source_tree import ROOT

DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = sorted(DOCS.rglob("*.md"))

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_GOES_ON_FROM = re.compile(r"examples go on from .*?\)\.\s", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code, in the order of the page; `text` is what the one before it prints."""

    language: str
    code: str


def blocks(text: str) -> list[Block]:
    """The blocks of code of a page, or of a section of one."""
    return [Block(*found.groups()) for found in _BLOCK.finditer(text)]


def sections(page: Path) -> Iterator[tuple[str, str]]:
    """Each heading of a page and the text under it, up to the next heading."""
    text = page.read_text(encoding="utf-8")
    # A line of code may begin as a heading does.
    code = [range(*found.span()) for found in _CODE.finditer(text)]
    headings = [
        found
        for found in re.finditer(r"^#+ (.+)$", text, re.MULTILINE)
        if not any(found.start() in span for span in code)
    ]
    ends = [*(heading.start() for heading in headings[1:]), len(text)]
    for heading, end in zip(headings, ends, strict=True):
        yield heading[1], text[heading.end() : end]


def anchor_of(heading: str) -> str:
    """The id of a heading, as GitHub and mkdocs both make it of plain words.

    >>> anchor_of("What is served, and what is not")
    'what-is-served-and-what-is-not'
    """
    return "-".join(re.sub(r"[^\w\s-]", "", heading.lower()).split())


def links(page: Path) -> list[str]:
    """Where the links and pictures of a page lead."""
    return re.findall(r"\]\(([^)\s]+)\)", _CODE.sub("", page.read_text(encoding="utf-8")))


def namespace(page: Path) -> dict[str, Any]:
    """What the README's scripts leave behind that a page says its examples go on from.

    They run in the current folder, one after the other.
    """
    names: dict[str, Any] = {}
    said = _GOES_ON_FROM.search(page.read_text(encoding="utf-8"))
    for anchor in re.findall(r"README\.md#([\w-]+)\)", "" if said is None else said[0]):
        (section,) = (text for heading, text in sections(README) if anchor_of(heading) == anchor)
        printed(next(one for one in blocks(section) if one.language == "python"), names)
    return names


def printed(block: Block, names: dict[str, Any]) -> str:
    """What a block prints: Python with these names, or lines of commands."""
    # A command writes bytes, too.
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="")
    with redirect_stdout(output):
        if block.language == "python":
            exec(block.code, names)
        else:
            for line in block.code.splitlines():
                _, *arguments = shlex.split(line)
                assert main([_found(one) for one in arguments]) == 0, line
    output.seek(0)
    return output.read()


def _found(argument: str) -> str:
    """The argument as a shell gives it, where there is one file of that pattern."""
    return str(next(Path().glob(argument))) if "*" in argument else argument
