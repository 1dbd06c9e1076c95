"""The tokenizer that an index's details name, as Lance itself runs it.

Its settings are those of Lance's InvertedIndexDetails message, in its words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import lance

SIMPLE: Final = "simple"
"""What Lance takes where the details name no base tokenizer."""

CODE: Final = "code"

_DICTIONARIES: Final = ("jieba", "lindera")


@dataclass(frozen=True, slots=True)
class CodeTokenizerConfig:
    """What the tokenizer `code` does with identifiers and operators; None is TRUE by default."""

    split_identifiers: bool = False
    split_on_numerics: bool | None = None
    preserve_original: bool | None = None
    index_operators: bool = False


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """Every setting of an InvertedIndexDetails message; the defaults are what Lance records.

    None is a setting that the message leaves out: no limit for `max_token_length`, Lance's
    default for the others. The settings from `with_position` on shape no tokens and are carried
    unchanged.
    """

    base_tokenizer: str | None = SIMPLE
    language: str = "English"
    max_token_length: int | None = 40
    lower_case: bool = True
    stem: bool = False
    remove_stop_words: bool = False
    ascii_folding: bool = True
    min_ngram_length: int = 3
    max_ngram_length: int = 3
    prefix_only: bool = False
    code_config: CodeTokenizerConfig | None = None
    with_position: bool = False
    block_size: int | None = 128
    document_granularity: int = 0
    posting_format_version: int | None = 2
    json_tokenizer_mode: str | None = None
    disable_cross_array_unnest: bool = False

    @property
    def shapes(self) -> tuple[tuple[str, str | int | None], ...]:
        """The settings that shape tokens, by the names that Lance's `tokenize` gives them.

        Tokenizers with equal ones give equal tokens. Hashable.
        """
        code = self.code_config or CodeTokenizerConfig()
        base = self.base_tokenizer or SIMPLE
        return (
            ("base_tokenizer", base),
            ("language", self.language),
            ("max_token_length", self.max_token_length),
            ("lower_case", self.lower_case),
            ("stem", self.stem),
            ("remove_stop_words", self.remove_stop_words),
            ("ascii_folding", self.ascii_folding),
            ("min_ngram_length", self.min_ngram_length),
            ("max_ngram_length", self.max_ngram_length),
            ("prefix_only", self.prefix_only),
            # Lance refuses these beside another tokenizer.
            ("split_identifiers", code.split_identifiers if base == CODE else None),
            ("split_on_numerics", code.split_on_numerics is not False if base == CODE else None),
            ("preserve_original", code.preserve_original is not False if base == CODE else None),
            ("index_operators", code.index_operators if base == CODE else None),
        )

    @property
    def refused(self) -> str | None:
        """Why no signature can be made with it; None where one can.

        A dictionary lies outside Lance, documents need more than their text, and the rest is
        what Lance's own tokenizers refuse.
        """
        base = self.base_tokenizer or SIMPLE
        if base.split("/")[0] in _DICTIONARIES:
            return f"the tokenizer {base} loads a dictionary from outside Lance"
        if self.json_tokenizer_mode is not None:
            return "the tokenizer extracts texts from documents"
        try:
            token_function(self.shapes)("")
        except ValueError as error:
            return str(error)
        return None


DEFAULT_TOKENIZER: Final = Tokenizer()
"""What Lance records for an index that was given no tokenizer."""


def token_function(
    shapes: tuple[tuple[str, str | int | None], ...],
) -> Callable[[str], list[lance.FtsToken]]:
    """The function from a text to its tokens, for the settings `Tokenizer.shapes`."""
    return partial(lance.tokenize, **dict(shapes))
