"""Registering, refreshing and indexing Lance tables, adopting contexts, and bad input."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from datafusion import SessionConfig, SessionContext, col, lit
from datafusion import functions as f
from datafusion.catalog import Schema

from datafusion_lance.engine import (
    InvalidArgumentError,
    LanceDataFrame,
    LanceIndexError,
    LanceSessionContext,
)
from datafusion_lance.indexes.manifest import read_indexes
from datafusion_lance.indexes.minhash_lsh.details import parameters_of
from datafusion_lance.indexes.minhash_lsh.parameters import MinHashParameters
from datafusion_lance.indexes.minhash_lsh.tokenizer import Tokenizer
from datafusion_lance.udfs import any_element

ROWS = pa.table(
    {
        "id": pa.array(range(6), pa.int64()),
        "tags": pa.array([["a"], ["b", "a"], [], None, [None], ["b"]], pa.list_(pa.string())),
        "nested": pa.array([[["a"]]] * 6, pa.list_(pa.list_(pa.string()))),
    }
)
TAGGED = "SELECT id FROM images WHERE array_has(tags, 'a') ORDER BY id"


@pytest.fixture
def images(tmp_path: Path) -> Path:
    lance.write_dataset(ROWS, tmp_path / "images.lance", max_rows_per_file=3)
    return tmp_path / "images.lance"


@pytest.fixture
def session(images: Path) -> LanceSessionContext:
    session = LanceSessionContext()
    session.register_lance("images", images)
    return session


def append(images: Path) -> int:
    """Adds one row with the tag `a`; returns the new version."""
    row = pa.table({"id": [6], "tags": [["a"]], "nested": [None]}, schema=ROWS.schema)
    return lance.write_dataset(row, images, mode="append").version


def ids(session: SessionContext, table: str = "images") -> list[int]:
    query = f"SELECT id FROM {table} WHERE array_has(tags, 'a') ORDER BY id"
    return [row["id"] for row in session.sql(query).to_pylist()]


def uses_index(session: LanceSessionContext, query: str = TAGGED) -> bool:
    dataframe = session.sql(query)
    assert isinstance(dataframe, LanceDataFrame)
    return session.execution(dataframe).uses_index


class TestRegistration:
    @pytest.mark.parametrize("kind", [str, Path, lance.dataset])
    def test_a_path_or_a_dataset(self, kind: type, images: Path) -> None:
        session = LanceSessionContext()

        session.register_lance("images", kind(images))

        assert ids(session) == [0, 1]

    @pytest.mark.parametrize(
        ("name", "read_as"),
        [
            ("Images", "images"),
            ('"Images"', '"Images"'),
            ("public.images", "images"),
            ("datafusion.public.images", "images"),
            ('"my images"', '"my images"'),
            ('other."T"', 'datafusion.other."T"'),
        ],
    )
    def test_names_are_resolved_as_datafusion_does(
        self, name: str, read_as: str, images: Path
    ) -> None:
        session = LanceSessionContext()
        session.catalog().register_schema("other", Schema.memory_schema())

        session.register_lance(name, images)

        assert ids(session, read_as) == [0, 1]
        session.create_lance_index(read_as, "tags", "LABEL_LIST")
        session.refresh(name)
        assert uses_index(session, f"SELECT id FROM {read_as} WHERE array_has(tags, 'a')")

    def test_a_version_or_a_tag(self, images: Path) -> None:
        lance.dataset(images).tags.create("first", 1)
        append(images)
        session = LanceSessionContext()

        session.register_lance("newest", images)
        session.register_lance("by_number", images, version=1)
        session.register_lance("by_tag", images, version="first")
        session.register_lance("by_dataset", lance.dataset(images, version=1))

        assert ids(session, "newest") == [0, 1, 6]
        for table in ("by_number", "by_tag", "by_dataset"):
            assert ids(session, table) == [0, 1]

    def test_row_ids_can_be_shown(self, images: Path) -> None:
        session = LanceSessionContext()

        session.register_lance("images", images, row_id=True)

        shown = session.sql("SELECT id, _rowid FROM images ORDER BY id").to_pydict()
        assert shown["_rowid"] == [0, 1, 2, 1 << 32, (1 << 32) + 1, (1 << 32) + 2]

    def test_a_table_can_go_by_any_way_and_come_again(
        self, session: LanceSessionContext, images: Path
    ) -> None:
        for drop in (
            lambda: session.deregister_table("images"),
            lambda: session.sql("DROP TABLE images"),
            lambda: session.catalog().schema().deregister_table("images"),
        ):
            drop()
            with pytest.raises(InvalidArgumentError, match="images"):
                session.refresh("images")
            session.register_lance("images", images)
            assert ids(session) == [0, 1]

        session.deregister_table("images")
        session.from_pydict({"id": [9], "tags": [["a"]]}, "images")
        assert ids(session) == [9]
        with pytest.raises(InvalidArgumentError, match="images"):
            session.create_lance_index("images", "tags", "LABEL_LIST")


class TestRefresh:
    def test_moves_to_the_newest_version(self, session: LanceSessionContext, images: Path) -> None:
        version = append(images)
        before = session.sql(TAGGED)
        assert ids(session) == [0, 1]

        assert session.refresh("images") == version

        assert ids(session) == [0, 1, 6]
        assert before.to_pydict() == {"id": [0, 1]}
        assert session.refresh("images") == version

    def test_follows_a_tag_that_moves(self, images: Path) -> None:
        dataset = lance.dataset(images)
        dataset.tags.create("current", 1)
        session = LanceSessionContext()
        session.register_lance("images", images, version="current")
        dataset.tags.update("current", append(images))

        session.refresh("images")

        assert ids(session) == [0, 1, 6]

    def test_a_number_stays(self, images: Path) -> None:
        session = LanceSessionContext()
        session.register_lance("images", images, version=1)
        append(images)

        with pytest.raises(InvalidArgumentError, match="registered at version 1"):
            session.refresh("images")

        assert ids(session) == [0, 1]

    def test_a_dataset_object_moves_too(self, images: Path) -> None:
        session = LanceSessionContext()
        session.register_lance("images", lance.dataset(images))
        append(images)

        session.refresh("images")

        assert ids(session) == [0, 1, 6]


class TestCreateIndex:
    def test_the_table_uses_it_from_then_on(self, session: LanceSessionContext) -> None:
        assert not uses_index(session)

        session.create_lance_index("images", "tags", "LABEL_LIST")

        assert uses_index(session)
        assert ids(session) == [0, 1]

    def test_it_has_the_name_that_was_asked_for(
        self, session: LanceSessionContext, images: Path
    ) -> None:
        session.create_lance_index("images", "tags", "label_list", name="labels")

        described = lance.dataset(images).describe_indices()
        assert [index.name for index in described] == ["labels"]

    def test_an_index_is_replaced_only_when_asked(self, session: LanceSessionContext) -> None:
        session.create_lance_index("images", "tags", "LABEL_LIST")

        with pytest.raises(LanceIndexError):
            session.create_lance_index("images", "tags", "LABEL_LIST")
        session.create_lance_index("images", "tags", "LABEL_LIST", replace=True)

        assert uses_index(session)

    def test_a_minhash_index_has_the_parameters_that_were_asked_for(self, tmp_path: Path) -> None:
        texts = pa.table({"text": ["the quick brown fox", None]})
        lance.write_dataset(texts, tmp_path / "docs.lance")
        session = LanceSessionContext()
        session.register_lance("docs", tmp_path / "docs.lance")

        session.create_lance_index(
            "docs",
            "text",
            "MinHashLSH",
            num_hashes=64,
            num_bands=8,
            shingle_size=2,
            tokenizer={"base_tokenizer": "icu"},
        )

        (index,) = read_indexes(lance.dataset(tmp_path / "docs.lance"))
        assert parameters_of(index) == MinHashParameters(64, 8, 2, Tokenizer(base_tokenizer="icu"))

    def test_indexes_built_by_pylance_are_used(self, images: Path) -> None:
        lance.dataset(images).create_scalar_index("tags", "LABEL_LIST")
        session = LanceSessionContext()
        session.register_lance("images", images)

        assert uses_index(session)


class TestAdoption:
    def test_a_wrapped_context_shares_all(self, images: Path) -> None:
        plain = SessionContext(SessionConfig().with_batch_size(123).with_information_schema(True))
        plain.from_pydict({"id": [0, 5], "word": ["zero", "five"]}, "words")
        plain.sql("CREATE VIEW v AS SELECT word FROM words")
        session = LanceSessionContext.wrap(plain)

        session.register_lance("images", images)
        session.sql("SET datafusion.execution.target_partitions = 1")

        joined = "SELECT word FROM words JOIN images USING (id) ORDER BY word"
        assert session.sql(joined).to_pydict() == {"word": ["five", "zero"]}
        assert plain.sql(joined).to_pydict() == {"word": ["five", "zero"]}
        assert session.table("v").count() == 2
        for name, value in (("batch_size", "123"), ("target_partitions", "1")):
            shown = f"SHOW datafusion.execution.{name}"
            assert plain.sql(shown).to_pylist()[0]["value"] == value
            assert session.sql(shown).to_pylist()[0]["value"] == value

    def test_a_table_registered_by_one_is_rewritten_by_the_other(
        self, session: LanceSessionContext
    ) -> None:
        session.create_lance_index("images", "tags", "LABEL_LIST")

        other = LanceSessionContext.wrap(session)
        without = LanceSessionContext.wrap(session, use_indexes=False)

        assert uses_index(other)
        assert not uses_index(without)
        assert ids(other) == ids(without) == [0, 1]

    def test_sessions_made_of_a_session_are_sessions(self, session: LanceSessionContext) -> None:
        session.create_lance_index("images", "tags", "LABEL_LIST")

        for made in (
            session.enable_url_table(),
            session.with_python_udf_inlining(enabled=False),
            session.with_extensions(),
        ):
            assert type(made) is LanceSessionContext
            assert uses_index(made)
            assert ids(made) == [0, 1]

    def test_the_global_context_is_one_of_ours(self) -> None:
        session = LanceSessionContext.global_ctx()

        assert type(session) is LanceSessionContext
        assert type(session.sql("SELECT 1")) is LanceDataFrame

    def test_a_session_works_without_a_cache(self, images: Path) -> None:
        lance.dataset(images).create_scalar_index("tags", "LABEL_LIST")
        session = LanceSessionContext(cache_bytes=0)
        session.register_lance("images", images)

        assert ids(session) == ids(session) == [0, 1]

    def test_indexes_can_be_turned_off(self, images: Path) -> None:
        lance.dataset(images).create_scalar_index("tags", "LABEL_LIST")
        session = LanceSessionContext(SessionConfig(), use_indexes=False)
        session.register_lance("images", images)

        assert not uses_index(session)
        assert ids(session) == [0, 1]


class TestStatementsThatWrite:
    """They run as DataFusion runs them, and read Lance tables rightly."""

    def test_create_table_as_insert_and_copy(
        self, session: LanceSessionContext, tmp_path: Path
    ) -> None:
        session.create_lance_index("images", "tags", "LABEL_LIST")

        session.sql(f"CREATE TABLE copied AS {TAGGED}")
        assert session.sql(f"INSERT INTO copied {TAGGED}").to_pydict() == {"count": [2]}
        assert session.table("copied").sort("id").to_pydict() == {"id": [0, 0, 1, 1]}
        copied = session.sql(f"COPY ({TAGGED}) TO '{tmp_path / 'ids.csv'}'")
        assert copied.to_pydict() == {"count": [2]}
        assert (tmp_path / "ids.csv").read_text() == "id\n0\n1\n"

    def test_views_are_read_through_the_index(self, session: LanceSessionContext) -> None:
        session.create_lance_index("images", "tags", "LABEL_LIST")

        session.sql("CREATE VIEW tagged AS SELECT * FROM images WHERE array_has(tags, 'a')")

        over = "SELECT id FROM tagged WHERE array_has(tags, 'b')"
        assert uses_index(session, over)
        assert session.sql(over).to_pydict() == {"id": [1]}

    def test_lance_tables_are_not_written_to(self, session: LanceSessionContext) -> None:
        with pytest.raises(Exception, match="not implemented"):
            session.sql("INSERT INTO images SELECT * FROM images").collect()

        assert session.table("images").count() == 6


class TestBadInput:
    """Each names the argument, what it got and what it takes; the session goes on working."""

    @pytest.fixture(autouse=True)
    def _goes_on_working(self, session: LanceSessionContext) -> object:
        yield
        assert ids(session) == [0, 1]

    def test_no_dataset(self, session: LanceSessionContext, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("no dataset")
        (tmp_path / "broken" / "_versions").mkdir(parents=True)
        for path, why in (
            (tmp_path / "missing", "; there is nothing at this path"),
            ("~/no such folder", "; there is nothing at this path"),
            ("~nobody of this name/x", " ("),
            (tmp_path, "; what is at this path is none"),
            (tmp_path / "file", "; what is at this path is none"),
            (tmp_path / "broken", " ("),
            (f"file://{tmp_path}/missing", " (Dataset at path "),
            ("nosuch://host/x", " (Invalid user input: No object store provider found for scheme"),
        ):
            with pytest.raises(InvalidArgumentError) as raised:
                session.register_lance("other", path)
            says = f"path_or_dataset: got {str(path)!r}, takes the path or URL of a Lance dataset"
            assert str(raised.value).startswith(says + why)
            assert ".rs" not in str(raised.value)
            assert "\n" not in str(raised.value)
        with pytest.raises(InvalidArgumentError, match="path_or_dataset: got 7, takes"):
            session.register_lance("other", 7)

    def test_a_dataframe_is_not_run_to_be_shown(self, session: LanceSessionContext) -> None:
        fails = "SELECT CAST(word AS BIGINT) FROM (VALUES ('a')) AS words(word)"
        for frame in (session.sql(fails), session.plain.sql(fails)):
            shown = f"got a {type(frame).__name__}, takes"
            with pytest.raises(InvalidArgumentError, match=f"path_or_dataset: {shown}"):
                session.register_lance("other", frame)
            with pytest.raises(InvalidArgumentError, match=f"name: {shown}"):
                session.refresh(frame)  # pyright: ignore[reportArgumentType]
            with pytest.raises(
                InvalidArgumentError, match=rf'list_expr: {shown} .* as col\("detections"\)'
            ):
                any_element(frame, "TRUE")  # pyright: ignore[reportArgumentType]

    @pytest.mark.parametrize("version", [0, 99, "no_tag", True, 1.5])
    def test_no_such_version(
        self, session: LanceSessionContext, images: Path, version: int
    ) -> None:
        with pytest.raises(InvalidArgumentError, match=f"version: got {version!r}, takes"):
            session.register_lance("other", images, version=version)

    def test_a_name_twice(self, session: LanceSessionContext, images: Path) -> None:
        for name in ("images", "public.images", "IMAGES"):
            with pytest.raises(InvalidArgumentError, match=f"name: got '{name}', takes a name"):
                session.register_lance(name, images)

    @pytest.mark.parametrize("name", ["missing.images", "missing.public.images", "", 5])
    def test_a_name_that_cannot_be(
        self, session: LanceSessionContext, images: Path, name: str
    ) -> None:
        with pytest.raises(InvalidArgumentError, match=f"name: got {name!r}, takes a"):
            session.register_lance(name, images)

    def test_unknown_tables(self, session: LanceSessionContext) -> None:
        session.from_pydict({"id": [1]}, "no_lance_table")
        for name in ("missing", "no_lance_table", "missing.x"):
            with pytest.raises(InvalidArgumentError, match=f"table: got '{name}', takes the name"):
                session.create_lance_index(name, "tags", "LABEL_LIST")
            with pytest.raises(InvalidArgumentError, match=f"name: got '{name}', takes the name"):
                session.refresh(name)

    @pytest.mark.parametrize("column", ["missing", "id", "nested", "Tags"])
    def test_columns_that_no_label_list_takes(
        self, session: LanceSessionContext, column: str
    ) -> None:
        with pytest.raises(InvalidArgumentError, match=f"column: got '{column}.*', takes"):
            session.create_lance_index("images", column, "LABEL_LIST")

    def test_unknown_kinds_and_parameters(self, session: LanceSessionContext) -> None:
        for kind in ("BTREE2", "", None):
            with pytest.raises(
                InvalidArgumentError, match=f"kind: got {kind!r}, takes .*LABEL_LIST"
            ):
                session.create_lance_index("images", "tags", kind)  # pyright: ignore[reportArgumentType]
        with pytest.raises(InvalidArgumentError, match="num_bands: got 3, takes nothing"):
            session.create_lance_index("images", "tags", "LABEL_LIST", num_bands=3)
        with pytest.raises(InvalidArgumentError, match="keys: got 3, takes nothing: MINHASHLSH"):
            session.create_lance_index("images", "tags", "MINHASHLSH", keys=3)

    @pytest.mark.parametrize("column", ["missing", "id", "tags"])
    def test_columns_that_no_minhash_index_takes(
        self, session: LanceSessionContext, column: str
    ) -> None:
        with pytest.raises(InvalidArgumentError, match=f"column: got '{column}.*', takes"):
            session.create_lance_index("images", column, "MINHASHLSH")

    def test_a_list_element_index_takes_keys(
        self, session: LanceSessionContext, images: Path
    ) -> None:
        box = pa.struct([("label", pa.string()), ("area", pa.int32())])
        boxes = pa.array([[{"label": "car", "area": 3}]], pa.list_(box))
        lance.write_dataset(pa.table({"boxes": boxes}), images.parent / "boxes.lance")
        session.register_lance("boxes", images.parent / "boxes.lance")

        with pytest.raises(InvalidArgumentError, match=r"keys: got \(\), takes a list of one"):
            session.create_lance_index("boxes", "boxes", "LIST_ELEMENT")
        with pytest.raises(InvalidArgumentError, match="fields: got 1, takes nothing"):
            session.create_lance_index("boxes", "boxes", "LIST_ELEMENT", keys=["area"], fields=1)
        with pytest.raises(InvalidArgumentError, match=r"fragment_ids: got \[9\], takes"):
            session.create_lance_index(
                "boxes", "boxes", "LIST_ELEMENT", keys=["area"], fragment_ids=[9]
            )
        with pytest.raises(InvalidArgumentError, match=r"keys: got 'size', takes .*label, area"):
            session.create_lance_index("boxes", "boxes", "LIST_ELEMENT", keys=["size"])
        session.create_lance_index("boxes", "boxes", "list_element", keys=["label", "area"])
        table = session.table("boxes")
        assert table.count() == 1

    def test_an_index_on_a_table_at_a_fixed_version(
        self, session: LanceSessionContext, images: Path
    ) -> None:
        session.register_lance("fixed", images, version=1)

        with pytest.raises(InvalidArgumentError, match="table: got 'fixed', takes a table at"):
            session.create_lance_index("fixed", "tags", "LABEL_LIST")

    def test_a_cache_of_no_size(self) -> None:
        with pytest.raises(InvalidArgumentError, match="cache_bytes: got -1, takes a number"):
            LanceSessionContext(cache_bytes=-1)

    def test_no_context_to_wrap(self) -> None:
        with pytest.raises(InvalidArgumentError, match="context: got 3, takes a SessionContext"):
            LanceSessionContext.wrap(3)  # pyright: ignore[reportArgumentType]


class TestThreads:
    def test_one_session_serves_32_threads(self, session: LanceSessionContext) -> None:
        session.create_lance_index("images", "tags", "LABEL_LIST")
        started = threading.Barrier(32)

        def ask(number: int) -> list[list[int]]:
            started.wait()
            found = []
            for _ in range(5):
                tag = "ab"[number % 2]
                frame = session.table("images").filter(f.array_has(col("tags"), lit(tag)))
                query = f"SELECT id FROM images WHERE array_has(tags, '{tag}')"
                found.append(sorted(frame.to_pydict()["id"]))
                found.append(sorted(session.sql(query).to_pydict()["id"]))
                session.sql(f"EXPLAIN {query}").collect()
            return found

        with ThreadPoolExecutor(32) as pool:
            answers = list(pool.map(ask, range(32)))

        for number, answer in enumerate(answers):
            assert answer == [[0, 1] if number % 2 == 0 else [1, 5]] * 10

    def test_a_table_is_found_while_it_is_refreshed(
        self, session: LanceSessionContext, images: Path
    ) -> None:
        versions = [append(images) for _ in range(10)]
        done = threading.Event()

        def ask() -> int:
            asked = 0
            while not done.is_set() or asked < 20:
                assert ids(session)[:2] == [0, 1]
                assert session.table("images").count() >= 6
                asked += 1
            return asked

        with ThreadPoolExecutor(4) as pool:
            asking = [pool.submit(ask) for _ in range(4)]
            for version in versions:
                lance.dataset(images).tags.create(f"v{version}", version)
                session.refresh("images")
                session.create_lance_index("images", "tags", "LABEL_LIST", replace=True)
            done.set()
            assert all(future.result() >= 20 for future in asking)
