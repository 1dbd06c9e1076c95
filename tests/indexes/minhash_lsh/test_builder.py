"""Building through pylance, with the arguments checked before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from datafusion_lance.indexes.errors import InvalidArgumentError
from datafusion_lance.indexes.minhash_lsh.builder import create_minhash_lsh
from datafusion_lance.indexes.minhash_lsh.details import parameters_of
from datafusion_lance.indexes.minhash_lsh.parameters import MinHashParameters
from datafusion_lance.indexes.minhash_lsh.tokenizer import Tokenizer

from .stored import index_of


@pytest.fixture
def dataset(tmp_path: Path) -> lance.LanceDataset:
    table = pa.table(
        {
            "id": [1, 2],
            "text": ["the quick brown fox", None],
            "large": pa.array(["some text", ""], pa.large_string()),
            "bytes": [b"a", b"b"],
            "word": pa.array(["a", "b"]).dictionary_encode(),
        }
    )
    return lance.write_dataset(table, tmp_path / "table.lance")


@pytest.mark.parametrize("column", ["text", "large"])
def test_it_builds_with_lance_s_defaults(dataset: lance.LanceDataset, column: str) -> None:
    create_minhash_lsh(dataset, column)

    index = index_of(dataset)
    assert index.name == f"{column}_idx"
    assert parameters_of(index) == MinHashParameters()


def test_it_passes_every_parameter(dataset: lance.LanceDataset) -> None:
    create_minhash_lsh(
        dataset,
        "text",
        "near",
        num_hashes=60,
        num_bands=10,
        shingle_size=2,
        tokenizer={"base_tokenizer": "icu", "stem": True, "max_token_length": None},
    )

    index = index_of(dataset)
    assert index.name == "near"
    tokenizer = Tokenizer(base_tokenizer="icu", stem=True, max_token_length=None)
    assert parameters_of(index) == MinHashParameters(60, 10, 2, tokenizer)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"column": "text", "num_hashes": 100},
            "num_hashes: got 100, takes a multiple of num_bands, which is 16",
        ),
        (
            {"column": "text", "num_hashes": 8192},
            "num_hashes: got 8192, takes a number from 1 to 4096",
        ),
        ({"column": "text", "num_bands": 0}, "num_bands: got 0, takes a number from 1 to 256"),
        ({"column": "text", "shingle_size": 0}, "shingle_size: got 0, takes a number from 1"),
        ({"column": "text", "tokenizer": {"custom_stop_words": ["a"]}}, "custom_stop_words"),
        ({"column": "text", "tokenizer": {"base": "icu"}}, "tokenizer: got 'base'"),
        ({"column": "nope"}, "column: got 'nope', takes a column of the table: id, text"),
        ({"column": "id"}, "column: got 'id: int64', takes a column of texts"),
        ({"column": "bytes"}, "column: got 'bytes: binary', takes a column of texts"),
        ({"column": "word"}, "column: got 'word: dictionary.*', takes a column of texts"),
        ({"column": "text", "name": ""}, "name: got ''"),
        ({"column": "text", "name": 5}, "name: got 5"),
    ],
)
def test_arguments_that_it_does_not_take(
    dataset: lance.LanceDataset, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        create_minhash_lsh(dataset, **arguments)
    assert dataset.describe_indices() == []


def test_a_name_is_taken_once(dataset: lance.LanceDataset) -> None:
    create_minhash_lsh(dataset, "text")

    with pytest.raises(InvalidArgumentError, match="name: got 'text_idx', takes a name that no"):
        create_minhash_lsh(dataset, "text")
    create_minhash_lsh(dataset, "text", num_hashes=64, replace=True)

    assert parameters_of(index_of(dataset)) == MinHashParameters(num_hashes=64)
