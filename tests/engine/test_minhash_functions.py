"""The MinHash functions in sessions: in SQL, in texts for DataFrames, beside `any_element`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from datafusion import SessionContext, udf

from datafusion_lance.engine import InvalidArgumentError, LanceSessionContext

NAMES = ("minhash_distance", "minhash_similarity", "minhash_signature")
ROWS = pa.table(
    {
        "id": [0, 1, 2, 3, 4],
        "text": ["one two three four", "one two three five", "unlike the others", None, " "],
        "query": ["one two three four", None, "unlike the others", "x", "x"],
        "d": [[{"k": 1}], [{"k": 1}], [{"k": 2}], [{"k": 1}], []],
    }
)
LABELS = pa.list_(pa.string())
FIRST = "'one two three four'"


@pytest.fixture(params=[True, False], ids=["indexes", "no indexes"])
def session(request: pytest.FixtureRequest, tmp_path: Path) -> LanceSessionContext:
    lance.write_dataset(ROWS, tmp_path / "t.lance")
    session = LanceSessionContext(use_indexes=request.param)
    session.register_lance("t", tmp_path / "t.lance")
    return session


def values(session: SessionContext, query: str, **arguments: Any) -> list[Any]:
    """The one column of the result."""
    (column,) = session.sql(query, **arguments).to_pydict().values()
    return column


def ones(texts: pa.Array, *_: pa.Array) -> pa.Array:
    return pa.array([1.0] * len(texts))


def user_s(*parameters: pa.DataType, name: str = "minhash_distance") -> Any:
    return udf(ones, [pa.string(), pa.string(), *parameters], pa.float64(), "immutable", name)


class TestInSql:
    def test_where_order_and_select(self, session: LanceSessionContext) -> None:
        distance = f"minhash_distance(text, {FIRST})"

        assert values(session, f"SELECT id FROM t WHERE {distance} <= 0.0") == [0]
        nearest = f"SELECT id FROM t ORDER BY {distance} LIMIT 3"
        assert values(session, nearest) == [0, 1, 2]
        assert values(session, f"SELECT {distance} + minhash_similarity(text, {FIRST}) FROM t") == [
            *[1.0] * 3,
            *[None] * 2,
        ]
        signatures = values(session, "SELECT minhash_signature(text) FROM t ORDER BY id")
        assert [s and len(s) for s in signatures] == [128, 128, 128, None, None]

    def test_two_columns(self, session: LanceSessionContext) -> None:
        pairwise = "SELECT minhash_distance(text, query) FROM t ORDER BY id"
        assert values(session, pairwise) == [0.0, None, 0.0, None, None]

    def test_the_filter_of_an_aggregate(self, session: LanceSessionContext) -> None:
        session.register_udf(user_s(name="one"))
        other = "'unlike the others'"
        counted = {
            f"minhash_distance(text, {other}) = 0": 1,
            f"minhash_distance(text, {other}, 64, 8) = 0 OR id = 0": 2,
            f"one(text, {other}) = 1": 5,
        }
        for predicate, count in counted.items():
            query = f"SELECT count(*) FILTER (WHERE {predicate}) FROM t"
            assert values(session, query) == [count], predicate

    def test_a_join_on_a_distance(self, session: LanceSessionContext) -> None:
        joined = "SELECT a.id FROM t a JOIN t b ON minhash_distance(a.text, b.query, 64) = 0.0"
        assert sorted(values(session, joined)) == [0, 2]

    @pytest.mark.parametrize("call", ["MINHASH_DISTANCE", '"minhash_distance"'])
    def test_spellings(self, session: LanceSessionContext, call: str) -> None:
        for parameters in ("", ", 64", ", 64, 8", ", 64, 8, 2"):
            query = f"SELECT id FROM t WHERE {call}(text, {FIRST}{parameters}) = 0"
            assert values(session, query) == [0]

    def test_parameters_are_the_index_s_words(self, session: LanceSessionContext) -> None:
        one_token = f"SELECT minhash_distance(text, {FIRST}, 256, 16, 1) FROM t WHERE id = 1"
        given = values(session, one_token)[0]
        default = values(session, f"SELECT minhash_distance(text, {FIRST}) FROM t WHERE id = 1")[0]
        # Of five tokens three are in both, of three shingles of three tokens one is.
        assert given == pytest.approx(1 - 3 / 5, abs=0.1)
        assert default == pytest.approx(1 - 1 / 3, abs=0.1)

    def test_columns_are_named_as_the_call(self, session: LanceSessionContext) -> None:
        query = "SELECT minhash_distance(text, 'q', 64, 8), minhash_signature(text, 16) FROM t"
        assert session.sql(query).schema().names == [
            'minhash_distance(t.text,Utf8("q"),Int64(64),Int64(8))',
            "minhash_signature(t.text,Int64(16))",
        ]

    def test_every_type_of_text(self, session: LanceSessionContext) -> None:
        for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.null()):
            column = pa.array([None, "a b"] if kind != pa.null() else [None, None]).cast(kind)
            session.register_batch("typed", pa.record_batch({"c": column}))
            expected = [None, None if kind == pa.null() else 0.0]
            assert values(session, "SELECT minhash_distance(c, 'a b') FROM typed") == expected
            assert values(session, "SELECT minhash_distance(c, 'a b', 64) FROM typed") == expected
            session.deregister_table("typed")

    def test_constants(self, session: LanceSessionContext) -> None:
        assert values(session, "SELECT minhash_distance('a', 'A', 64)") == [0.0]
        assert values(session, "SELECT minhash_distance(NULL, 'A')") == [None]
        assert values(session, "SELECT minhash_distance('', 'A', 64)") == [None]

    def test_views_and_subqueries(self, session: LanceSessionContext) -> None:
        session.sql(
            f"CREATE VIEW v AS SELECT id, minhash_distance(text, {FIRST}, 64) AS far FROM t"
        )
        assert values(session, "SELECT id FROM v WHERE far = 0") == [0]
        inner = f"SELECT id FROM t WHERE minhash_distance(text, {FIRST}, 64) = 0"
        assert values(session, f"SELECT id FROM t WHERE id IN ({inner})") == [0]
        session.sql(
            f"CREATE TABLE made AS SELECT minhash_distance(text, {FIRST}, 64) AS far FROM t"
        )
        assert values(session, "SELECT far FROM made WHERE far = 0") == [0.0]

    def test_many_rows_in_several_partitions(self, session: LanceSessionContext) -> None:
        """The runtime's own threads sign them."""
        texts = [f"text {n} of {n % 9} words" for n in range(12_000)]
        for part in range(3):
            batch = pa.record_batch({"c": texts[part::3]})
            session.register_batch(f"part{part}", batch)
        union = " UNION ALL ".join(f"SELECT c FROM part{part}" for part in range(3))
        query = f"SELECT c FROM ({union}) WHERE minhash_distance(c, 'text 77 of 5 words') = 0"
        assert values(session, query) == ["text 77 of 5 words"]

    def test_placeholders(self, session: LanceSessionContext) -> None:
        text = FIRST.strip("'")
        query = "SELECT id FROM t WHERE minhash_distance(text, $1) <= $2"
        assert values(session, query, param_values={"1": text, "2": 0.0}) == [0]
        query = "SELECT id FROM t WHERE minhash_distance(text, $1, $2, $3) = 0"
        assert values(session, query, param_values={"1": text, "2": 64, "3": pa.scalar(8)}) == [0]
        query = "SELECT id FROM t WHERE minhash_distance(text, $q, $n) = 0"
        assert values(session, query, q=FIRST, n=64) == [0]

    @pytest.mark.parametrize("parameters", ["", ", 64"])
    def test_prepared_statements(self, session: LanceSessionContext, parameters: str) -> None:
        session.sql(
            f"PREPARE near AS SELECT id FROM t WHERE minhash_distance(text, $1{parameters}) = 0"
        )
        assert values(session, f"EXECUTE near({FIRST})") == [0]
        assert values(session, "EXECUTE near('unlike the others')") == [2]
        with pytest.raises(Exception, match="already exists"):
            session.sql("PREPARE near AS SELECT 1")
        session.sql("DEALLOCATE near")
        with pytest.raises(Exception, match="does not exist"):
            session.sql(f"EXECUTE near({FIRST})")
        session.sql("PREPARE near AS SELECT 7 AS seven")
        assert values(session, "EXECUTE near") == [7]

    def test_a_name_that_is_no_call(self, session: LanceSessionContext) -> None:
        query = "SELECT b FROM (VALUES (1, 2, 3)) AS minhash_distance(a, b, c)"
        assert values(session, query) == [2]


