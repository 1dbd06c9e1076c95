"""The specification's section Index Details."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from datafusion_lance.indexes.errors import UnsupportedVersionError, UnusableIndexError
from datafusion_lance.indexes.manifest import IndexSegment, LanceIndex
from datafusion_lance.indexes.message_set import MessageSet
from datafusion_lance.indexes.minhash_lsh.details import (
    KIND,
    TYPE_URL,
    MinHashDetails,
    decode_details,
    parameters_of,
)
from datafusion_lance.indexes.minhash_lsh.parameters import MinHashParameters
from datafusion_lance.indexes.minhash_lsh.tokenizer import (
    DEFAULT_TOKENIZER,
    CodeTokenizerConfig,
    Tokenizer,
)

from .stored import index_of, indexed

PARAMETERS = MinHashParameters(64, 8, 2)
DETAILS = MinHashDetails(PARAMETERS)

# The part of the message that the following tests damage, on its own.
_RAW = MessageSet(
    "test.minhash_lsh",
    {
        "Details": {
            "num_hashes": (1, "uint32"),
            "num_bands": (2, "uint32"),
            "shingle_size": (3, "uint32"),
            "tokenizer": (4, "Tokenizer"),
            "signature_version": (5, "uint32"),
            "new": (6, "uint32"),
        },
        "Tokenizer": {
            "base_tokenizer": (1, "string?"),
            "language": (2, "string"),
            "code_config": (13, "Code"),
            "new": (18, "bool"),
        },
        "Code": {"new": (5, "bool")},
    },
)
TOKENIZER = {"base_tokenizer": "simple", "language": '"English"'}


def raw(**changes: Any) -> bytes:
    fields = {"num_hashes": 64, "num_bands": 8, "shingle_size": 2, "tokenizer": TOKENIZER}
    return _RAW.serialize("Details", **(fields | changes))


def index(*details: bytes | MinHashDetails, **changes: Any) -> LanceIndex:
    segments = tuple(
        replace(
            IndexSegment(
                uuid=str(number),
                name="text_idx",
                field_ids=(1,),
                dataset_version=1,
                fragment_ids=frozenset((number,)),
                details_type_url=TYPE_URL,
                details=one if isinstance(one, bytes) else one.encode(),
                index_version=0,
                created_at=None,
                base_id=None,
                files=(),
            ),
            **changes,
        )
        for number, one in enumerate(details)
    )
    return LanceIndex("text_idx", KIND, segments[0].field_ids, segments)


def refused(index: LanceIndex) -> UnusableIndexError:
    with pytest.raises(UnusableIndexError) as error:
        parameters_of(index)
    return error.value


def test_what_pylance_records_by_default(tmp_path: Path) -> None:
    made = index_of(indexed(tmp_path / "t.lance", ["some text"]))

    (segment,) = made.segments
    assert made.kind == KIND
    assert segment.details_type_url == TYPE_URL
    assert parameters_of(made) == MinHashParameters()
    assert decode_details(segment.details) == MinHashDetails(MinHashParameters())


def test_every_setting_is_read(tmp_path: Path) -> None:
    made = index_of(
        indexed(
            tmp_path / "t.lance",
            ["some text"],
            num_hashes=12,
            num_bands=4,
            shingle_size=7,
            tokenizer={
                "base_tokenizer": "code",
                "language": "German",
                "max_token_length": None,
                "lower_case": False,
                "stem": True,
                "remove_stop_words": True,
                "ascii_folding": False,
                "min_ngram_length": 2,
                "max_ngram_length": 5,
                "prefix_only": True,
                "split_identifiers": True,
                "split_on_numerics": False,
                "preserve_original": False,
                "index_operators": True,
                "with_position": True,
                "block_size": 256,
                "document_granularity": "list_element",
            },
        )
    )

    assert parameters_of(made) == MinHashParameters(
        12,
        4,
        7,
        Tokenizer(
            base_tokenizer="code",
            language="German",
            max_token_length=None,
            lower_case=False,
            stem=True,
            remove_stop_words=True,
            ascii_folding=False,
            min_ngram_length=2,
            max_ngram_length=5,
            prefix_only=True,
            code_config=CodeTokenizerConfig(True, False, False, True),
            with_position=True,
            block_size=256,
            document_granularity=1,
            posting_format_version=3,
        ),
    )


@pytest.mark.parametrize(
    "tokenizer",
    [
        DEFAULT_TOKENIZER,
        Tokenizer(base_tokenizer=None, max_token_length=None, block_size=None),
        Tokenizer(max_token_length=0, posting_format_version=0, block_size=0),
        Tokenizer(code_config=CodeTokenizerConfig()),
        Tokenizer(code_config=CodeTokenizerConfig(True, False, True, True)),
        Tokenizer(json_tokenizer_mode="", disable_cross_array_unnest=True, language='"'),
    ],
)
def test_details_come_back_as_they_were(tokenizer: Tokenizer) -> None:
    details = MinHashDetails(MinHashParameters(8, 4, 1, tokenizer), signature_version=3)

    assert decode_details(details.encode()) == details


def test_absent_settings_are_lance_s_defaults() -> None:
    tokenizer = decode_details(raw(tokenizer={"language": '"English"'})).parameters.tokenizer

    assert tokenizer.base_tokenizer is None
    assert dict(tokenizer.shapes)["base_tokenizer"] == "simple"
    assert tokenizer.max_token_length is None


@pytest.mark.parametrize(
    ("data", "check"),
    [
        (b"\xff\xff", "no MinHashLshIndexDetails message"),
        (b"", "tokenizer: it is missing"),
        (raw(tokenizer=None), "tokenizer: it is missing"),
        (raw(num_hashes=0), "num_hashes: got 0, takes a number from 1 to 4096"),
        (raw(num_hashes=4104), "num_hashes: got 4104, takes a number from 1 to 4096"),
        (raw(num_hashes=60), "num_hashes: got 60, takes a multiple of num_bands, which is 8"),
        (raw(num_bands=0), "num_bands: got 0, takes a number from 1 to 256"),
        (raw(num_bands=512, num_hashes=512), "num_bands: got 512, takes a number from 1 to 256"),
        (raw(shingle_size=0), "shingle_size: got 0, takes a number from 1"),
        (raw(tokenizer={"language": ""}), "language: got '', takes a text in JSON"),
        (raw(tokenizer={"language": "English"}), "language: got 'English', takes a text in JSON"),
        (raw(tokenizer={"language": "[]"}), r"language: got '\[\]', takes a text in JSON"),
    ],
)
def test_damaged_details_name_the_check(data: bytes, check: str) -> None:
    with pytest.raises(ValueError, match=check):
        decode_details(data)
    assert refused(index(data)).reason.startswith("its details are damaged: ")


@pytest.mark.parametrize(
    ("base", "reason"),
    [
        ("jieba/default", "the tokenizer jieba/default loads a dictionary from outside Lance"),
        ("lindera/ipadic", "the tokenizer lindera/ipadic loads a dictionary from outside Lance"),
        ("jieba", "the tokenizer jieba loads a dictionary from outside Lance"),
        ("soundex", "unknown base tokenizer soundex"),
    ],
)
def test_tokenizers_that_are_refused(base: str, reason: str) -> None:
    error = refused(index(raw(tokenizer=TOKENIZER | {"base_tokenizer": base})))
    assert reason in error.reason


def test_a_language_that_lance_does_not_know_is_refused() -> None:
    error = refused(index(raw(tokenizer={"language": '"Elvish"'})))
    assert "Elvish" in error.reason


def test_a_tokenizer_of_documents_is_refused() -> None:
    tokenizer = Tokenizer(json_tokenizer_mode="flat")
    error = refused(index(MinHashDetails(MinHashParameters(tokenizer=tokenizer))))
    assert error.reason == "the tokenizer extracts texts from documents"


def test_an_unknown_signature_version_is_refused() -> None:
    error = refused(index(replace(DETAILS, signature_version=1)))
    assert isinstance(error, UnsupportedVersionError)
    assert error.reason == "its signature version is 1, and only 0 is implemented"


def test_a_newer_version_of_the_files_is_refused() -> None:
    error = refused(index(DETAILS, index_version=1))
    assert isinstance(error, UnsupportedVersionError)
    assert error.reason == "its version is 1, and 0 is the newest that is read"


@pytest.mark.parametrize(
    ("data", "number"),
    [
        (raw(new=1), 6),
        (raw(tokenizer=TOKENIZER | {"new": True}), 18),
        (raw(tokenizer=TOKENIZER | {"code_config": {"new": True}}), 5),
    ],
)
def test_settings_that_are_not_known_are_refused(data: bytes, number: int) -> None:
    assert decode_details(data).unknown_fields == (number,)
    assert refused(index(data)).reason == f"its details have unknown fields: {number}"


@pytest.mark.parametrize(
    "other",
    [
        MinHashDetails(replace(PARAMETERS, num_bands=4)),
        MinHashDetails(replace(PARAMETERS, shingle_size=3)),
        MinHashDetails(replace(PARAMETERS, tokenizer=Tokenizer(with_position=True))),
        replace(DETAILS, signature_version=1),
    ],
)
def test_segments_whose_details_differ_are_refused(other: MinHashDetails) -> None:
    assert refused(index(DETAILS, other)).reason == "the details of its segments differ"


def test_segments_with_the_same_details_go_together() -> None:
    assert parameters_of(index(DETAILS, DETAILS, DETAILS)) == PARAMETERS


def test_segments_on_different_columns_are_refused() -> None:
    both = index(DETAILS, DETAILS)
    other = replace(both.segments[1], field_ids=(0,))
    error = refused(replace(both, segments=(both.segments[0], other)))
    assert error.reason == "its segments are not on one and the same column"


def test_an_index_on_several_fields_is_refused() -> None:
    assert refused(index(DETAILS, field_ids=(1, 2))).reason == "it is on 2 fields, not on one"
