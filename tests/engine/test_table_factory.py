"""CREATE EXTERNAL TABLE ... STORED AS LANCE."""

from __future__ import annotations

from pathlib import Path

import lance
import pytest
from datafusion import SQLOptions
from datafusion.catalog import Schema

from datafusion_lance.engine import (
    InvalidArgumentError,
    LanceIndexError,
    LanceSessionContext,
    StatementError,
)
from datafusion_lance.engine.registry import find_table

from .indexed_images import CARS, append_images, ids, uses_index, write_images


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return write_images(tmp_path / "images.lance")


def create(session: LanceSessionContext, images: Path, name: str = "images", more: str = "") -> int:
    statement = f"CREATE EXTERNAL TABLE {name} STORED AS LANCE LOCATION '{images}' {more}"
    return session.sql(statement).count()


def test_the_table_is_what_register_lance_makes(images: Path) -> None:
    session = LanceSessionContext()

    assert create(session, images) == 0

    keys = ["label"]
    session.create_lance_index("images", "detections", "LIST_ELEMENT", keys=keys)
    assert uses_index(session, CARS)
    append_images(images)
    assert ids(session, CARS) == [0, 5]
    session.refresh("images")
    assert ids(session, CARS) == [0, 5, 6, 11]


@pytest.mark.parametrize(
    ("name", "read_as"),
    [
        ("Images", "images"),
        ('"Images"', '"Images"'),
        ("public.images", "images"),
        ('other."My.T"', 'datafusion.other."My.T"'),
        ("IF NOT EXISTS images", "images"),
    ],
)
def test_names(images: Path, name: str, read_as: str) -> None:
    session = LanceSessionContext()
    session.catalog().register_schema("other", Schema.memory_schema())

    create(session, images, name)

    table = find_table(session, read_as)
    assert table is not None
    assert table.bare_name == read_as.rpartition("other.")[2].strip('"')
    session.create_lance_index(table.name, "tags", "LABEL_LIST")
    assert uses_index(session, f"SELECT id FROM {read_as} WHERE array_has(tags, 'day')")


def test_a_taken_name(images: Path) -> None:
    session = LanceSessionContext()
    create(session, images)

    with pytest.raises(ValueError, match="External table 'images' already exists"):
        create(session, images)
    create(session, images, "IF NOT EXISTS images")
    session.sql(
        f"CREATE OR REPLACE EXTERNAL TABLE images STORED AS LANCE LOCATION '{images}' "
        "OPTIONS (row_id TRUE)"
    )

    assert session.table("images").schema().names[-1] == "_rowid"


def test_a_version_or_a_tag(images: Path) -> None:
    lance.dataset(images).tags.create("first", 1)
    append_images(images)
    session = LanceSessionContext()

    create(session, images, "newest")
    create(session, images, "by_number", "OPTIONS (version 1)")
    create(session, images, "by_tag", "OPTIONS ('version' 'first')")

    counts = [session.table(t).count() for t in ("newest", "by_number", "by_tag")]
    assert counts == [12, 6, 6]
    with pytest.raises(InvalidArgumentError, match=r"^name: got 'by_number'"):
        session.refresh("by_number")


def test_other_options_are_storage_options(images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, str] | None] = []
    opened = lance.dataset

    def dataset(uri: str, storage_options: dict[str, str] | None = None) -> lance.LanceDataset:
        asked.append(storage_options)
        return opened(uri, storage_options=storage_options)

    monkeypatch.setattr(lance, "dataset", dataset)

    create(LanceSessionContext(), images, more="OPTIONS (aws_region 'x', 'aws_endpoint' 'y')")

    assert asked == [{"aws_region": "x", "aws_endpoint": "y"}]


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("images STORED AS LANCE LOCATION 'nope'", InvalidArgumentError, "path_or_dataset: got"),
        (
            "images STORED AS LANCE LOCATION '{images}' OPTIONS (version 9)",
            InvalidArgumentError,
            "version: got 9, takes a version number, at most 1",
        ),
        (
            "images STORED AS LANCE LOCATION '{images}' OPTIONS (row_id maybe)",
            InvalidArgumentError,
            "row_id: got 'maybe', takes TRUE or FALSE",
        ),
        (
            "images (id INT) STORED AS LANCE LOCATION '{images}'",
            StatementError,
            "a list of columns is not supported",
        ),
        (
            "images STORED AS LANCE PARTITIONED BY (id) LOCATION '{images}'",
            StatementError,
            "PARTITIONED BY is not supported",
        ),
        ("none.images STORED AS LANCE LOCATION '{images}'", ValueError, "resolve schema: none"),
    ],
)
def test_what_cannot_be(images: Path, statement: str, error: type[Exception], message: str) -> None:
    session = LanceSessionContext()

    with pytest.raises(error, match=message) as caught:
        session.sql(f"CREATE EXTERNAL TABLE {statement.format(images=images)}")

    assert isinstance(caught.value, LanceIndexError) == issubclass(error, LanceIndexError)
    assert not session.table_exist("images")


def test_it_is_ddl(images: Path) -> None:
    session = LanceSessionContext()
    statement = f"CREATE EXTERNAL TABLE images STORED AS LANCE LOCATION '{images}'"

    with pytest.raises(ValueError, match="DDL not supported: CreateExternalTable"):
        session.sql(statement, SQLOptions().with_allow_ddl(False))
    session.sql(f"EXPLAIN {statement}").collect()

    assert not session.table_exist("images")


def test_other_formats_are_datafusions(tmp_path: Path) -> None:
    (tmp_path / "stored as lance.csv").write_text("a\n1\n")
    session = LanceSessionContext()

    session.sql(
        f"CREATE EXTERNAL TABLE c STORED AS CSV LOCATION '{tmp_path / 'stored as lance.csv'}' "
        "OPTIONS ('has_header' 'true')"
    )

    assert session.table("c").to_pydict() == {"a": [1]}
