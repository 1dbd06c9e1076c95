"""`datafusion-lance inspect`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import lance
import pytest

from .command import Command


@pytest.fixture
def indexed(command: Command) -> Command:
    command.succeed("create-index", command.images, "tags")
    command.succeed("create-index", command.images, "detections", "-k", "label", "-k", "confidence")
    return command


def file(images: Path, name: str) -> Path:
    (path,) = images.glob(f"_indices/*/{name}")
    return path


def test_entries_have_their_keys_decoded(indexed: Command) -> None:
    path = file(indexed.images, "page_data.lance")

    result = indexed.succeed("inspect", path, "--rows", 2)

    assert result.lines == [
        f"path: {path}",
        f"table: {indexed.images}, version 3",
        "index: detections_idx, built over version 2",
        "fragments: 0, 1",
        "file: entries of a list element index",
        "entries: 6",
        "keys: label: string, confidence: double",
        "+-------+-----------+-------+------------+----------+--------+",
        "| entry | null_list | label | confidence | fragment | offset |",
        "+-------+-----------+-------+------------+----------+--------+",
        "|     0 | true      | NULL  |       NULL |        1 |      0 |",
        "|     1 | false     | NULL  |       NULL |        1 |      1 |",
        "+-------+-----------+-------+------------+----------+--------+",
    ]


def test_rows_from_a_place_on(indexed: Command) -> None:
    path = file(indexed.images, "page_data.lance")

    result = indexed.succeed("inspect", path, "--start", 4, "--rows", 9, "--format", "json")

    assert [(row["entry"], row["label"]) for row in json.loads(result.out)] == [
        (4, "dog"),
        (5, "dog"),
    ]
    assert json.loads(indexed.succeed("inspect", path, "--start", 6, "--format", "json").out) == []


def test_the_page_table(indexed: Command) -> None:
    path = file(indexed.images, "page_lookup.lance")

    (row,) = json.loads(indexed.succeed("inspect", path, "--format", "json").out)

    assert row == {
        "page": 0,
        "min label": None,
        "min confidence": None,
        "max label": "dog",
        "max confidence": 0.4,
        "null_count": 1,
    }


def test_postings(indexed: Command) -> None:
    path = file(indexed.images, "bitmap_page_lookup.lance")

    result = indexed.succeed("inspect", path)
    assert "rows with a NULL list: 1" in result.lines
    rows = json.loads(indexed.succeed("inspect", path, "--format", "json").out)

    assert [(row["label"], row["rows"], row["fragments"]) for row in rows] == [
        (None, 1, 1),
        ("day", 1, 1),
        ("night", 2, 2),
        ("rain", 2, 2),
    ]


def test_a_file_outside_of_its_table_has_bytes(indexed: Command, tmp_path: Path) -> None:
    path = shutil.copy(file(indexed.images, "page_data.lance"), tmp_path)

    rows = json.loads(indexed.succeed("inspect", path, "--format", "json").out)

    assert rows[0]["value"] is None
    assert rows[2]["value"].startswith("02636172")


def test_a_btree_of_lances_own(indexed: Command) -> None:
    for name in ("detections_idx", "tags_idx"):
        indexed.succeed("drop-index", indexed.images, name)
    shutil.rmtree(indexed.images / "_indices")
    lance.dataset(indexed.images).create_scalar_index("id", "BTREE")

    rows = json.loads(
        indexed.succeed("inspect", file(indexed.images, "page_data.lance"), "--format", "json").out
    )

    assert [row["value"] for row in rows] == list(range(6))


def test_errors(indexed: Command, tmp_path: Path) -> None:
    assert "path: got 'x.lance', takes a file of an index" in indexed("inspect", "x.lance").err
    assert indexed("inspect", tmp_path / "page_data.lance").code == 1
    path = file(indexed.images, "page_data.lance")
    assert "start: got -1" in indexed("inspect", path, "--start", -1).err
    path.write_bytes(path.read_bytes()[:-20])
    result = indexed("inspect", path)
    assert result.code == 1
    assert result.err.startswith(f"error: corrupt index file {path}")
