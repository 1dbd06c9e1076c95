"""The settings of a tokenizer in the words of a user who creates an index.

Lance ignores what it does not know and records some values as others, so that an index would
not be what was asked for: this finds out before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, Final

from ..errors import InvalidArgumentError
from .tokenizer import CODE, DEFAULT_TOKENIZER, SIMPLE, CodeTokenizerConfig, Tokenizer

_LARGEST: Final = 2**32 - 1


def tokenizer_of(settings: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer that Lance builds from the settings, but for those that shape no tokens.

    `max_token_length` may be None, for no limit. (Elsewhere None would give the default of a
    full text search index, which is another one.)

    Raises InvalidArgumentError for an unknown setting, for a value that a setting does not
    take, and for a tokenizer that the details of an index cannot identify.
    """
    if not isinstance(settings, Mapping):
        raise InvalidArgumentError("tokenizer", settings, "a mapping of settings to values")
    for name, value in settings.items():
        _check(name, value)
    given: dict[str, Any] = dict(settings)
    analyzer = given.get("analyzer")
    base = given.get("base_tokenizer", CODE if analyzer == CODE else SIMPLE)
    if analyzer is not None and (analyzer == CODE) != (base == CODE):
        takes = f"{CODE!r} with the base_tokenizer {CODE!r}, 'text' with the others"
        raise InvalidArgumentError("tokenizer['analyzer']", analyzer, takes)
    code: dict[str, Any] = {name: given[name] for name in _CODE_FIELDS if name in given}
    if base != CODE and code:
        name, value = next(iter(code.items()))
        takes = f"a value only with the base_tokenizer {CODE!r}"
        raise InvalidArgumentError(f"tokenizer[{name!r}]", value, takes)
    shaping: dict[str, Any] = {name: given[name] for name in _TOKENIZER_FIELDS if name in given}
    made = replace(
        DEFAULT_TOKENIZER,
        base_tokenizer=base,
        code_config=CodeTokenizerConfig(**code) if base == CODE else None,
        **shaping,
    )
    if made.refused is not None:
        takes = f"settings that Lance takes and an index can record: {made.refused}"
        raise InvalidArgumentError("tokenizer", settings, takes)
    return made


def _check(name: str, value: object) -> None:
    argument = f"tokenizer[{name!r}]"
    if name in _UNRECORDED:
        raise InvalidArgumentError(argument, value, "nothing: an index's details cannot record it")
    if name not in _CHECKS:
        raise InvalidArgumentError("tokenizer", name, f"the settings {', '.join(_CHECKS)}")
    if value is not None or name != "max_token_length":
        _CHECKS[name](argument, value)


def _text(argument: str, value: object) -> None:
    if not isinstance(value, str):
        raise InvalidArgumentError(argument, value, "a text")


def _boolean(argument: str, value: object) -> None:
    if not isinstance(value, bool):
        raise InvalidArgumentError(argument, value, "True or False")


def _number(argument: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LARGEST:
        raise InvalidArgumentError(argument, value, f"a number from 0 to {_LARGEST}")


def _one_of(*choices: object) -> Callable[[str, object], None]:
    def check(argument: str, value: object) -> None:
        if isinstance(value, bool) or value not in choices:
            shown = " or ".join(repr(choice) for choice in choices)
            raise InvalidArgumentError(argument, value, shown)

    return check


_UNRECORDED: Final = frozenset({"custom_stop_words", "lance_tokenizer"})

_CHECKS: Final[Mapping[str, Callable[[str, object], None]]] = {
    "analyzer": _one_of("text", CODE),
    "base_tokenizer": _text,
    "language": _text,
    "max_token_length": _number,
    "lower_case": _boolean,
    "stem": _boolean,
    "remove_stop_words": _boolean,
    "ascii_folding": _boolean,
    "min_ngram_length": _number,
    "max_ngram_length": _number,
    "prefix_only": _boolean,
    "split_identifiers": _boolean,
    "split_on_numerics": _boolean,
    "preserve_original": _boolean,
    "index_operators": _boolean,
    "with_position": _boolean,
    "block_size": _one_of(128, 256),
    "document_granularity": _one_of("row", "list_element"),
}

_CODE_FIELDS: Final = tuple(field.name for field in fields(CodeTokenizerConfig))
_TOKENIZER_FIELDS: Final = (
    "language",
    "max_token_length",
    "lower_case",
    "stem",
    "remove_stop_words",
    "ascii_folding",
    "min_ngram_length",
    "max_ngram_length",
    "prefix_only",
)
