"""Index Details: the MinHashLshIndexDetails message, with the InvertedIndexDetails inside."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Final

from ..errors import InvalidArgumentError, UnsupportedVersionError, UnusableIndexError
from ..manifest import LanceIndex
from ..message_set import MessageSet, unknown_fields
from .parameters import MinHashParameters
from .tokenizer import CodeTokenizerConfig, Tokenizer

KIND: Final = "MinHashLsh"
TYPE_URL: Final = "/lance.index.pb.MinHashLshIndexDetails"
SIGNATURE_VERSION: Final = 0
"""The one signature procedure that is implemented."""
NEWEST_VERSION: Final = 0
"""Of the index's files."""

_KEPT_PARAMETERS: Final = 64

# Enumerations are read as their numbers.
_MESSAGES: Final[Mapping[str, Mapping[str, tuple[int, str]]]] = {
    "MinHashLshIndexDetails": {
        "num_hashes": (1, "uint32"),
        "num_bands": (2, "uint32"),
        "shingle_size": (3, "uint32"),
        "tokenizer": (4, "InvertedIndexDetails"),
        "signature_version": (5, "uint32"),
    },
    "InvertedIndexDetails": {
        "base_tokenizer": (1, "string?"),
        "language": (2, "string"),
        "with_position": (3, "bool"),
        "max_token_length": (4, "uint32?"),
        "lower_case": (5, "bool"),
        "stem": (6, "bool"),
        "remove_stop_words": (7, "bool"),
        "ascii_folding": (8, "bool"),
        "min_ngram_length": (9, "uint32"),
        "max_ngram_length": (10, "uint32"),
        "prefix_only": (11, "bool"),
        "block_size": (12, "uint32?"),
        "code_config": (13, "CodeTokenizerConfig"),
        "document_granularity": (14, "uint32"),
        "posting_format_version": (15, "uint32?"),
        "json_tokenizer_mode": (16, "string?"),
        "disable_cross_array_unnest": (17, "bool"),
    },
    "CodeTokenizerConfig": {
        "split_identifiers": (1, "bool"),
        "split_on_numerics": (2, "bool?"),
        "preserve_original": (3, "bool?"),
        "index_operators": (4, "bool"),
    },
}
_SET: Final = MessageSet("datafusion_lance.minhash_lsh", _MESSAGES)


@dataclass(frozen=True, slots=True)
class MinHashDetails:
    """The details of one segment; equal where they are equal field by field.

    `unknown_fields` are the numbers of the fields that this package does not know.
    """

    parameters: MinHashParameters
    signature_version: int = SIGNATURE_VERSION
    unknown_fields: tuple[int, ...] = ()

    def encode(self) -> bytes:
        """The message, without unknown fields; equal details give equal bytes."""
        parameters = self.parameters
        tokenizer = asdict(parameters.tokenizer)
        return _SET.serialize(
            "MinHashLshIndexDetails",
            num_hashes=parameters.num_hashes,
            num_bands=parameters.num_bands,
            shingle_size=parameters.shingle_size,
            tokenizer=tokenizer | {"language": json.dumps(tokenizer["language"])},
            signature_version=self.signature_version,
        )


def decode_details(data: bytes) -> MinHashDetails:
    """The details in a message.

    Raises `ValueError` with the check that fails: no such message, no tokenizer, a parameter
    out of its range. Whether a signature can be made from them is asked in `parameters_of`.
    """
    message = _SET.parse("MinHashLshIndexDetails", data)
    if not message.HasField("tokenizer"):
        raise ValueError("tokenizer: it is missing")
    parameters = MinHashParameters(
        num_hashes=message.num_hashes,
        num_bands=message.num_bands,
        shingle_size=message.shingle_size,
        tokenizer=_tokenizer(message.tokenizer),
    )
    return MinHashDetails(parameters, message.signature_version, unknown_fields(message))


@lru_cache(maxsize=_KEPT_PARAMETERS)
def parameters_of(index: LanceIndex) -> MinHashParameters:
    """The parameters that all segments of an index record; those of a few are kept.

    Raises UnusableIndexError where they differ, are damaged, or name a tokenizer that needs
    more than the details, and UnsupportedVersionError for a newer version of the files or
    another signature procedure.
    """
    name = index.name
    if len(index.field_ids) != 1:
        raise UnusableIndexError(name, f"it is on {len(index.field_ids)} fields, not on one")
    for segment in index.segments:
        if segment.index_version > NEWEST_VERSION:
            raise UnsupportedVersionError(
                name,
                f"its version is {segment.index_version}, and {NEWEST_VERSION} is the newest "
                "that is read",
            )
    try:
        first, *others = (decode_details(segment.details) for segment in index.segments)
    except ValueError as error:
        raise UnusableIndexError(name, f"its details are damaged: {error}") from error
    for segment, details in zip(index.segments[1:], others, strict=True):
        if details != first:
            raise UnusableIndexError(name, "the details of its segments differ")
        if segment.field_ids != index.field_ids:
            raise UnusableIndexError(name, "its segments are not on one and the same column")
    if first.signature_version != SIGNATURE_VERSION:
        raise UnsupportedVersionError(
            name,
            f"its signature version is {first.signature_version}, and only "
            f"{SIGNATURE_VERSION} is implemented",
        )
    if first.unknown_fields:
        # One of them may shape the tokens.
        numbers = ", ".join(map(str, first.unknown_fields))
        raise UnusableIndexError(name, f"its details have unknown fields: {numbers}")
    refused = first.parameters.tokenizer.refused
    if refused is not None:
        raise UnusableIndexError(name, refused)
    return first.parameters


def _tokenizer(message: Any) -> Tokenizer:
    try:
        language = json.loads(message.language)
    except ValueError:
        language = None
    if not isinstance(language, str):
        raise InvalidArgumentError("language", message.language, "a text in JSON")
    code_config = _optional(message, "code_config")
    return Tokenizer(
        base_tokenizer=_optional(message, "base_tokenizer"),
        language=language,
        max_token_length=_optional(message, "max_token_length"),
        lower_case=message.lower_case,
        stem=message.stem,
        remove_stop_words=message.remove_stop_words,
        ascii_folding=message.ascii_folding,
        min_ngram_length=message.min_ngram_length,
        max_ngram_length=message.max_ngram_length,
        prefix_only=message.prefix_only,
        code_config=None if code_config is None else _code_config(code_config),
        with_position=message.with_position,
        block_size=_optional(message, "block_size"),
        document_granularity=message.document_granularity,
        posting_format_version=_optional(message, "posting_format_version"),
        json_tokenizer_mode=_optional(message, "json_tokenizer_mode"),
        disable_cross_array_unnest=message.disable_cross_array_unnest,
    )


def _code_config(message: Any) -> CodeTokenizerConfig:
    return CodeTokenizerConfig(
        split_identifiers=message.split_identifiers,
        split_on_numerics=_optional(message, "split_on_numerics"),
        preserve_original=_optional(message, "preserve_original"),
        index_operators=message.index_operators,
    )


def _optional(message: Any, field: str) -> Any:
    return getattr(message, field) if message.HasField(field) else None
