"""Ranges of the parameters, what they decide, and the specification's reference points."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from datafusion_lance.indexes.errors import InvalidArgumentError
from datafusion_lance.indexes.minhash_lsh.parameters import (
    MinHashParameters,
    candidate_probability,
)
from datafusion_lance.indexes.minhash_lsh.tokenizer import DEFAULT_TOKENIZER


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"num_hashes": 0}, "num_hashes: got 0, takes a number from 1 to 4096"),
        ({"num_hashes": 4097}, "num_hashes: got 4097, takes a number from 1 to 4096"),
        ({"num_hashes": "128"}, "num_hashes: got '128', takes a number from 1 to 4096"),
        ({"num_hashes": True}, "num_hashes: got True, takes a number"),
        ({"num_hashes": 128.0}, "num_hashes: got 128.0, takes a number"),
        ({"num_hashes": 100}, "num_hashes: got 100, takes a multiple of num_bands, which is 16"),
        ({"num_bands": 0}, "num_bands: got 0, takes a number from 1 to 256"),
        ({"num_bands": 257}, "num_bands: got 257, takes a number from 1 to 256"),
        ({"shingle_size": 0}, "shingle_size: got 0, takes a number from 1 to 4294967295"),
        ({"shingle_size": 2**32}, "shingle_size: got 4294967296, takes a number from 1"),
        ({"tokenizer": None}, "tokenizer: got None, takes a Tokenizer"),
    ],
)
def test_parameters_name_their_range(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        MinHashParameters(**parameters)


def test_the_defaults_are_lance_s() -> None:
    parameters = MinHashParameters()
    assert (parameters.num_hashes, parameters.num_bands, parameters.shingle_size) == (128, 16, 3)
    assert parameters.rows_per_band == 8


def test_bands_do_not_matter_to_signatures() -> None:
    assert MinHashParameters().signs_like(MinHashParameters(num_bands=128))


def test_what_shapes_no_token_does_not_matter_to_signatures() -> None:
    carried = replace(
        DEFAULT_TOKENIZER,
        with_position=True,
        block_size=256,
        document_granularity=1,
        posting_format_version=None,
    )
    assert MinHashParameters().signs_like(MinHashParameters(tokenizer=carried))


@pytest.mark.parametrize(
    "other",
    [
        MinHashParameters(num_hashes=64),
        MinHashParameters(shingle_size=2),
        MinHashParameters(tokenizer=replace(DEFAULT_TOKENIZER, base_tokenizer="icu")),
        MinHashParameters(tokenizer=replace(DEFAULT_TOKENIZER, max_token_length=None)),
        MinHashParameters(tokenizer=replace(DEFAULT_TOKENIZER, stem=True)),
    ],
)
def test_other_signatures(other: MinHashParameters) -> None:
    assert not MinHashParameters().signs_like(other)


def test_the_reference_points() -> None:
    # 1 - (1 - J^r)^b, worked out with b = 16 and r = 8.
    assert candidate_probability(0.8) == pytest.approx(1 - (1 - 0.8**8) ** 16)
    assert candidate_probability(1.0) == 1.0
    assert candidate_probability(0.0) == 0.0
    assert candidate_probability(0.5, 64, 1) == pytest.approx(0.5**64)
    found = candidate_probability(np.array([[0.2, 0.9]]), 256, 64)
    assert isinstance(found, np.ndarray)
    assert found == pytest.approx(np.array([[1 - (1 - 0.2**4) ** 64, 1 - (1 - 0.9**4) ** 64]]))


@pytest.mark.parametrize("similarity", [-0.1, 1.1, float("nan"), [0.5, 2.0]])
def test_a_similarity_is_between_0_and_1(similarity: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="similarity: got"):
        candidate_probability(similarity)


def test_the_probability_checks_its_parameters() -> None:
    with pytest.raises(InvalidArgumentError, match="num_hashes: got 10, takes a multiple"):
        candidate_probability(0.5, 10, 3)
