"""Builds a MinHash LSH index, through pylance."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from uuid import uuid4

import lance
import pyarrow as pa
from lance.indices import IndexConfig

from ..conflicts import FASTER, with_retries
from ..errors import InvalidArgumentError
from ..fragment_choice import chosen_fragments
from ..index_names import chosen_name, replaced
from ..leftovers import mark
from ..manifest import own_files, read_manifest
from ..segment_commit import BuiltSegment, built_by_pylance, commit, removed_on_error
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

    Where another writer compacts the table or creates an index of the same name meanwhile, the
    build begins again from the new version, up to three times.

    Raises `InvalidArgumentError` for a parameter out of its range, a tokenizer setting that
    Lance ignores, refuses or cannot record, a column that is not there or holds no text, and
    for a name in use without `replace`, and `LanceIndexError` where other writers were faster
    every time. Whatever else pylance raises (a failed write) comes through.
    """
    if name is not None and not isinstance(name, str):
        raise InvalidArgumentError("name", name, "a name, or None for the column's name and _idx")

    def attempt() -> None:
        config = _config(dataset, column, num_hashes, num_bands, shingle_size, tokenizer)
        manifest = read_manifest(dataset)
        chosen = chosen_name(manifest, column, name, replace)
        if not manifest.fragments:
            # There is nothing that pylance would build apart.
            dataset.create_scalar_index(column, config, name=chosen, replace=replace)
            return
        with removed_on_error(dataset) as written:
            segment = build_minhash_segment(
                dataset,
                column,
                num_hashes=num_hashes,
                num_bands=num_bands,
                shingle_size=shingle_size,
                tokenizer=tokenizer,
            )
            written.append(segment.uuid)
            commit(dataset, chosen, (segment,), replaced(manifest, chosen))

    with_retries(dataset, attempt, f"the index on {column!r} was not created: {FASTER}")


def build_minhash_segment(
    dataset: lance.LanceDataset,
    column: str,
    *,
    fragment_ids: Collection[int] | None = None,
    num_hashes: int = NUM_HASHES,
    num_bands: int = NUM_BANDS,
    shingle_size: int = SHINGLE_SIZE,
    tokenizer: Mapping[str, Any] | None = None,
) -> BuiltSegment:
    """Write the files of one segment over some fragments, or all, without committing it.

    It is marked as being built by this process until it is committed. Raises
    `InvalidArgumentError` as `create_minhash_lsh` does, and for fragments that are not in the
    table; after any failure the files are removed again.
    """
    config = _config(dataset, column, num_hashes, num_bands, shingle_size, tokenizer)
    chosen = chosen_fragments(dataset, fragment_ids)
    uuid = str(uuid4())
    with removed_on_error(dataset, uuid):
        mark(own_files(dataset), uuid)
        return built_by_pylance(
            dataset.create_index_uncommitted(
                column,
                config,
                # Not that of the index, which pylance would not have twice.
                name=uuid,
                fragment_ids=[fragment.fragment_id for fragment in chosen],
                index_uuid=uuid,
            )
        )


def _config(
    dataset: lance.LanceDataset,
    column: str,
    num_hashes: int,
    num_bands: int,
    shingle_size: int,
    tokenizer: Mapping[str, Any] | None,
) -> IndexConfig:
    """The parameters for pylance; `InvalidArgumentError` where they do not fit the column."""
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
    parameters: dict[str, Any] = {
        "num_hashes": num_hashes,
        "num_bands": num_bands,
        "shingle_size": shingle_size,
    }
    if tokenizer is not None:
        parameters["tokenizer"] = dict(tokenizer)
    return IndexConfig("minhashlsh", parameters=parameters)
