"""`check_lance_index` of MinHash LSH indexes: every damage of a file is found out, by row."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.file import LanceFileReader, LanceFileWriter

from datafusion_lance.engine import IndexCheck, LanceSessionContext

from ..indexes.minhash_lsh.written_segment import WrittenSegment, commit_segments

INDEX = "text_idx"
SIGNATURES = "signatures.lance"
BANDS = "bands.lance"
WORDS = [
    "the",
    "quick",
    "brown",
    "fox",
    "jumps",
    "over",
    "a",
    "lazy",
    "dog",
    "and",
    "then",
    "some",
    "more",
    "of",
    "it",
]

Damage = Callable[[pa.Table], pa.Table]


def texts(first: int, count: int) -> pa.Table:
    random = Random(first)
    made: list[str | None] = [" ".join(random.choices(WORDS, k=12)) for _ in range(count)]
    made[:3] = [None, "", "fox"]
    return pa.table({"id": range(first, first + count), "text": pa.array(made, pa.string())})


@pytest.fixture(params=[False, True], ids=["addresses", "stable row ids"])
def docs(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = tmp_path / "docs.lance"
    stable = request.param
    lance.write_dataset(texts(0, 400), path, max_rows_per_file=200, enable_stable_row_ids=stable)
    return path


@pytest.fixture
def session(docs: Path) -> LanceSessionContext:
    session = LanceSessionContext()
    session.register_lance("docs", docs)
    session.create_lance_index("docs", "text", "MINHASHLSH", num_hashes=32, num_bands=8)
    return session


def check(session: LanceSessionContext) -> IndexCheck:
    return session.check_lance_index("docs", INDEX)


def file(docs: Path, name: str) -> Path:
    (path,) = docs.glob(f"_indices/*/{name}")
    return path


def rewrite(path: Path, change: Damage) -> None:
    """Writes a Lance file of an index again, with other rows and the same metadata."""
    reader = LanceFileReader(str(path))
    schema = reader.metadata().schema
    buffers = [
        bytes(reader.read_global_buffer(number))
        for number in range(1, len(reader.metadata().global_buffers))
    ]
    table = change(reader.read_all().to_table())
    with LanceFileWriter(str(path), schema) as writer:
        for batch in table.cast(schema).combine_chunks().to_batches():
            writer.write_batch(batch)
        for buffer in buffers:
            writer.add_global_buffer(buffer)


def changed(name: str, at: int, value: Callable[[int], int]) -> Damage:
    """One number of a column becomes another."""

    def change(table: pa.Table) -> pa.Table:
        column = table.column(name).combine_chunks()
        flat = column.flatten() if pa.types.is_fixed_size_list(column.type) else column
        numbers = flat.to_numpy().copy()
        numbers[at] = value(int(numbers[at]))
        made = pa.array(numbers, flat.type)
        if flat is not column:
            made = pa.FixedSizeListArray.from_arrays(made, type=column.type)
        return table.set_column(table.schema.get_field_index(name), table.schema.field(name), made)

    return change


class TestSoundIndexes:
    def test_as_it_was_built(self, session: LanceSessionContext) -> None:
        found = check(session)

        assert found.sound
        # Of 400 rows one is NULL and one has no word; a document is in eight buckets.
        assert str(found) == f"{INDEX} (MinHashLsh): 400 rows, {398 * 8} entries: sound"

    def test_through_the_table_s_changes(self, session: LanceSessionContext, docs: Path) -> None:
        dataset = lance.dataset(docs)
        other = texts(5000, 40).set_column(0, "id", [range(100, 140)])
        changes: list[Callable[[], object]] = [
            lambda: lance.write_dataset(texts(1000, 50), docs, mode="append"),
            lambda: dataset.delete("id IN (3, 1007)"),
            lambda: dataset.update({"text": "'quite another text'"}, where="id % 50 = 5"),
            lambda: dataset.merge_insert("id").when_matched_update_all().execute(other),
            lambda: dataset.optimize.compact_files(),
            lambda: session.optimize_lance_index("docs"),
            lambda: dataset.delete("id < 200"),
        ]
        for change in changes:
            dataset.checkout_latest()
            change()
            session.refresh("docs")
            assert check(session).sound, str(check(session))

    @pytest.mark.parametrize("tokenizer", [{"base_tokenizer": "ngram"}, {"lower_case": False}])
    def test_other_parameters(self, docs: Path, tokenizer: dict[str, object]) -> None:
        session = LanceSessionContext()
        session.register_lance("docs", docs)
        session.create_lance_index(
            "docs", "text", "MINHASHLSH", num_hashes=6, num_bands=2, tokenizer=tokenizer
        )

        assert check(session).sound

    def test_an_empty_table(self, tmp_path: Path) -> None:
        lance.write_dataset(texts(0, 3).slice(0, 0), tmp_path / "t.lance")
        session = LanceSessionContext()
        session.register_lance("docs", tmp_path / "t.lance")
        session.create_lance_index("docs", "text", "MINHASHLSH")

        assert check(session).sound

    def test_the_bar_is_quiet_where_there_is_no_terminal(
        self, session: LanceSessionContext, capfd: pytest.CaptureFixture[str]
    ) -> None:
        check(session)

        assert "checking" not in capfd.readouterr().err


class TestDamagedIndexes:
    def test_a_value_of_a_signature(self, session: LanceSessionContext, docs: Path) -> None:
        # Document 2 is row 4: two of the rows before have no signature.
        rewrite(file(docs, SIGNATURES), changed("signature", 2 * 32 + 5, lambda v: v ^ 1))

        found = check(session)

        assert (found.sound, found.different_rows) == (False, 2)
        assert "row 4 of fragment 0: its signature in the index is wrong in 1 of 32" in str(found)
        assert "row 4 of fragment 0: as document 2 the index lacks it in bucket 0x01" in str(found)

    def test_the_signatures_of_two_rows_in_each_other_s_place(
        self, session: LanceSessionContext, docs: Path
    ) -> None:
        order = [1, 0, *range(2, 398)]
        rewrite(
            file(docs, SIGNATURES),
            lambda t: t.set_column(1, t.schema.field(1), t["signature"].take(order)),
        )

        found = check(session)

        assert "row 2 of fragment 0: its signature in the index is wrong in" in str(found)
        assert "row 3 of fragment 0: as document 1 the index lacks it in bucket" in str(found)

    def test_the_row_id_of_another_row(self, session: LanceSessionContext, docs: Path) -> None:
        rewrite(file(docs, SIGNATURES), changed("_rowid", 10, lambda v: v + 1))

        found = check(session)

        assert found.different_rows == 2
        assert "row 12 of fragment 0: the index lacks its signature" in str(found)
        assert "row 13 of fragment 0: the index has 2 signatures of it" in str(found)

    def test_the_row_id_of_a_row_without_words(
        self, session: LanceSessionContext, docs: Path
    ) -> None:
        rewrite(file(docs, SIGNATURES), changed("_rowid", 10, lambda _: 0))

        found = check(session)

        assert "row 0 of fragment 0: the index has a signature of it, and its text has" in str(
            found
        )

    @pytest.mark.parametrize(
        ("row_id", "what"),
        [
            (250, "row 250 in fragment 0, which has 8 rows"),
            (77 << 32, "row 3 of fragment 0: the index lacks its signature"),
            ((1 << 64) - 1, "row 3 of fragment 0: the index lacks its signature"),
        ],
    )
    def test_the_row_id_of_no_row(self, tmp_path: Path, row_id: int, what: str) -> None:
        made = [" ".join(WORDS[n : n + 5]) for n in range(8)]
        dataset = lance.write_dataset(pa.table({"text": made}), tmp_path / "t.lance")
        row_ids = pa.array([0, 1, 2, row_id, 4, 5, 6, 7], pa.uint64())
        commit_segments(dataset, WrittenSegment(made, row_ids=row_ids))
        session = LanceSessionContext()
        session.register_lance("docs", tmp_path / "t.lance")

        found = check(session)

        assert len(found.differences) == 1
        assert what in str(found)

    def test_a_band_key(self, session: LanceSessionContext, docs: Path) -> None:
        rewrite(file(docs, BANDS), changed("band_key", 0, lambda v: v - 1))

        found = check(session)

        assert found.different_rows == 1
        assert "the index lacks it in bucket 0x00" in str(found)
        assert " and has it in bucket 0x00" in str(found)

    def test_a_document_in_another_s_bucket(self, session: LanceSessionContext, docs: Path) -> None:
        def swap(table: pa.Table) -> pa.Table:
            # Two neighbours in buckets of their own, so that the order is still right.
            keys = table["band_key"].to_numpy()
            at = int(
                np.flatnonzero(np.diff(keys[:-1]).astype(bool) & np.diff(keys[1:]).astype(bool))[0]
            )
            order = [*range(at), at + 1, at, *range(at + 2, len(keys))]
            return table.set_column(1, table.schema.field(1), table["doc_id"].take(order))

        rewrite(file(docs, BANDS), swap)

        assert check(session).different_rows == 2

    def test_a_document_that_is_not_there(self, session: LanceSessionContext, docs: Path) -> None:
        rewrite(file(docs, BANDS), changed("doc_id", 7, lambda _: 398))

        assert "bands.lance: document 398 in row 7, of 398" in str(check(session))

    @pytest.mark.parametrize(
        ("damage", "what"),
        [
            (lambda t: t.take([1, 0, *range(2, len(t))]), "row 1 out of order"),
            (lambda t: t.take([0, 0, *range(2, len(t))]), "row 1 out of order"),
            (lambda t: t.slice(0, len(t) - 1), "page 0 ends with another key"),
            (lambda t: t.slice(0, 10), "bands.lance"),
            (lambda t: pa.concat_tables([t, t]), "bands.lance"),
        ],
        ids=["order", "twice", "one less", "ten", "double"],
    )
    def test_rows_of_the_bands(
        self, session: LanceSessionContext, docs: Path, damage: Damage, what: str
    ) -> None:
        rewrite(file(docs, BANDS), damage)

        found = check(session)

        assert f"corrupt index file {file(docs, BANDS)}" in str(found)
        assert what in str(found)

    @pytest.mark.parametrize("name", [SIGNATURES, BANDS])
    @pytest.mark.parametrize("damage", ["cut off", "gone", "other bytes at the end", "empty"])
    def test_files(self, session: LanceSessionContext, docs: Path, name: str, damage: str) -> None:
        path = file(docs, name)
        data = path.read_bytes()
        damages: dict[str, Callable[[], object]] = {
            "cut off": lambda: path.write_bytes(data[:-30]),
            "gone": path.unlink,
            "other bytes at the end": lambda: path.write_bytes(data[:-30] + bytes(30)),
            "empty": lambda: path.write_bytes(b""),
        }
        damages[damage]()

        found = check(session)

        assert not found.sound
        assert name in str(found)

    def test_the_files_of_another_index(self, session: LanceSessionContext, docs: Path) -> None:
        session.create_lance_index(
            "docs", "text", "MINHASHLSH", name="other", num_hashes=32, num_bands=16
        )
        first, second = sorted(docs.glob(f"_indices/*/{BANDS}"))
        for name in (SIGNATURES, BANDS):
            shutil.copy(first.with_name(name), first.with_name("kept"))
            shutil.copy(second.with_name(name), first.with_name(name))
            shutil.copy(first.with_name("kept"), second.with_name(name))

        assert not check(session).sound
        assert not session.check_lance_index("docs", "other").sound

    def test_a_file_in_the_other_s_place(self, session: LanceSessionContext, docs: Path) -> None:
        one, two = file(docs, SIGNATURES), file(docs, BANDS)
        data = one.read_bytes()
        one.write_bytes(two.read_bytes())
        two.write_bytes(data)

        assert not check(session).sound

    def test_any_byte_of_the_data(self, session: LanceSessionContext, docs: Path) -> None:
        random = Random(5)
        for name in (SIGNATURES, BANDS):
            path = file(docs, name)
            data = path.read_bytes()
            before = LanceFileReader(str(path)).read_all().to_table()
            places = [
                buffer.position + random.randrange(buffer.size)
                for column in LanceFileReader(str(path)).metadata().columns
                for page in column.pages
                for buffer in page.buffers
                for _ in range(12)
            ]
            for place in places:
                damaged = bytearray(data)
                damaged[place] ^= 1 << random.randrange(8)
                path.write_bytes(damaged)
                sound = check(session).sound
                # What is no part of a value, as the padding of a chunk, changes nothing.
                assert not sound or LanceFileReader(str(path)).read_all().to_table() == before
            path.write_bytes(data)
        assert check(session).sound

    def test_a_page_table_of_something_else(self, tmp_path: Path) -> None:
        ten = [" ".join(WORDS[n : n + 5]) for n in range(8)]
        for number, buffer in enumerate([None, bytes(32), b"\xff" * 32]):
            path = tmp_path / f"{number}.lance"
            dataset = lance.write_dataset(pa.table({"text": ten}), path)
            commit_segments(dataset, WrittenSegment(ten, page_table=buffer))
            session = LanceSessionContext()
            session.register_lance("docs", path)

            assert check(session).sound == (buffer is None)

    def test_a_missing_text(self, tmp_path: Path) -> None:
        ten = [" ".join(WORDS[n : n + 5]) for n in range(8)]
        dataset = lance.write_dataset(pa.table({"text": ten}), tmp_path / "t.lance")
        commit_segments(dataset, WrittenSegment(ten[:7]))
        session = LanceSessionContext()
        session.register_lance("docs", tmp_path / "t.lance")

        found = check(session)

        assert [str(d) for d in found.differences] == [
            "row 7 of fragment 0: the index lacks its signature"
        ]
