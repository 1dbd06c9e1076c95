"""`lance_indexes` and `drop_lance_index`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from datafusion.catalog import Schema

from datafusion_lance.engine import InvalidArgumentError, LanceIndexError, LanceSessionContext
from datafusion_lance.engine.index_listing import lance_tables

from .indexed_images import CARS, append_images, ids, uses_index, write_images


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return write_images(tmp_path / "images.lance")


@pytest.fixture
def session(images: Path) -> LanceSessionContext:
    session = LanceSessionContext()
    session.register_lance("images", images)
    keys = ["label", "confidence"]
    session.create_lance_index("images", "detections", "LIST_ELEMENT", keys=keys)
    session.create_lance_index("images", "tags", "LABEL_LIST", name="by_tag")
    return session


def listed(session: LanceSessionContext, table: str = "images") -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in session.lance_indexes(table).to_pylist()}


class TestListing:
    def test_each_index_is_described(self, session: LanceSessionContext) -> None:
        found = listed(session)

        assert found["detections_idx"] == {
            "table": "images",
            "name": "detections_idx",
            "kind": "ListElement",
            "column": "detections",
            "keys": ["label", "confidence"],
            "parameters": [],
            "segments": 1,
            "covered_fragments": 2,
            "uncovered_fragments": 0,
            "covered_rows": 6,
            "uncovered_rows": 0,
            "bytes": found["detections_idx"]["bytes"],
            "unusable": None,
        }
        assert found["by_tag"]["kind"] == "LabelList"
        assert found["by_tag"]["keys"] == []

    def test_bytes_are_those_of_the_files(self, session: LanceSessionContext, images: Path) -> None:
        files = (images / "_indices").glob("*/*")

        assert sum(row["bytes"] for row in listed(session).values()) == sum(
            file.stat().st_size for file in files
        )

    def test_what_no_index_covers_is_counted(
        self, session: LanceSessionContext, images: Path
    ) -> None:
        append_images(images)
        lance.dataset(images).delete("id IN (0, 7, 8)")
        session.refresh("images")

        for row in listed(session).values():
            assert (row["covered_fragments"], row["uncovered_fragments"]) == (2, 2)
            assert (row["covered_rows"], row["uncovered_rows"]) == (5, 4)

    def test_an_index_that_cannot_be_used_says_why(
        self, session: LanceSessionContext, images: Path
    ) -> None:
        lance.dataset(images).drop_columns(["detections.item.label"])
        session.refresh("images")

        row = listed(session)["detections_idx"]
        assert row["unusable"] == "its key label is not in the table any more"
        assert row["keys"] == ["label", "confidence"]
        assert (row["covered_rows"], row["uncovered_rows"]) == (0, 6)

    def test_names_are_the_present_ones(self, session: LanceSessionContext, images: Path) -> None:
        renamed: list[Any] = [
            {"path": "detections.item.label", "name": "what"},
            {"path": "detections", "name": "seen"},
        ]
        lance.dataset(images).alter_columns(*renamed)
        session.refresh("images")

        row = listed(session)["detections_idx"]
        assert row["column"] == "seen"
        assert row["keys"] == ["what", "confidence"]

    def test_lances_own_kinds_are_there(self, session: LanceSessionContext, images: Path) -> None:
        lance.dataset(images).create_scalar_index("id", "BTREE")
        session.refresh("images")

        assert listed(session)["id_idx"]["kind"] == "BTree"

    def test_a_table_without_indexes_has_no_rows(self, tmp_path: Path) -> None:
        session = LanceSessionContext()
        lance.write_dataset(pa.table({"id": [1]}), tmp_path / "plain.lance")
        session.register_lance("plain", tmp_path / "plain.lance")

        assert session.lance_indexes("plain").to_pylist() == []

    def test_an_unknown_table(self, session: LanceSessionContext) -> None:
        with pytest.raises(InvalidArgumentError, match=r"^table: got 'nope', takes"):
            session.lance_indexes("nope")


class TestTables:
    def test_names_are_as_short_as_they_are_found(
        self, session: LanceSessionContext, images: Path
    ) -> None:
        session.catalog().register_schema("other", Schema.memory_schema())
        session.register_lance("other.images", images)
        session.register_lance('other."My images"', images)
        session.sql("CREATE VIEW v AS SELECT * FROM images")
        session.from_arrow(pa.table({"a": [1]}), "memory")

        names = [name for name, _ in lance_tables(session)]

        assert names == ['other."My images"', "other.images", "images"]


class TestDropping:
    @pytest.mark.parametrize("name", ["detections_idx", "by_tag"])
    def test_an_index_of_any_kind(
        self, session: LanceSessionContext, images: Path, name: str
    ) -> None:
        session.drop_lance_index("images", name)

        assert name not in listed(session)
        assert len(listed(session)) == 1
        other = LanceSessionContext()
        other.register_lance("images", images)
        assert name not in listed(other)

    def test_queries_go_on_without_it(self, session: LanceSessionContext) -> None:
        assert uses_index(session, CARS)

        session.drop_lance_index("images", "detections_idx")

        assert not uses_index(session, CARS)
        assert ids(session, CARS) == [0, 5]

    def test_a_missing_one(self, session: LanceSessionContext) -> None:
        with pytest.raises(
            InvalidArgumentError,
            match=r"^name: got 'nope', takes the name of an index of the table: detections_idx, by",
        ):
            session.drop_lance_index("images", "nope")
        session.drop_lance_index("images", "nope", if_exists=True)

    def test_one_that_another_session_has_dropped(
        self, session: LanceSessionContext, images: Path
    ) -> None:
        lance.dataset(images).drop_index("by_tag")

        session.drop_lance_index("images", "by_tag", if_exists=True)

        assert "by_tag" not in listed(session)

    @pytest.mark.parametrize(
        ("failure", "error", "message"),
        [
            (
                "Retryable commit conflict for version 5",
                LanceIndexError,
                "'by_tag' was not dropped",
            ),
            ("no space left", OSError, "no space left"),
        ],
    )
    def test_a_failed_write(
        self,
        session: LanceSessionContext,
        monkeypatch: pytest.MonkeyPatch,
        failure: str,
        error: type[Exception],
        message: str,
    ) -> None:
        def fail(*_: object) -> None:
            raise OSError(failure)

        monkeypatch.setattr(lance.LanceDataset, "drop_index", fail)
        with pytest.raises(error, match=message):
            session.drop_lance_index("images", "by_tag")
        assert "by_tag" in listed(session)

    def test_a_table_at_a_fixed_version(self, session: LanceSessionContext, images: Path) -> None:
        session.register_lance("old", images, version=1)

        with pytest.raises(InvalidArgumentError, match=r"^table: got 'old', takes"):
            session.drop_lance_index("old", "by_tag")
