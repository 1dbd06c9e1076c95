"""Settings in a user's words: what is accepted is what pylance records, the rest is refused."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from datafusion_lance.indexes.errors import InvalidArgumentError
from datafusion_lance.indexes.minhash_lsh.details import parameters_of
from datafusion_lance.indexes.minhash_lsh.tokenizer import DEFAULT_TOKENIZER, Tokenizer
from datafusion_lance.indexes.minhash_lsh.tokenizer_settings import tokenizer_of

from .stored import index_of, indexed
from .test_signature import tokenizers


def recorded(settings: dict[str, Any]) -> Tokenizer:
    """What pylance makes of the settings."""
    with tempfile.TemporaryDirectory() as folder:
        dataset = indexed(Path(folder) / "t.lance", ["a text"], tokenizer=settings)
        return parameters_of(index_of(dataset)).tokenizer


@settings(max_examples=60)
@given(tokenizers)
def test_pylance_records_what_was_meant(settings: dict[str, Any]) -> None:
    assert tokenizer_of(settings).shapes == recorded(settings).shapes


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"analyzer": "text"},
        {"analyzer": "code", "index_operators": True},
        {"max_token_length": None},
        {"max_token_length": 2**32 - 1},
        {"with_position": True, "block_size": 256, "document_granularity": "list_element"},
    ],
)
def test_settings_that_are_taken(given: dict[str, Any]) -> None:
    assert tokenizer_of(given).shapes == recorded(given).shapes


def test_no_settings_are_the_default() -> None:
    assert tokenizer_of({}) == DEFAULT_TOKENIZER


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"custom_stop_words": ["a"]}, "cannot record it"),
        ({"custom_stop_words": None}, "cannot record it"),
        ({"lance_tokenizer": "json"}, "cannot record it"),
        ({"stemm": True}, "tokenizer: got 'stemm', takes the settings analyzer, base_tokenizer"),
        ({"json_tokenizer_mode": "flat"}, "tokenizer: got 'json_tokenizer_mode'"),
        # pylance would take None for TRUE here, FALSE being its default.
        ({"stem": None}, r"tokenizer\['stem'\]: got None, takes True or False"),
        ({"base_tokenizer": None}, r"tokenizer\['base_tokenizer'\]: got None, takes a text"),
        ({"stem": "yes"}, r"tokenizer\['stem'\]: got 'yes', takes True or False"),
        ({"language": 5}, r"tokenizer\['language'\]: got 5, takes a text"),
        ({"language": "german"}, "unknown variant `german`"),
        ({"base_tokenizer": "soundex"}, "unknown base tokenizer soundex"),
        ({"base_tokenizer": "jieba/default"}, "loads a dictionary from outside Lance"),
        ({"base_tokenizer": "lindera/ipadic"}, "loads a dictionary from outside Lance"),
        ({"analyzer": "code", "base_tokenizer": "icu"}, "'code'"),
        ({"analyzer": "text", "base_tokenizer": "code"}, "'code'"),
        ({"max_token_length": -1}, "got -1, takes a number from 0 to 4294967295"),
        # pylance signs with 2^32 + 5 and records 5.
        ({"max_token_length": 2**32 + 5}, "got 4294967301, takes a number from 0 to"),
        ({"max_token_length": True}, "got True, takes a number"),
        ({"base_tokenizer": "ngram", "min_ngram_length": 4}, "min_gram must not be greater"),
        ({"base_tokenizer": "ngram", "min_ngram_length": 0}, "min_gram must be greater than 0"),
        ({"index_operators": True}, "takes a value only with the base_tokenizer 'code'"),
        ({"block_size": 100}, "got 100, takes 128 or 256"),
        ({"document_granularity": "word"}, "got 'word', takes 'row' or 'list_element'"),
        ("simple", "tokenizer: got 'simple', takes a mapping of settings to values"),
    ],
)
def test_settings_that_are_refused(settings: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        tokenizer_of(settings)
