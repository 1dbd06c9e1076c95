"""The section Signature Generation: equal to what pylance stores, for all that it takes."""

from __future__ import annotations

import resource
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datafusion_lance.indexes.minhash_lsh.details import parameters_of
from datafusion_lance.indexes.minhash_lsh.parameters import MinHashParameters
from datafusion_lance.indexes.minhash_lsh.signature import SignatureProcedure

from .stored import index_of, indexed, stored_band_keys, stored_signatures
from .texts import WORDS, texts

LANGUAGES = (
    *("Arabic", "Danish", "Dutch", "English", "Finnish", "French", "German", "Greek"),
    *("Hungarian", "Italian", "Norwegian", "Portuguese", "Romanian", "Russian"),
    *("Spanish", "Swedish", "Tamil", "Turkish"),
)

_ngram_lengths = st.tuples(st.integers(1, 4), st.integers(0, 4)).map(
    lambda low_and_more: {
        "base_tokenizer": "ngram",
        "min_ngram_length": low_and_more[0],
        "max_ngram_length": sum(low_and_more),
    }
)
_code_settings = st.fixed_dictionaries(
    {"base_tokenizer": st.just("code")},
    optional={
        "split_identifiers": st.booleans(),
        "split_on_numerics": st.booleans(),
        "preserve_original": st.booleans(),
        "index_operators": st.booleans(),
    },
)
_others = st.sampled_from(("simple", "whitespace", "icu", "icu/split", "raw")).map(
    lambda base: {"base_tokenizer": base}
)
_common = st.fixed_dictionaries(
    {},
    optional={
        "language": st.sampled_from(LANGUAGES),
        "max_token_length": st.none() | st.integers(0, 50),
        "lower_case": st.booleans(),
        "stem": st.booleans(),
        "remove_stop_words": st.booleans(),
        "ascii_folding": st.booleans(),
        "prefix_only": st.booleans(),
    },
)
tokenizers = st.builds(
    lambda base, common: base | common, st.one_of(_others, _ngram_lengths, _code_settings), _common
)
bands = st.tuples(st.sampled_from((1, 2, 3, 16, 256)), st.integers(1, 16)).map(
    lambda bands_and_rows: {
        "num_bands": bands_and_rows[0],
        "num_hashes": bands_and_rows[0] * bands_and_rows[1],
    }
)


def check(column: list[str | None], **parameters: Any) -> None:
    """That pylance stores the signatures and band keys of the column that we make."""
    with tempfile.TemporaryDirectory() as folder:
        dataset = indexed(Path(folder) / "t.lance", column, **parameters)
        procedure = SignatureProcedure.of(parameters_of(index_of(dataset)))
        has_signature, signatures = procedure.sign(pa.array(column, pa.string()))
        stored = stored_signatures(dataset)

        assert np.flatnonzero(has_signature).tolist() == sorted(stored)
        for signature, row in zip(signatures, sorted(stored), strict=True):
            assert signature.tolist() == stored[row].tolist()
            alone = procedure.sign_text(column[row])
            assert alone is not None
            assert alone.tolist() == signature.tolist()
        keys = procedure.band_keys(signatures)
        assert sorted(keys.ravel().tolist()) == stored_band_keys(dataset)


@settings(max_examples=100)
@given(st.lists(st.none() | texts, min_size=1, max_size=12), tokenizers, bands, st.integers(1, 5))
def test_pylance_stores_the_same(
    column: list[str | None],
    tokenizer: dict[str, Any],
    bands: dict[str, int],
    shingle_size: int,
) -> None:
    check(column, tokenizer=tokenizer, shingle_size=shingle_size, **bands)


@pytest.mark.parametrize(
    "base", ["simple", "whitespace", "icu", "icu/split", "raw", "ngram", "code"]
)
@pytest.mark.parametrize("options", [{}, {"stem": True, "remove_stop_words": True}])
def test_every_tokenizer_that_pylance_admits(base: str, options: dict[str, bool]) -> None:
    column = [None, "", *WORDS, " ".join(WORDS), " ".join(reversed(WORDS))]

    check(column, tokenizer={"base_tokenizer": base, **options})


@pytest.mark.parametrize(
    ("num_hashes", "num_bands"), [(1, 1), (256, 256), (4096, 1), (4096, 256), (255, 5)]
)
def test_the_range_of_the_parameters(num_hashes: int, num_bands: int) -> None:
    check([" ".join(WORDS), "a", None, "b c d e"], num_hashes=num_hashes, num_bands=num_bands)


def test_a_shingle_may_be_longer_than_any_text() -> None:
    check([" ".join(WORDS), "a b", ""], shingle_size=2**32 - 1)


def test_a_long_text_among_short_ones() -> None:
    """Its shingles are many blocks of permuted hashes and more than a group of tokens."""
    column = ["a b c d", *(f"some {n} words" for n in range(50)), "x", None]
    column.insert(3, " ".join(f"w{n % 97}x{n % 1009}" for n in range(150_000)))

    check(column, num_hashes=64, num_bands=8)


def test_raw_indexes_the_empty_text() -> None:
    check(["", None, "a"], tokenizer={"base_tokenizer": "raw"})
    check(["", None, "a" * 40, "a" * 41], tokenizer={"base_tokenizer": "raw"})


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int32(), pa.string()),
    ],
)
def test_every_type_of_text_in_any_shape(kind: pa.DataType) -> None:
    procedure = SignatureProcedure.of(MinHashParameters())
    values = pa.array(["skip", "one text of some words", None, "", "another text"], pa.string())
    column = values.cast(kind)[1:]
    expected = procedure.sign(values[1:])

    for given_texts in (column, pa.chunked_array([column[:1], column[1:1], column[1:]])):
        has_signature, signatures = procedure.sign(given_texts)
        assert has_signature.tolist() == expected[0].tolist() == [True, False, False, True]
        assert signatures.tolist() == expected[1].tolist()


def test_no_texts() -> None:
    procedure = SignatureProcedure.of(MinHashParameters())
    for given_texts in (pa.array([], pa.string()), pa.chunked_array([], pa.string()), pa.nulls(0)):
        has_signature, signatures = procedure.sign(given_texts)
        assert has_signature.shape == (0,)
        assert signatures.shape == (0, 128)
        assert procedure.band_keys(signatures).shape == (0, 16)


def test_memory_is_bounded_beside_the_result() -> None:
    """Minima of all texts at once would be 650 MB, permuted hashes of one text 6 GB."""
    procedure = SignatureProcedure.of(MinHashParameters(4096, 256))
    long_text = " ".join(str(number) for number in range(200_000))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    has_signature, signatures = procedure.sign(pa.array([long_text] + ["one text"] * 20_000))

    assert has_signature.all()
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    assert grown < signatures.nbytes + 300 * 2**20


def test_threads_share_a_procedure() -> None:
    procedure = SignatureProcedure.of(MinHashParameters())
    column = pa.array([f"text number {n} of many" for n in range(500)])
    expected = procedure.sign(column)[1].tolist()

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: procedure.sign(column)[1].tolist(), range(16)))

    assert all(signatures == expected for signatures in found)
