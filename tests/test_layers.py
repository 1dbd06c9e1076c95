"""Imports run one way: engine → rewrites → indexes, engine → udfs → indexes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

MAY_IMPORT = {
    "engine": {"rewrites", "udfs", "indexes"},
    "rewrites": {"indexes"},
    "udfs": {"indexes"},
    "indexes": set[str](),
}
"""Each package's own siblings; every module may import its own package."""


def imported(path: Path) -> Iterator[str]:
    """The absolute names of all modules that the file at `path` imports."""
    package = ("datafusion_lance", *path.relative_to(ROOT).parent.parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else ()
            module = (*start, node.module) if node.module else start
            yield from (".".join((*module, alias.name)) for alias in node.names)


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_run_one_way(package: str) -> None:
    for path in (ROOT / package).rglob("*.py"):
        ours = [n.split(".")[1] for n in imported(path) if n.startswith("datafusion_lance.")]
        assert set(ours) <= MAY_IMPORT[package] | {package}, path


@pytest.mark.parametrize(
    ("package", "stranger"),
    [("indexes", "datafusion"), ("rewrites", "lance")],
    ids=["indexes does not know DataFusion", "rewrites opens no file"],
)
def test_a_layer_does_not_know_what_is_not_its_own(package: str, stranger: str) -> None:
    for path in (ROOT / package).rglob("*.py"):
        assert stranger not in {name.split(".")[0] for name in imported(path)}, path


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_inside_the_namespace_are_relative(package: str) -> None:
    for path in (ROOT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and not node.level:
                assert not (node.module or "").startswith("datafusion_lance"), path
