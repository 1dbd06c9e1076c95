"""The project's own files, read as text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("cli", "engine", "indexes", "rewrites", "udfs")


def module_files(*packages: str) -> list[Path]:
    """The Python files of the given packages, or of all."""
    return sorted(
        path for package in packages or PACKAGES for path in (ROOT / package).rglob("*.py")
    )


def module_name(path: Path) -> str:
    """The name under which the file is imported once the project is installed."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(("datafusion_lance", *parts)).removesuffix(".__init__")


def imported(path: Path) -> Iterator[str]:
    """The absolute names of all that the file imports, names out of modules included."""
    package = ("datafusion_lance", *path.relative_to(ROOT).parent.parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else ()
            module = (*start, node.module) if node.module else start
            yield from (".".join((*module, alias.name)) for alias in node.names)
