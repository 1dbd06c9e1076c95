"""Builds a MinHash LSH index, through pylance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import lance
import pyarrow as pa
from lance.indices import IndexConfig

from ..errors import InvalidArgumentError
from ..manifest import read_manifest
from .parameters import NUM_BANDS, NUM_HASHES, SHINGLE_SIZE, MinHashParameters
from .tokenizer import DEFAULT_TOKENIZER
from .tokenizer_settings import tokenizer_of


def create_minhash_lsh(
    dataset: lance.LanceDataset,
    column: str,
    name: str | None = None,
    replace: bool = False,
    *,
    num_hashes: int = NUM_HASHES,
    num_bands: int = NUM_BANDS,
    shingle_size: int = SHINGLE_SIZE,
    tokenizer: Mapping[str, Any] | None = None,
) -> None:
    """Index the near duplicates of a text column; `dataset` is at the new version afterwards.

    `num_hashes` is from 1 to 4096 and a multiple of `num_bands`, which is from 1 to 256;
    `shingle_size` is the number of tokens in a shingle. `tokenizer` has Lance's settings, such
    as `{"base_tokenizer": "icu"}`, which like `ngram` also finds the words of Chinese, Japanese
    and Korean texts.

    A text whose true Jaccard similarity to the query is J becomes a candidate with the
    probability 1 - (1 - J^r)^b, b being num_bands and r = num_hashes / num_bands, as
    `parameters.candidate_probability` computes it. With the defaults, 16 bands of 8 values:

    ======  ===========
    J       probability
    ======  ===========
    0.5           0.061
    0.6           0.237
    0.7           0.613
    0.8           0.947
    0.9           1.000
    ======  ===========

    Bands of fewer than six values let in a noticeable share of unrelated rows where a table has
    billions of them (section Index Details).

    Raises `InvalidArgumentError` for a parameter out of its range, a tokenizer setting that
    Lance ignores, refuses or cannot record, a column that is not there or holds no text, and
    for a name in use without `replace`. Whatever else pylance raises (a failed write, a lost
    race) comes through.
    """
    MinHashParameters(
        num_hashes,
        num_bands,
        shingle_size,
        DEFAULT_TOKENIZER if tokenizer is None else tokenizer_of(tokenizer),
    )
    if column not in dataset.schema.names:
        known = ", ".join(dataset.schema.names)
        raise InvalidArgumentError("column", column, f"a column of the table: {known}")
    kind = dataset.schema.field(column).type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise InvalidArgumentError("column", f"{column}: {kind}", "a column of texts")
    if name is not None and (not isinstance(name, str) or not name):
        raise InvalidArgumentError("name", name, "a name, or None for Lance's own choice")
    if not replace:
        taken = name if name is not None else f"{column}_idx"
        if any(index.name == taken for index in read_manifest(dataset).indexes):
            raise InvalidArgumentError(
                "name", taken, "a name that no index has yet, or replace=True"
            )
    parameters: dict[str, Any] = {
        "num_hashes": num_hashes,
        "num_bands": num_bands,
        "shingle_size": shingle_size,
    }
    if tokenizer is not None:
        parameters["tokenizer"] = dict(tokenizer)
    dataset.create_scalar_index(
        column, IndexConfig("minhashlsh", parameters=parameters), name=name, replace=replace
    )