class TestBesideAnyElement:
    WHERE = f"any_element(d, 'k = 1') AND minhash_distance(text, {FIRST}, 64) < 0.9"

    def test_in_one_statement(self, session: LanceSessionContext) -> None:
        assert sorted(values(session, f"SELECT id FROM t WHERE {self.WHERE}")) == [0, 1]
        # Again, as the session remembers it.
        assert sorted(values(session, f"SELECT id FROM t WHERE {self.WHERE}")) == [0, 1]

    def test_both_columns_are_named(self, session: LanceSessionContext) -> None:
        query = "SELECT any_element(d, 'k = 1'), minhash_distance(text, 'q', 64) FROM t"
        assert session.sql(query).schema().names == [
            'any_element(t.d,Utf8("k = 1"))',
            'minhash_distance(t.text,Utf8("q"),Int64(64))',
        ]

    def test_prepared(self, session: LanceSessionContext) -> None:
        where = self.WHERE.replace(FIRST, "$1")
        session.sql(f"PREPARE both AS SELECT id FROM t WHERE {where}")
        assert sorted(values(session, f"EXECUTE both({FIRST})")) == [0, 1]
        session.sql("DEALLOCATE both")
        with pytest.raises(Exception, match="does not exist"):
            session.sql(f"EXECUTE both({FIRST})")

    def test_in_texts_for_dataframes(self, session: LanceSessionContext) -> None:
        assert sorted(session.table("t").filter(self.WHERE).to_pydict()["id"]) == [0, 1]


