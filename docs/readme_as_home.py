"""README.md is the home page of the site, and links from it and to it stay inside the site."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

README = Path(__file__).resolve().parent.parent / "README.md"


def on_files(files: Files, config: Any) -> Files:
    """Adds the README to the pages."""
    files.append(File.generated(config, "index.md", abs_src_path=str(README)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """In the repository, pages are in docs/ and the README is above it.

    `[a page](docs/errors.md)` -> `[a page](errors.md)`
    `[the README](../../README.md#errors)` -> `[the README](../index.md#errors)`
    """
    return markdown.replace("](docs/", "](").replace("../README.md", "index.md")
