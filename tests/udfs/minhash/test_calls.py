"""Calls with parameters in SQL text."""

from __future__ import annotations

from typing import Any

import pytest

from datafusion_lance.indexes.errors import InvalidArgumentError
from datafusion_lance.udfs.minhash.calls import rename_calls


def renamed(text: str, values: dict[str, Any] | None = None, normalize: bool = True) -> str | None:
    calls = rename_calls(text, values or {}, lambda _: True, normalize=normalize)
    return None if calls is None else calls.text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("minhash_distance(a, b, 64)", "minhash_distance__64(a, b, 64)"),
        ("minhash_distance(a, 'x, y', 64, 8, 2)", "minhash_distance__64_8_2(a, 'x, y', 64, 8, 2)"),
        ("MinHash_Similarity (f(a, 1), (b), 64 )", "minhash_similarity__64 (f(a, 1), (b), 64 )"),
        ('"minhash_distance"(a, b, 64)', "minhash_distance__64(a, b, 64)"),
        ("minhash_signature(a, 64, 8)", "minhash_signature__64_8(a, 64, 8)"),
        (
            "minhash_distance(a, b) + minhash_distance(a, b, 64) + minhash_distance(a, b, 32)",
            "minhash_distance(a, b) + minhash_distance__64(a, b, 64)"
            " + minhash_distance__32(a, b, 32)",
        ),
        (
            "minhash_distance(CAST(minhash_distance(a, b, 64) AS text), b, /* x */ 32)",
            "minhash_distance__32(CAST(minhash_distance__64(a, b, 64) AS text), b, /* x */ 32)",
        ),
    ],
)
def test_calls_are_renamed(text: str, expected: str) -> None:
    assert renamed(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "minhash_distance(a, b)",
        "minhash_signature(a)",
        "minhash_distance(a)",
        "minhash_distance()",
        "s.minhash_distance(a, b, 64)",
        "'minhash_distance(a, b, 64)'",
        "-- minhash_distance(a, b, 64)",
        '"MINHASH_DISTANCE"(a, b, 64)',
        "minhash_distance, a, b",
        "minhash_distance(a, b, 64",
        "minhash_distance(a, 'b, 64)",
    ],
)
def test_what_is_no_call_with_parameters(text: str) -> None:
    assert renamed(text) is None


def test_without_normalization_a_name_has_its_case() -> None:
    assert renamed("MINHASH_DISTANCE(a, b, 64)", normalize=False) is None
    assert renamed("minhash_distance(a, b, 64)", normalize=False) is not None


def test_a_function_of_that_name_that_is_not_ours_is_left_alone() -> None:
    text = "minhash_distance(a, b, c, d, e, f, g)"
    assert rename_calls(text, {}, lambda _: False) is None


def test_placeholders_have_values() -> None:
    values = {"1": "query", "n": 64, "bands": 8}
    assert (
        renamed("minhash_distance(a, $1, $n, $bands)", values)
        == "minhash_distance__64_8(a, $1, $n, $bands)"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("64, 7", "num_hashes: got 64, takes a multiple of num_bands, which is 7"),
        ("0", "num_hashes: got 0, takes a number from 1 to 4096"),
        ("-16", "num_hashes: got -16, takes a number from 1 to 4096"),
        ("99999999999999999999", "num_hashes: got 99999999999999999999, takes a number from 1"),
        ("512, 512", "num_bands: got 512, takes a number from 1 to 256"),
        ("128, 16, 0", "shingle_size: got 0, takes a number from 1"),
        ("n", "num_hashes: got 'n', takes a whole number as a literal"),
        ("64 + 64", r"num_hashes: got '64 \+ 64', takes a whole number as a literal"),
        ("64.0", "num_hashes: got '64.0', takes a whole number as a literal"),
        ("'64'", "num_hashes: got \"'64'\", takes a whole number as a literal"),
        ("64, NULL", "num_bands: got 'NULL', takes a whole number as a literal"),
        ("(64)", r"num_hashes: got '\(64\)', takes a whole number as a literal"),
        ("", "num_hashes: got '', takes a whole number as a literal"),
        ("$2", r"num_hashes: got '\$2', takes .*; there is no value for \$2"),
        ("$1", r"num_hashes: got 'q', takes a whole number for \$1"),
        ("$3", r"num_hashes: got True, takes a whole number for \$3"),
        ("1, 1, 1, 1", "minhash_distance: got .*, takes two texts, and up to 3 parameters"),
    ],
)
def test_parameters_that_are_refused(arguments: str, message: str) -> None:
    text = f"SELECT minhash_distance(a, b, {arguments})"
    with pytest.raises(InvalidArgumentError, match=message):
        renamed(text, {"1": "q", "3": True})


def test_prepare_leaves_no_parameter_open() -> None:
    with pytest.raises(InvalidArgumentError, match="PREPARE cannot leave it open"):
        renamed("PREPARE p AS SELECT minhash_distance(a, $1, $2)")
