"""Calls are found where they are calls, and nowhere else."""

from __future__ import annotations

import pytest

from datafusion_lance.udfs.elements.calls import find_calls


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("any_element(d, 'p')", "<d>"),
        ("ANY_Element ( d , 'p' )", "< d >"),
        ('"any_element"(d, $$p$$)', "<d>"),
        ("any_element(f(a, [1, 2], 'x)'), 'p')", "<f(a, [1, 2], 'x)')>"),
        ("any_element((SELECT d FROM u), 'p')", "<(SELECT d FROM u)>"),
        ("any_element(g(any_element(d, 'p')), 'q')", "<g(<d>)>"),
        ("g(any_element(d, 'p'), any_element(e, 'p'))", "g(<d>, <e>)"),
        ("any_element(d, $p)", "<d>"),
    ],
)
def test_found(text: str, written: str) -> None:
    statement = find_calls(text, {"p": "p"})
    assert statement is not None
    assert statement.replaced(lambda number, lists: f"<{lists}>") == written


@pytest.mark.parametrize(
    "text",
    [
        "'any_element(d, ''p'')'",
        "E'\\'any_element(d, 1)'",
        '"any_element(d, 1)"',
        "$$any_element(d, 1)$$",
        "$tag$any_element(d, $$1$$)$tag$",
        "-- any_element(d, 1)",
        "/* any_element(d, /* 1 */ 'p') */ 1",
        "any_element",
        "any_element + (1)",
        '"ANY_ELEMENT"(d, 1)',
        "s.any_element(d, 1)",
        "many_element(d, 1)",
        "any_elements(d, 1)",
        "any_element(d, 'p",
        "any_element(d, 'p'",
        "any_element(d], 'p')",
        "any_element(d, 'p') /*",
    ],
)
def test_not_found(text: str) -> None:
    assert find_calls(text, {}) is None


def test_without_normalization_case_counts() -> None:
    assert find_calls("ANY_ELEMENT(d, 'p')", {}, normalize=False) is None
    assert find_calls("any_element(d, 'p')", {}, normalize=False) is not None
