"""`optimize_lance_index`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.commit import CommitConflictError
from lance.dataset import DatasetOptimizer

from datafusion_lance.engine import InvalidArgumentError, LanceIndexError, LanceSessionContext

from .indexed_images import CARS, TAGGED, append_images, ids, uses_index, write_images


@pytest.fixture(params=[False, True], ids=["addresses", "stable row ids"])
def images(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    return write_images(tmp_path / "images.lance", stable_row_ids=request.param)


@pytest.fixture
def session(images: Path) -> LanceSessionContext:
    session = LanceSessionContext()
    session.register_lance("images", images)
    keys = ["label", "confidence"]
    session.create_lance_index("images", "detections", "LIST_ELEMENT", keys=keys)
    session.create_lance_index("images", "tags", "LABEL_LIST")
    lance.dataset(images).create_scalar_index("id", "BTREE")
    return session


def listed(session: LanceSessionContext) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in session.lance_indexes("images").to_pylist()}


def uncovered(session: LanceSessionContext) -> dict[str, int]:
    return {name: row["uncovered_rows"] for name, row in listed(session).items()}


def test_every_index_covers_the_table_afterwards(
    session: LanceSessionContext, images: Path
) -> None:
    append_images(images)

    session.optimize_lance_index("images")

    assert uncovered(session) == {"detections_idx": 0, "tags_idx": 0, "id_idx": 0}
    for query in (CARS, TAGGED):
        assert uses_index(session, query)
        assert "uncovered_fragments" not in str(session.sql(f"EXPLAIN {query}").to_pydict())
        assert ids(session, query) == [0, 5, 6, 11]


@pytest.mark.parametrize("name", ["detections_idx", "tags_idx"])
def test_one_index(session: LanceSessionContext, images: Path, name: str) -> None:
    append_images(images)

    session.optimize_lance_index("images", name)

    other = ({"detections_idx", "tags_idx"} - {name}).pop()
    assert (uncovered(session)[name], uncovered(session)[other]) == (0, 6)


def test_after_updates_and_compaction(session: LanceSessionContext, images: Path) -> None:
    dataset = lance.dataset(images)
    append_images(images)
    dataset.checkout_latest()
    dataset.update({"tags": "['night']"}, where="id = 3")
    dataset.delete("id = 0")
    dataset.optimize.compact_files()
    session.refresh("images")
    plain = LanceSessionContext(use_indexes=False)
    plain.register_lance("images", images)
    expected = [ids(plain, query) for query in (CARS, TAGGED)]

    assert [ids(session, query) for query in (CARS, TAGGED)] == expected
    session.optimize_lance_index("images")

    assert [ids(session, query) for query in (CARS, TAGGED)] == expected
    assert uncovered(session)["detections_idx"] == 0
    assert uses_index(session, CARS)


def test_a_minhash_index(tmp_path: Path) -> None:
    docs = tmp_path / "docs.lance"
    texts = pa.table({"text": ["the quick brown fox jumps", "the quick brown fox jumps over"]})
    lance.write_dataset(texts, docs)
    session = LanceSessionContext()
    session.register_lance("docs", docs)
    session.create_lance_index("docs", "text", "MINHASHLSH", num_bands=32)
    lance.write_dataset(texts, docs, mode="append")

    session.optimize_lance_index("docs", "text_idx")

    (row,) = session.lance_indexes("docs").to_pylist()
    assert (row["covered_rows"], row["uncovered_rows"]) == (4, 0)
    assert dict(row["parameters"])["num_bands"] == "32"


def test_what_cannot_be(session: LanceSessionContext, images: Path) -> None:
    session.register_lance("old", images, version=1)

    with pytest.raises(InvalidArgumentError, match=r"^name: got 'nope', takes the name of an"):
        session.optimize_lance_index("images", "nope")
    with pytest.raises(InvalidArgumentError, match=r"^table: got 'old'"):
        session.optimize_lance_index("old")


@pytest.mark.parametrize(
    "error", [CommitConflictError("another"), OSError("Retryable commit conflict for version 5")]
)
def test_a_race_that_pylance_loses_every_time(
    session: LanceSessionContext, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def conflict(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(DatasetOptimizer, "optimize_indices", conflict)
    with pytest.raises(LanceIndexError, match="'tags_idx' was not optimized: another writer"):
        session.optimize_lance_index("images", "tags_idx")


def test_other_failures_come_as_they_are(
    session: LanceSessionContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(DatasetOptimizer, "optimize_indices", fail)
    with pytest.raises(OSError, match="no space left"):
        session.optimize_lance_index("images", "tags_idx")
