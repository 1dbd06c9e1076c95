"""`datafusion-lance indexes`, `create-index` and `drop-index`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from ..engine.indexed_images import append_images
from .command import Command


def listed(command: Command) -> list[dict[str, Any]]:
    return json.loads(command.succeed("indexes", command.images, "--format", "json").out)


def test_an_index_comes_and_goes(command: Command) -> None:
    assert listed(command) == []

    command.succeed("create-index", command.images, "tags")
    command.succeed("create-index", command.images, "detections", "-k", "label", "-k", "confidence")
    command.succeed("create-index", command.images, "tags", "--name", "other")

    assert [(row["name"], row["kind"], row["keys"]) for row in listed(command)] == [
        ("tags_idx", "LabelList", []),
        ("detections_idx", "ListElement", ["label", "confidence"]),
        ("other", "LabelList", []),
    ]
    command.succeed("drop-index", command.images, "detections_idx")
    command.succeed("drop-index", command.images, "detections_idx", "--if-exists")
    assert [row["name"] for row in listed(command)] == ["tags_idx", "other"]


def test_an_index_is_replaced_when_asked(command: Command) -> None:
    command.succeed("create-index", command.images, "detections", "-k", "label")
    again = ("create-index", command.images, "detections", "-k", "confidence")

    assert "name: got 'detections_idx'" in command(*again).err
    command.succeed(*again, "--replace", "--sort-memory", 64)

    assert [row["keys"] for row in listed(command)] == [["confidence"]]


def test_indexes_are_brought_up_to_date(command: Command) -> None:
    command.succeed("create-index", command.images, "tags")
    command.succeed("create-index", command.images, "detections", "-k", "label")
    append_images(command.images)
    uncovered = [row["uncovered_rows"] for row in listed(command)]

    command.succeed("optimize", command.images, "tags_idx")
    command.succeed("optimize", command.images)

    assert uncovered == [6, 6]
    assert [row["uncovered_rows"] for row in listed(command)] == [0, 0]
    assert "name: got 'nope'" in command("optimize", command.images, "nope").err


def test_a_check_tells_by_its_exit_code(command: Command) -> None:
    command.succeed("create-index", command.images, "tags")
    command.succeed("create-index", command.images, "detections", "-k", "label")

    assert command.succeed("check", command.images).lines == [
        "tags_idx (LabelList): 6 rows, 7 entries: sound",
        "detections_idx (ListElement): 6 rows, 6 entries: sound",
    ]
    (file,) = command.images.glob("_indices/*/page_data.lance")
    file.write_bytes(file.read_bytes()[:-8])
    result = command("check", command.images)
    assert (result.code, result.err) == (1, "")
    assert "detections_idx (ListElement): 0 rows, 0 entries: NOT SOUND" in result.lines
    assert command("check", command.images, "tags_idx").code == 0
    assert "name: got 'nope'" in command("check", command.images, "nope").err


def test_a_minhash_index(command: Command, tmp_path: Path) -> None:
    docs = tmp_path / "docs.lance"
    texts = ["the quick brown fox jumps", "the quick brown fox jumps over", None]
    lance.write_dataset(pa.table({"text": texts}), docs)

    command.succeed(
        *("create-index", docs, "text", "--kind", "minhash-lsh", "--num-bands", 8),
        *("--num-hashes", 32, "--tokenizer", "base_tokenizer=icu", "--tokenizer", "stem=true"),
    )

    (row,) = json.loads(command.succeed("indexes", docs, "--format", "json").out)
    assert row["parameters"] == {
        "num_hashes": "32",
        "num_bands": "8",
        "shingle_size": "3",
        "tokenizer.base_tokenizer": "icu",
        "tokenizer.stem": "true",
    }
    files = sorted(docs.glob("_indices/*/*"))
    buckets, signatures = (
        json.loads(command.succeed("inspect", file, "--format", "json").out) for file in files
    )
    together = [row for row in buckets if row["documents"] == [0, 1]]
    assert 0 < len(together) <= 8
    assert [len(row["signature"]) for row in signatures] == [32, 32]
    assert signatures[1]["_rowid"] == 1
    assert command.succeed("check", docs).lines == [
        "text_idx (MinHashLsh): 3 rows, 16 entries: sound"
    ]
    files[1].write_bytes(files[1].read_bytes()[:-8])
    assert command("check", docs, "text_idx").code == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["create-index", "{}", "nope"], 1, "column: got 'nope'"),
        (["create-index", "{}", "detections", "-k", "nope"], 1, "keys: got 'nope'"),
        (["create-index", "{}", "detections", "--kind", "list-element"], 1, "keys: got"),
        (
            ["create-index", "{}", "tags", "--kind", "label-list", "-k", "a"],
            2,
            "--key is of no label-list index",
        ),
        (["drop-index", "{}", "nope"], 1, "name: got 'nope'"),
        (["indexes", "nope"], 1, "path_or_dataset: got 'nope'"),
        (["indexes"], 2, "required: path"),
    ],
)
def test_errors(command: Command, arguments: list[str], code: int, message: str) -> None:
    result = command(*(argument.format(command.images) for argument in arguments))

    assert (result.code, result.out) == (code, "")
    assert f"error: {message}" in result.err or (code == 2 and message in result.err)