class TestErrors:
    @pytest.mark.parametrize(
        ("call", "message"),
        [
            ("minhash_distance(text, 'q', 100)", "num_hashes: got 100, takes a multiple of"),
            ("minhash_distance(text, 'q', 128, 512)", "num_bands: got 512, takes a number from 1"),
            ("minhash_signature(text, 5000)", "num_hashes: got 5000, takes a number from 1"),
            ("minhash_similarity(text, 'q', id)", "num_hashes: got 'id', takes a whole number"),
            ("minhash_distance(text, 'q', 1, 1, 1, 1)", "takes two texts, and up to 3 parameters"),
        ],
    )
    def test_parameters_are_checked_when_the_statement_is_planned(
        self, session: LanceSessionContext, call: str, message: str
    ) -> None:
        with pytest.raises(InvalidArgumentError, match=message):
            session.sql(f"SELECT {call} FROM t")
        with pytest.raises(InvalidArgumentError, match=message):
            session.table("t").parse_sql_expr(call)

    def test_too_few_arguments_are_datafusion_s_error(self, session: LanceSessionContext) -> None:
        with pytest.raises(Exception, match="minhash_distance"):
            session.sql("SELECT minhash_distance(text) FROM t")


class TestInTexts:
    def test_parse_sql_expr(self, session: LanceSessionContext) -> None:
        table = session.table("t")
        for parameters in ("", ", 64", ", 64, 8, 2"):
            expression = table.parse_sql_expr(f"minhash_distance(text, {FIRST}{parameters}) = 0")
            assert table.filter(expression).to_pydict()["id"] == [0]
            filtered = table.filter(f"minhash_distance(text, {FIRST}{parameters}) = 0")
            assert filtered.to_pydict()["id"] == [0]


