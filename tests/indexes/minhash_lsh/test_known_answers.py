"""The specification's section Known-Answer Vectors, and the coefficients that its text lost."""

from __future__ import annotations

import pyarrow as pa
import pytest
import xxhash

from datafusion_lance.indexes.minhash_lsh.parameters import MinHashParameters
from datafusion_lance.indexes.minhash_lsh.permutations import Coefficients
from datafusion_lance.indexes.minhash_lsh.shingles import hash_shingles
from datafusion_lance.indexes.minhash_lsh.signature import SignatureProcedure
from datafusion_lance.indexes.minhash_lsh.tokenizer import DEFAULT_TOKENIZER, token_function

PARAMETERS = MinHashParameters(num_hashes=4, num_bands=2, shingle_size=2)
PROCEDURE = SignatureProcedure.of(PARAMETERS)
TOKENS_OF = token_function(DEFAULT_TOKENIZER.shapes)


def band_keys(text: str) -> list[int]:
    signature = PROCEDURE.sign_text(text)
    assert signature is not None
    return PROCEDURE.band_keys(signature[None]).tolist()[0]


def test_coefficients() -> None:
    coefficients = Coefficients.of(4)

    assert [f"{value:016x}" for value in coefficients.a.tolist()] == [
        "bdd732262feb6e95",
        "47526757130f9f53",
        "09bc585a244823f3",
        "37e9671c45376d5d",
    ]
    assert [f"{value:016x}" for value in coefficients.b.tolist()] == [
        "28efe333b266f103",
        "581ce1ff0e4ae394",
        "de4431fa3c80db06",
        "ccf635ee9e9e2fa4",
    ]
    assert [f"{value:016x}" for value in coefficients.c.tolist()] == [
        "5705b8770b3d7dd5",
        "9e54d738297f77af",
        "3474724a775b19bf",
        "7e348a0e451650bf",
    ]


def test_the_quick_brown_fox_tokens() -> None:
    tokens = [token.text for token in TOKENS_OF("The quick brown fox")]

    assert tokens == ["the", "quick", "brown", "fox"]


def test_the_quick_brown_fox_shingles() -> None:
    (group,) = hash_shingles(["The quick brown fox"], TOKENS_OF, 2, most_texts=1)

    assert group.counts.tolist() == [3]
    assert group.hashes.tolist() == [
        xxhash.xxh64_intdigest(shingle, 42)
        for shingle in (b"the\x1fquick", b"quick\x1fbrown", b"brown\x1ffox")
    ]


def test_the_quick_brown_fox_band_keys() -> None:
    assert band_keys("The quick brown fox") == [0x00F30F3501D458EA, 0x01AEC5DF28D04915]


def test_fox_is_one_shingle() -> None:
    (group,) = hash_shingles(["Fox"], TOKENS_OF, 2, most_texts=1)

    assert group.hashes.tolist() == [0x07C0130AB04388D5]


def test_fox_minima() -> None:
    (group,) = hash_shingles(["Fox"], TOKENS_OF, 2, most_texts=1)

    assert Coefficients.of(4).minima(group.hashes, group.counts).ravel().tolist() == [
        0x2BB8ADE505081AFC,
        0x0A273C6FF9A78BA3,
        0x802F20573838DC35,
        0x1EF46A8D372C9605,
    ]


def test_fox_signature() -> None:
    signature = PROCEDURE.sign_text("Fox")

    assert signature is not None
    assert signature.tolist() == [0x2970, 0xD6DB, 0x65F8, 0xADFC]


def test_fox_band_keys() -> None:
    assert band_keys("Fox") == [0x003CF6E803312ECA, 0x017C5504FBC83F36]


@pytest.mark.parametrize("text", ["", " \n", None])
def test_a_text_without_tokens_has_no_signature(text: str | None) -> None:
    assert PROCEDURE.sign_text(text) is None
    has_signature, signatures = PROCEDURE.sign(pa.array([text], pa.string()))
    assert has_signature.tolist() == [False]
    assert signatures.shape == (0, 4)
