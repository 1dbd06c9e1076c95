"""The examples in docstrings give what they say."""

from __future__ import annotations

import doctest
import importlib

import pytest

from .source_tree import module_files, module_name

MODULES = [
    module_name(path) for path in module_files() if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    failed, tried = doctest.testmod(
        importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert tried
    assert not failed
