"""Imports run one way: cli → engine → rewrites → indexes, engine → udfs → indexes."""

from __future__ import annotations

import ast

import pytest

from .source_tree import ROOT, imported, module_files

MAY_IMPORT = {
    "cli": {"engine", "indexes", "udfs"},
    "engine": {"rewrites", "udfs", "indexes"},
    "rewrites": {"indexes"},
    "udfs": {"indexes"},
    "indexes": set[str](),
}
"""Each package's siblings below it; every module may import its own package."""

KNOWS_DATAFUSION = {"indexes/list_element/sort.py"}
"""The one exception in `indexes`: a build sorts more than memory holds, as DataFusion can."""


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_run_one_way(package: str) -> None:
    for path in module_files(package):
        ours = {n.split(".")[1] for n in imported(path) if n.startswith("datafusion_lance.")}
        assert ours <= MAY_IMPORT[package] | {package}, path


@pytest.mark.parametrize(
    ("package", "stranger"),
    [("indexes", "datafusion"), ("rewrites", "lance")],
    ids=["indexes does not know DataFusion", "rewrites opens no file"],
)
def test_a_layer_does_not_know_what_is_not_its_own(package: str, stranger: str) -> None:
    for path in module_files(package):
        known = {name.split(".")[0] for name in imported(path)}
        excepted = path.relative_to(ROOT).as_posix() in KNOWS_DATAFUSION
        assert (stranger in known) == (excepted and stranger == "datafusion"), path


def test_imports_inside_the_namespace_are_relative() -> None:
    for path in module_files():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and not node.level:
                assert not (node.module or "").startswith("datafusion_lance"), path
