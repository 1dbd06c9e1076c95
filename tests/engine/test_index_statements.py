"""CREATE INDEX, DROP INDEX and SHOW INDEXES as SQL."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from datafusion import SQLOptions
from datafusion.catalog import Schema

from datafusion_lance.engine import (
    InvalidArgumentError,
    LanceDataFrame,
    LanceSessionContext,
    StatementError,
)

from .indexed_images import CARS, TAGGED, ids, uses_index, write_images

NO_DDL = SQLOptions().with_allow_ddl(False)


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return write_images(tmp_path / "images.lance")


@pytest.fixture
def session(images: Path) -> LanceSessionContext:
    session = LanceSessionContext()
    session.register_lance("images", images)
    return session


def shown(session: LanceSessionContext, statement: str = "SHOW INDEXES") -> list[tuple[str, str]]:
    return [(row["table"], row["name"]) for row in session.sql(statement).to_pylist()]


class TestCreateIndex:
    @pytest.mark.parametrize(
        "columns",
        [
            "detections.label, detections.confidence",
            "detections['label'], detections['confidence'] ASC",
            'Detections."label", "detections".confidence',
        ],
    )
    def test_a_list_element_index_has_its_keys_as_columns(
        self, session: LanceSessionContext, columns: str
    ) -> None:
        result = session.sql(f"CREATE INDEX cars ON images USING list_element ({columns});")

        assert isinstance(result, LanceDataFrame)
        assert result.collect() == []
        (row,) = session.lance_indexes("images").to_pylist()
        assert (row["name"], row["keys"]) == ("cars", ["label", "confidence"])
        assert uses_index(session, CARS)
        assert ids(session, CARS) == [0, 5]

    def test_a_label_list_index_has_its_column(self, session: LanceSessionContext) -> None:
        session.sql("create index on public.images using LABEL_LIST (tags)")

        assert shown(session) == [("images", "tags_idx")]
        assert uses_index(session, TAGGED)
        assert ids(session, TAGGED) == [0, 5]

    def test_it_runs_once_and_at_once(self, session: LanceSessionContext) -> None:
        result = session.sql("CREATE INDEX i ON images USING label_list (tags)")

        result.collect()
        result.collect()

        assert len(shown(session)) == 1

    def test_names_in_quotes(self, images: Path) -> None:
        session = LanceSessionContext()
        session.catalog().register_schema("other", Schema.memory_schema())
        session.register_lance('other."My images"', images)

        session.sql('CREATE INDEX "My i" ON other."My images" USING label_list ("tags")')

        assert shown(session) == [('other."My images"', "My i")]

    def test_parameters_are_in_with(self, session: LanceSessionContext) -> None:
        session.sql(
            "CREATE INDEX i ON images USING list_element (detections.label) "
            "WITH (sort_memory = 40000000, progress = FALSE)"
        )

        assert shown(session) == [("images", "i")]

    def test_a_minhash_index(self, tmp_path: Path) -> None:
        texts = ["the quick brown fox jumps", "the quick brown fox jumps over", None]
        lance.write_dataset(pa.table({"text": texts}), tmp_path / "docs.lance")
        session = LanceSessionContext()
        session.register_lance("docs", tmp_path / "docs.lance")

        session.sql(
            "CREATE INDEX ON docs USING minhash_lsh (text) WITH (num_hashes = 32, num_bands = 8, "
            "tokenizer.base_tokenizer = 'icu', tokenizer.stem = TRUE, tokenizer.\"language\" = "
            "'English')"
        )

        (row,) = session.lance_indexes("docs").to_pylist()
        assert (row["name"], row["kind"], row["covered_rows"]) == ("text_idx", "MinHashLsh", 3)
        assert row["parameters"] == [
            ("num_hashes", "32"),
            ("num_bands", "8"),
            ("shingle_size", "3"),
            ("tokenizer.base_tokenizer", "icu"),
            ("tokenizer.stem", "true"),
        ]
        with pytest.raises(InvalidArgumentError, match="num_hashes: got 128, takes a multiple"):
            session.sql("CREATE INDEX i ON docs USING minhash_lsh (text) WITH (num_bands = 7)")

    def test_if_not_exists(self, session: LanceSessionContext) -> None:
        session.sql("CREATE INDEX i ON images USING label_list (tags)")

        for columns in ("label_list (tags)", "list_element (detections.label)"):
            with pytest.raises(StatementError, match=r"^Execution error: Index 'i' already exists"):
                session.sql(f"CREATE INDEX i ON images USING {columns}")
            session.sql(f"CREATE INDEX IF NOT EXISTS i ON images USING {columns}")

        (row,) = session.lance_indexes("images").to_pylist()
        assert row["kind"] == "LabelList"

    def test_a_name_that_an_index_has_which_pylance_does_not_know(
        self, session: LanceSessionContext
    ) -> None:
        session.sql("CREATE INDEX i ON images USING list_element (detections.label)")

        with pytest.raises(StatementError, match="Index 'i' already exists"):
            session.sql("CREATE INDEX i ON images USING label_list (tags)")
        with pytest.raises(InvalidArgumentError, match=r"^name: got 'i', takes a name that no"):
            session.create_lance_index("images", "tags", "LABEL_LIST", name="i")

    @pytest.mark.parametrize(
        ("statement", "error", "message"),
        [
            ("ON nope USING label_list (tags)", ValueError, "table .*nope' not found"),
            ("ON memory USING label_list (a)", InvalidArgumentError, "^table: got 'memory'"),
            ("ON old USING label_list (tags)", InvalidArgumentError, "^table: got 'old'"),
            ("ON images (tags)", InvalidArgumentError, "^USING: got None, takes one of"),
            ("ON images USING btree (id)", InvalidArgumentError, "^USING: got 'btree', takes"),
            ("ON images USING label_list (id)", InvalidArgumentError, "^column: got 'id: int64'"),
            ("ON images USING label_list (nope)", InvalidArgumentError, "^column: got 'nope'"),
            (
                "ON images USING label_list (detections.label)",
                InvalidArgumentError,
                "takes the column alone",
            ),
            (
                "ON images USING list_element (detections)",
                InvalidArgumentError,
                r"got '\(detections\)', takes fields of the column",
            ),
            (
                "ON images USING list_element (detections.nope)",
                InvalidArgumentError,
                "^keys: got 'nope', takes direct fields",
            ),
            (
                "ON images USING list_element (nope.label)",
                InvalidArgumentError,
                "^columns: got 'nope.label'",
            ),
            (
                "ON images USING list_element (detections.label.x)",
                InvalidArgumentError,
                "^columns: got",
            ),
            (
                "ON images USING list_element (upper(detections))",
                InvalidArgumentError,
                "^columns: got",
            ),
            (
                "ON images USING list_element (detections.label, tags)",
                InvalidArgumentError,
                "^columns: got",
            ),
            ("ON images USING label_list (tags DESC)", StatementError, "CREATE INDEX with DESC"),
            (
                "ON images USING label_list (tags) WHERE id > 3",
                StatementError,
                "CREATE INDEX with WHERE id > 3",
            ),
            (
                "ON images USING label_list (tags) INCLUDE (id)",
                StatementError,
                r"CREATE INDEX with INCLUDE \(id\)",
            ),
            (
                "ON images USING label_list (tags) WITH (num_bands = 4)",
                InvalidArgumentError,
                "^num_bands: got 4, takes nothing",
            ),
            (
                "ON images USING list_element (detections.label) WITH (a, b = 1)",
                InvalidArgumentError,
                "^WITH: got 'a', takes name = value",
            ),
            (
                "ON images USING list_element (detections.label) WITH (a = 1, A = 2)",
                InvalidArgumentError,
                "^WITH: got 'A = 2', takes name = value, each name once",
            ),
            *(
                (
                    f"ON images USING list_element (detections.label) WITH ({option})",
                    InvalidArgumentError,
                    "^WITH: got .*, takes name = value",
                )
                for option in ("a.b.c = 1", "a = 1, a.b = 2", "a.b = 1, a.b = 2")
            ),
            (
                "ON images USING list_element (detections.label) WITH (sort_memory = 1 + 1)",
                InvalidArgumentError,
                r"^sort_memory: got '1 \+ 1', takes a number",
            ),
        ],
    )
    def test_what_cannot_be(
        self,
        session: LanceSessionContext,
        images: Path,
        statement: str,
        error: type[Exception],
        message: str,
    ) -> None:
        session.register_lance("old", images, version=1)
        session.from_arrow(pa.table({"a": [["x"]]}), "memory")

        with pytest.raises(error, match=message):
            session.sql(f"CREATE INDEX i {statement}")

        assert shown(session) == []

    @pytest.mark.parametrize("what", ["UNIQUE INDEX", "INDEX CONCURRENTLY"])
    def test_kinds_of_index_that_there_are_not(
        self, session: LanceSessionContext, what: str
    ) -> None:
        with pytest.raises(StatementError, match="This feature is not implemented: CREATE INDEX"):
            session.sql(f"CREATE {what} i ON images USING label_list (tags)")

    def test_it_is_ddl(self, session: LanceSessionContext) -> None:
        statement = "CREATE INDEX i ON images USING label_list (tags)"

        with pytest.raises(ValueError, match="DDL not supported: CreateIndex"):
            session.sql(statement, NO_DDL)
        for explain in ("EXPLAIN", "EXPLAIN ANALYZE", "EXPLAIN VERBOSE"):
            plans = session.sql(f"{explain} {statement}")
            assert plans.schema().names == ["plan_type", "plan"]

        assert shown(session) == []


class TestDropIndex:
    @pytest.fixture(autouse=True)
    def indexes(self, session: LanceSessionContext) -> None:
        session.sql("CREATE INDEX ON images USING label_list (tags)")
        session.sql('CREATE INDEX "By label" ON images USING list_element (detections.label)')

    @pytest.mark.parametrize("on", ["", " ON images", ' ON "public"."images";'])
    def test_by_name(self, session: LanceSessionContext, on: str) -> None:
        assert session.sql(f"DROP INDEX Tags_idx{on}").collect() == []
        assert shown(session) == [("images", "By label")]
        session.sql(f'DROP INDEX IF EXISTS "By label"{on}')
        assert shown(session) == []
        assert not uses_index(session, CARS)

    def test_a_missing_one(self, session: LanceSessionContext) -> None:
        for on in ("", " ON images"):
            with pytest.raises(
                StatementError, match=r"^Execution error: Index 'nope' doesn't exist\."
            ):
                session.sql(f"DROP INDEX nope{on}")
            session.sql(f"DROP INDEX IF EXISTS nope{on}")
        with pytest.raises(ValueError, match=r"table .*nope' not found"):
            session.sql("DROP INDEX tags_idx ON nope")

    def test_a_name_on_several_tables(self, session: LanceSessionContext, tmp_path: Path) -> None:
        session.register_lance("others", write_images(tmp_path / "others.lance"))
        session.sql("CREATE INDEX ON others USING label_list (tags)")

        with pytest.raises(StatementError, match="on several tables: images, others"):
            session.sql("DROP INDEX tags_idx")
        session.sql("DROP INDEX tags_idx ON others")

        assert shown(session) == [("images", "tags_idx"), ("images", "By label")]

    @pytest.mark.parametrize(
        ("statement", "message"),
        [
            ("DROP INDEX", "expected an index name, found: EOF"),
            ("DROP INDEX 'tags_idx'", "expected an index name, found: 'tags_idx'"),
            ("DROP INDEX tags_idx ON", "expected a table name, found: EOF"),
            ("DROP INDEX tags_idx CASCADE", "expected end of statement, found: CASCADE"),
        ],
    )
    def test_other_forms(self, session: LanceSessionContext, statement: str, message: str) -> None:
        with pytest.raises(StatementError, match=f"^SQL error: {message}"):
            session.sql(statement)

    def test_it_is_ddl(self, session: LanceSessionContext) -> None:
        with pytest.raises(StatementError, match="DDL not supported: DropIndex"):
            session.sql("DROP INDEX tags_idx", NO_DDL)
        with pytest.raises(ValueError, match="not implemented"):
            session.sql("EXPLAIN DROP INDEX tags_idx")

        session.sql("SELECT 1 -- DROP INDEX tags_idx", NO_DDL)
        assert len(shown(session)) == 2


class TestShowIndexes:
    def test_of_one_table_or_of_all(self, session: LanceSessionContext, tmp_path: Path) -> None:
        session.register_lance("others", write_images(tmp_path / "others.lance"))
        session.from_arrow(pa.table({"a": [1]}), "memory")
        session.sql("CREATE INDEX ON images USING label_list (tags)")
        session.sql("CREATE INDEX ON others USING label_list (tags)")

        of_images, of_others = ("images", "tags_idx"), ("others", "tags_idx")
        assert shown(session) == [of_images, of_others]
        for statement in ("SHOW INDEXES FROM images", "show index in public.images", "SHOW KEYS"):
            assert of_images[1] in dict(shown(session, statement)).values()
        assert shown(session, "SHOW INDEXES FROM others;") == [of_others]
        assert shown(session, "SHOW INDEXES FROM memory") == []
        assert session.sql("SHOW INDEXES", NO_DDL).count() == 2

    def test_it_is_a_query(self, session: LanceSessionContext) -> None:
        session.sql("CREATE INDEX ON images USING label_list (tags)")

        rows = session.sql("SHOW INDEXES").select("name", "kind").to_pylist()

        assert rows == [{"name": "tags_idx", "kind": "LabelList"}]

    def test_other_words_are_datafusions(self, session: LanceSessionContext) -> None:
        assert session.sql("SHOW TABLES").count() > 0
        with pytest.raises(ValueError, match="is not a variable"):
            session.sql("SHOW INDEXES LIKE 'x'")
        with pytest.raises(ValueError, match=r"table .*nope' not found"):
            session.sql("SHOW INDEXES FROM nope")
        with pytest.raises(StatementError, match="expected a table name, found: EOF"):
            session.sql("SHOW INDEXES FROM")
