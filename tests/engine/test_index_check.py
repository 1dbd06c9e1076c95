"""`check_lance_index`: sound indexes are, and damaged ones are found out by row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.file import LanceFileReader, LanceFileWriter

from datafusion_lance.engine import (
    IndexCheck,
    InvalidArgumentError,
    LanceSessionContext,
)

from .indexed_images import IMAGES, append_images, write_images

LISTS = "detections_idx"
LABELS = "tags_idx"


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
    return session


def check(session: LanceSessionContext, name: str) -> IndexCheck:
    return session.check_lance_index("images", name)


def file(images: Path, name: str) -> Path:
    (path,) = images.glob(f"_indices/*/{name}")
    return path


def rewrite(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    """Writes a Lance file of an index again, with other rows and the same metadata."""
    reader = LanceFileReader(str(path))
    schema = reader.metadata().schema
    table = change(reader.read_all().to_table())
    with LanceFileWriter(str(path), schema) as writer:
        for batch in table.cast(schema).combine_chunks().to_batches():
            writer.write_batch(batch)


class TestSoundIndexes:
    def test_as_they_were_built(self, session: LanceSessionContext) -> None:
        lists, labels = check(session, LISTS), check(session, LABELS)

        assert lists.sound
        assert (lists.rows, lists.entries, lists.differences) == (6, 6, ())
        assert str(labels) == "tags_idx (LabelList): 6 rows, 7 entries: sound"

    def test_through_the_table_s_changes(self, session: LanceSessionContext, images: Path) -> None:
        dataset = lance.dataset(images)

        def changes() -> list[Callable[[], object]]:
            return [
                lambda: append_images(images),
                lambda: dataset.delete("id IN (0, 7)"),
                lambda: dataset.update({"tags": "['day', 'new']"}, where="id IN (2, 3)"),
                lambda: dataset.merge_insert("id").when_matched_update_all().execute(IMAGES),
                lambda: dataset.optimize.compact_files(),
                lambda: session.optimize_lance_index("images"),
                lambda: append_images(images, 20),
                lambda: dataset.delete("id > 22"),
                lambda: session.optimize_lance_index("images"),
            ]

        for change in changes():
            dataset.checkout_latest()
            change()
            session.refresh("images")
            for name in (LISTS, LABELS):
                assert check(session, name).sound, str(check(session, name))
        assert check(session, LISTS).rows == session.table("images").count()

    def test_every_type_of_labels_and_keys(self, tmp_path: Path) -> None:
        values = {
            "i": pa.array([1, -1, None, 7], pa.int16()),
            "f": pa.array([0.0, -0.0, float("nan"), None], pa.float32()),
            "s": pa.array(["", "a" * 100, None, "ä"], pa.string()),
            "b": pa.array([b"", b"\0", None, b"\xff"], pa.binary()),
            "t": pa.array([1, None, 3, 4], pa.timestamp("us", "UTC")),
            "o": pa.array([True, False, None, True]),
        }
        offsets = pa.array([0, 2, 2, 4], pa.int32())
        structs = pa.StructArray.from_arrays(list(values.values()), list(values))
        columns = {name: pa.ListArray.from_arrays(offsets, v) for name, v in values.items()}
        columns["d"] = pa.ListArray.from_arrays(offsets, structs)
        lance.write_dataset(pa.table(columns), tmp_path / "types.lance")
        session = LanceSessionContext()
        session.register_lance("types", tmp_path / "types.lance")
        session.create_lance_index("types", "d", "LIST_ELEMENT", keys=list(values))
        for name in values:
            session.create_lance_index("types", name, "LABEL_LIST")

        for name in ("d", *values):
            found = session.check_lance_index("types", f"{name}_idx")
            assert found.sound, str(found)


class TestDamagedIndexes:
    def test_an_entry_of_another_value(self, session: LanceSessionContext, images: Path) -> None:
        path = file(images, "page_data.lance")
        # The fourth of six entries: neither the page's first nor its last.
        rewrite(path, lambda t: t.take([0, 1, 2, 2, 4, 5]).set_column(1, "ids", t["ids"]))
        assert check(session, LISTS).sound  # it was the same value

        rewrite(path, lambda t: t.take([0, 1, 2, 4, 4, 5]).set_column(1, "ids", t["ids"]))
        found = check(session, LISTS)

        assert (found.sound, found.different_rows) == (False, 1)
        (difference,) = found.differences
        assert difference.row in (0, (1 << 32) + 2)
        assert "the index lacks (label='car', confidence=0.95)" in str(found)
        assert "the index has (label='dog', confidence=0.4) too much" in str(found)

    def test_an_entry_of_another_row(self, session: LanceSessionContext, images: Path) -> None:
        def move(table: pa.Table) -> pa.Table:
            return table.set_column(1, "ids", pa.array([1, *table["ids"].to_pylist()[1:]]))

        rewrite(file(images, "page_data.lance"), move)
        found = check(session, LISTS)

        assert [d.row for d in found.differences] == [1, 1 << 32]
        assert "row 0 of fragment 1: the index lacks the entry of a NULL list" in str(found)

    def test_a_row_that_there_is_not(self, session: LanceSessionContext, images: Path) -> None:
        def astray(table: pa.Table) -> pa.Table:
            return table.set_column(1, "ids", pa.array([99, *table["ids"].to_pylist()[1:]]))

        rewrite(file(images, "page_data.lance"), astray)
        found = check(session, LISTS)

        assert "row 99 of fragment 0: the index has an entry for it" in str(found)

    def test_values_out_of_order(self, session: LanceSessionContext, images: Path) -> None:
        path = file(images, "page_data.lance")
        rewrite(path, lambda t: t.take([0, 1, 4, 2, 3, 5]))

        found = check(session, LISTS)

        assert f"corrupt index file {path}" in str(found)
        assert len(found.differences) == 1

    def test_missing_entries(self, session: LanceSessionContext, images: Path) -> None:
        rewrite(file(images, "page_data.lance"), lambda t: t.slice(0, 5))

        assert not check(session, LISTS).sound

    @pytest.mark.parametrize(
        "change",
        [
            lambda t: t.set_column(0, "min", pa.array([b"x"])),
            lambda t: t.set_column(1, "max", pa.array([b"zzz"])),
            lambda t: t.set_column(2, "null_count", pa.array([0], pa.uint32())),
            lambda t: t.set_column(3, "page_idx", pa.array([1], pa.uint32())),
            lambda t: pa.concat_tables([t, t]),
        ],
        ids=["min", "max", "null_count", "page_idx", "a page more"],
    )
    def test_a_page_table_of_something_else(
        self,
        session: LanceSessionContext,
        images: Path,
        change: Callable[[pa.Table], pa.Table],
    ) -> None:
        rewrite(file(images, "page_lookup.lance"), change)

        assert not check(session, LISTS).sound

    def test_a_posting_of_other_rows(self, session: LanceSessionContext, images: Path) -> None:
        def swap(table: pa.Table) -> pa.Table:
            return table.set_column(1, "bitmaps", table["bitmaps"].take([0, 3, 2, 1]))

        path = file(images, "bitmap_page_lookup.lance")
        reader = LanceFileReader(str(path))
        buffers = [bytes(reader.read_global_buffer(i)) for i in range(1, 2)]
        schema = reader.metadata().schema
        table = swap(reader.read_all().to_table())
        with LanceFileWriter(str(path), schema) as writer:
            for batch in table.combine_chunks().to_batches():
                writer.write_batch(batch)
            assert [writer.add_global_buffer(buffer) for buffer in buffers] == [1]
        found = check(session, LABELS)

        assert found.different_rows == 3
        assert "row 1 of fragment 0: the index lacks the label 'day'" in str(found)
        assert "the index has the label 'rain' too" in str(found)

    @pytest.mark.parametrize(
        ("index", "name"),
        [
            (LISTS, "page_data.lance"),
            (LISTS, "page_lookup.lance"),
            (LABELS, "bitmap_page_lookup.lance"),
        ],
    )
    @pytest.mark.parametrize("damage", ["cut off", "gone", "other bytes at the end", "empty"])
    def test_files(
        self, session: LanceSessionContext, images: Path, index: str, name: str, damage: str
    ) -> None:
        path = file(images, name)
        data = path.read_bytes()
        damages: dict[str, Callable[[], object]] = {
            "cut off": lambda: path.write_bytes(data[:-30]),
            "gone": path.unlink,
            "other bytes at the end": lambda: path.write_bytes(data[:-30] + bytes(30)),
            "empty": lambda: path.write_bytes(b""),
        }
        damages[damage]()

        found = check(session, index)

        assert not found.sound
        assert name in str(found)

    def test_no_more_than_the_first_are_told(self, tmp_path: Path) -> None:
        lists = pa.array([[{"a": i}] for i in range(100)])
        lance.write_dataset(pa.table({"d": lists}), tmp_path / "t.lance")
        session = LanceSessionContext()
        session.register_lance("t", tmp_path / "t.lance")
        session.create_lance_index("t", "d", "LIST_ELEMENT", keys=["a"])
        rewrite(
            file(tmp_path / "t.lance", "page_data.lance"),
            lambda t: t.set_column(1, "ids", pa.array(range(99, -1, -1), pa.uint64())),
        )

        found = session.check_lance_index("t", "d_idx")

        assert found.different_rows == 100
        assert [d.row for d in found.differences] == list(range(10))
        assert str(found).endswith("and 90 rows more")


class TestArguments:
    def test_an_index_that_cannot_be_used(self, session: LanceSessionContext, images: Path) -> None:
        lance.dataset(images).drop_columns(["detections.item.label"])
        session.refresh("images")

        found = check(session, LISTS)

        assert not found.sound
        assert "its key label is not in the table any more" in str(found)

    def test_names(self, session: LanceSessionContext, images: Path) -> None:
        lance.dataset(images).create_scalar_index("id", "BTREE")
        session.refresh("images")

        for name in ("nope", "id_idx"):
            with pytest.raises(
                InvalidArgumentError, match=f"^name: got '{name}', takes the name of a list element"
            ):
                check(session, name)
        with pytest.raises(InvalidArgumentError, match=r"^table: got 'nope'"):
            session.check_lance_index("nope", LISTS)
