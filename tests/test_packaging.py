"""What an installation holds: the wheel built from the tree, unpacked and imported."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from email.message import Message
from email.parser import Parser
from importlib.metadata import packages_distributions
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

import pytest

from .source_tree import PACKAGES, ROOT, imported, module_files, module_name


def run(code: str, cwd: Path, **environment: str) -> str:
    """Standard output of `code` run in a new interpreter without this one's environment."""
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    # A copy: setuptools keeps its build folder beside pyproject.toml, and what it once put there
    # stays in every later wheel.
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, source / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    build = subprocess.run(
        [sys.executable, "-c", "from setuptools import build_meta as b; b.build_wheel('dist')"],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
    )
    assert build.returncode == 0, build.stderr
    (path,) = (source / "dist").glob("*.whl")
    return ZipFile(path)


@pytest.fixture(scope="module")
def unpacked(wheel: ZipFile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site-packages")
    wheel.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def metadata(wheel: ZipFile) -> Message:
    (name,) = (n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
    return Parser().parsestr(wheel.read(name).decode())


def test_every_module_of_the_four_folders_is_in_the_wheel(wheel: ZipFile) -> None:
    in_tree = {f"datafusion_lance/{p.relative_to(ROOT).as_posix()}" for p in module_files()}
    assert {n for n in wheel.namelist() if n.endswith(".py")} == in_tree


def test_the_wheel_holds_the_namespace_and_nothing_else(wheel: ZipFile) -> None:
    tops = {PurePosixPath(name).parts[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"datafusion_lance"}
    assert "datafusion_lance/__init__.py" not in wheel.namelist()


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_is_marked_as_typed(wheel: ZipFile, package: str) -> None:
    assert f"datafusion_lance/{package}/py.typed" in wheel.namelist()


def test_the_licence_is_in_the_wheel(wheel: ZipFile, metadata: Message) -> None:
    assert metadata["License-Expression"] == "Apache-2.0"
    (name,) = (n for n in wheel.namelist() if n.endswith("/LICENSE"))
    assert wheel.read(name) == (ROOT / "LICENSE").read_bytes()


def test_the_command_line_is_installed(wheel: ZipFile, unpacked: Path, tmp_path: Path) -> None:
    (name,) = (n for n in wheel.namelist() if n.endswith("/entry_points.txt"))
    scripts = wheel.read(name).decode()
    assert "datafusion-lance = datafusion_lance.cli.main:main" in scripts
    code = "from datafusion_lance.cli.main import main; main(['sql', 'SELECT 1 AS one'])"
    assert "| one |" in run(code, tmp_path, PYTHONPATH=str(unpacked))


def test_what_the_packages_import_is_declared(metadata: Message) -> None:
    requirements = metadata.get_all("Requires-Dist", [])
    declared = {
        re.split(r"[^\w-]", requirement)[0].lower()
        for requirement in requirements
        if "extra ==" not in requirement
    }
    tops = {name.split(".")[0] for path in module_files() for name in imported(path)}
    strangers = tops - sys.stdlib_module_names - {"datafusion_lance"}
    providers = packages_distributions()
    needed = [{name.lower() for name in providers[stranger]} for stranger in strangers]
    assert all(names & declared for names in needed), needed
    assert declared <= set[str]().union(*needed)


@pytest.mark.parametrize("where", ["the root", "elsewhere"])
def test_every_installed_module_imports(unpacked: Path, tmp_path: Path, where: str) -> None:
    names = [module_name(path) for path in module_files() if path.name != "__main__.py"]
    code = (
        "import importlib\n"
        f"for name in {names!r}:\n"
        "    print(importlib.import_module(name).__file__)\n"
    )
    cwd = ROOT if where == "the root" else tmp_path
    files = run(code, cwd, PYTHONPATH=str(unpacked)).splitlines()
    assert len(files) == len(names)
    assert all(Path(file).is_relative_to(unpacked) for file in files)