class TestRegistration:
    def test_a_session_lists_them(self) -> None:
        assert set(LanceSessionContext().udfs()) - set(SessionContext().udfs()) == set(NAMES)

    def test_a_wrapped_context_and_its_copies_have_them(self) -> None:
        plain = SessionContext()
        sessions = [LanceSessionContext.wrap(plain), LanceSessionContext.wrap(plain)]
        sessions += [session.enable_url_table() for session in sessions]
        for session in sessions:
            assert isinstance(session, LanceSessionContext)
            assert values(session, "SELECT minhash_distance('a', 'a', 64)") == [0.0]
            assert values(session, "SELECT minhash_distance('a', 'a')") == [0.0]

    def test_a_user_s_function_stays(self) -> None:
        plain = SessionContext()
        plain.register_udf(user_s())

        session = LanceSessionContext.wrap(plain)

        assert values(session, "SELECT minhash_distance('a', 'a')") == [1.0]
        assert values(session, "SELECT minhash_similarity('a', 'a')") == [1.0]
        with pytest.raises(Exception, match="minhash_distance"):
            session.sql("SELECT minhash_distance('a', 'a', 64)")

    def test_a_user_s_function_wins_also_when_it_comes_later(self) -> None:
        session = LanceSessionContext()
        assert values(session, "SELECT minhash_distance('a', 'a', 64)") == [0.0]

        session.register_udf(user_s(pa.int64()))

        assert values(session, "SELECT minhash_distance('a', 'a', 64)") == [1.0]
        assert values(session, "SELECT minhash_distance('a', 'a', 100)") == [1.0]
        session.table_exist("t")
        assert values(
            LanceSessionContext.wrap(session), "SELECT minhash_distance('a', 'a', 64)"
        ) == [1.0]

    def test_a_function_that_was_deregistered_is_gone(self) -> None:
        session = LanceSessionContext()
        session.deregister_udf("minhash_distance")
        for parameters in ("", ", 64"):
            with pytest.raises(Exception, match="minhash_distance"):
                session.sql(f"SELECT minhash_distance('a', 'a'{parameters})")

    @pytest.mark.parametrize(
        "where",
        [
            "minhash_distance(text, 'x', 64) IS NOT NULL",
            # DataFusion cannot push this down, and the statement is planned apart.
            "(id IN (NULL, 0, 1, 2, 3, 4)) AND minhash_distance(text, 'x', 64) IS NOT NULL",
        ],
    )
    def test_parameters_beside_a_function_in_the_place_of_datafusion_s(
        self, where: str, tmp_path: Path
    ) -> None:
        def starts_with_a(tags: pa.Array, _: pa.Array) -> pa.Array:
            return pa.array([row[0] == "a" for row in tags.to_pylist()])

        own = udf(starts_with_a, [LABELS, LABELS], pa.bool_(), "immutable", "array_has_all")
        labels = ROWS.append_column("l", pa.array([["a"], ["a"], ["z"], ["a"], ["a"]], LABELS))
        lance.write_dataset(labels, tmp_path / "t.lance")
        # DataFusion copies the functions of a session in any order: one session proves little.
        for _ in range(8):
            session = LanceSessionContext()
            session.register_udf(own)
            session.register_lance("t", tmp_path / "t.lance")
            has = "array_has_all(l, make_array('z'))"

            session.sql(f"CREATE TABLE c AS SELECT id FROM t WHERE {has} AND {where}").collect()

            assert values(session, f"SELECT id FROM t WHERE {has} AND {where}") == [0, 1]
            assert values(session, "SELECT id FROM c") == [0, 1]

    def test_threads(self, session: LanceSessionContext) -> None:
        def ask(number: int) -> list[Any]:
            num_hashes = 16 * (1 + number % 5)
            query = f"SELECT id FROM t WHERE minhash_distance(text, {FIRST}, {num_hashes}) = 0"
            return values(session, query)

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(ask, range(40))) == [[0]] * 40
