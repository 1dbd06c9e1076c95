"""`minhash_search` in statements: what it gives, where it may stand, and bad input."""

from __future__ import annotations

import gc
import shutil
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pytest
from datafusion import SessionContext, col, functions, udf, udtf
from datafusion.catalog import Table

from datafusion_lance.engine import (
    LanceSessionContext,
    minhash_binding,
    minhash_search,
)
from datafusion_lance.engine.indexed_row_filter import filter_of
from datafusion_lance.indexes.minhash_lsh.parameters import MinHashParameters
from datafusion_lance.indexes.minhash_lsh.search import RowFilter
from datafusion_lance.indexes.minhash_lsh.signature import SignatureProcedure

from .minhash_corpus import (
    QUERY,
    copies,
    create_index,
    ids,
    search,
    select,
    session_of,
    write_copies,
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_copies(tmp_path_factory.mktemp("search") / "docs.lance")


@pytest.fixture(scope="module")
def session(path: Path) -> LanceSessionContext:
    return session_of(path)


def distances() -> list[float | None]:
    """By signing every text, in the order of ids."""
    procedure = SignatureProcedure.of(MinHashParameters())
    wanted = procedure.sign_text(QUERY)
    signed, signatures = procedure.sign(copies()["text"])
    found: list[float | None] = [None] * len(signed)
    for at, signature in zip(np.flatnonzero(signed), signatures, strict=True):
        found[at] = float(np.float32(np.mean(signature != wanted)))
    return found


def ranked(chosen: Callable[[int], bool] = lambda _: True) -> list[int]:
    """The ids of the rows that have a distance, the closest first."""
    found = distances()
    return [
        at
        for _, at in sorted(
            (distance, at)
            for at, distance in enumerate(found)
            if distance is not None and chosen(at)
        )
    ]


# What it gives


def test_all_columns_and_the_distance(session: LanceSessionContext, path: Path) -> None:
    found = session.sql(f"SELECT * FROM {search(3)}").to_arrow_table()
    assert found.schema.names == [*lance.dataset(path).schema.names, "_distance"]
    assert found.schema.field("_distance").type == pa.float32()
    assert found["id"].to_pylist() == ranked()[:3] == [0, 1, 2]
    assert found["_distance"].to_pylist() == distances()[:3]
    assert found.select(lance.dataset(path).schema.names).equals(
        lance.dataset(path).to_table().take([0, 1, 2]).cast(found.schema.remove(6))
    )


def test_row_ids_are_a_column_where_they_are_one_of_the_table(path: Path) -> None:
    session = LanceSessionContext()
    session.register_lance("docs", path, row_id=True)
    found = session.sql(f"SELECT _distance, _rowid FROM {search(2)}")
    assert found.schema().names == ["_distance", "_rowid"]
    assert found.to_pydict()["_rowid"] == [0, 1]


def test_only_the_columns_that_are_asked_for_are_read(
    session: LanceSessionContext, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Path(shutil.copytree(path, tmp_path / "copy"))
    other = session_of(copy)
    for file in (copy / "data").iterdir():
        file.unlink()
    wanted = ids(session, f"SELECT count(*) AS id FROM {search(9)}")
    assert ids(other, f"SELECT count(*) AS id FROM {search(9)}") == wanted
    near = other.sql(f"SELECT _distance FROM {search(9)} WHERE _distance < 0.3").to_pydict()
    assert near["_distance"] == [
        each for each in distances()[:9] if each is not None and each < 0.3
    ]
    with pytest.raises(Exception, match="Not found"):
        other.sql(select(9)).collect()


def test_filters_above_it_see_the_rows_within_the_limit(session: LanceSessionContext) -> None:
    assert ids(session, f"SELECT id FROM {search(4)} WHERE lang = 'en'") == [1, 3]
    assert ids(session, f"SELECT id FROM {search(4)} WHERE id % 2 = 1 AND text LIKE '% bur %'") == [
        1,
        3,
    ]
    assert ids(session, f"SELECT id FROM {search(4)} WHERE array_has(tags, 't1')") == [1]
    assert ids(session, f"SELECT id FROM {search(4)} WHERE id IN (NULL, 3)") == [3]
    assert ids(session, f"SELECT id FROM {search(4)} WHERE NULL") == []
    assert ids(session, f"SELECT id FROM {search(4)} WHERE _distance > 0.01 LIMIT 1") == [1]
    assert ids(session, f"SELECT count(*) AS id FROM {search(4)} WHERE lang = 'de'") == [2]
    assert ids(session, f"SELECT id FROM {search(4)} ORDER BY id DESC OFFSET 1") == [2, 1, 0]


@pytest.mark.parametrize(
    ("filter", "chosen"),
    [
        ("lang = 'en'", lambda at: at % 2 == 1),
        ("id % 3 = 0", lambda at: at % 3 == 0),
        ("array_has(tags, 't2')", lambda at: at % 3 == 2),
        ("any_element(d, 'k = 1 AND v > 2')", lambda at: at % 4 == 1 and at > 2),
        ('docs.id > 3 AND "lang" IS NOT NULL', lambda at: at > 3),
        ("id IN (NULL, 4)", lambda at: at == 4),
        ("tripled(id) < 12", lambda at: at < 4),
        ("minhash_distance(text, 'bob dob', 64, 8, 1) < 0.99 AND id < 5", lambda at: at < 5),
        ("any_element(d, 'k = 1') OR minhash_similarity(text, 'b') > 1", lambda at: at % 4 == 1),
        ("true", lambda _: True),
        ("NULL", lambda _: False),
    ],
)
def test_only_rows_that_pass_the_filter_count(
    path: Path, filter: str, chosen: Callable[[int], bool]
) -> None:
    for use_indexes in (True, False):
        session = session_of(path, use_indexes=use_indexes)
        session.register_udf(
            udf(lambda n: pc.multiply(n, 3), [pa.int64()], pa.int64(), "stable", "tripled")
        )
        text = "'" + filter.replace("'", "''") + "'"
        for limit in (1, 3, 1000):
            found = ids(session, select(limit, text, "'exhaustive'"))
            assert found == ranked(chosen)[:limit]
        # By bands only some of them are found, and they are the first.
        found = ids(session, select(2, text))
        assert found == ranked(chosen)[: len(found)]


@pytest.mark.parametrize("filter", ["id % 3 = 0", "array_has(tags, 't0')"])
def test_a_filter_is_planned_once_while_the_session_stays_as_it_is(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filter: str
) -> None:
    planned: list[str] = []

    def counted(*arguments: Any, **options: Any) -> RowFilter:
        planned.append(str(arguments[2]))
        return filter_of(*arguments, **options)

    monkeypatch.setattr(minhash_binding, "filter_of", counted)
    session = session_of(path)
    text = "'" + filter.replace("'", "''") + "'"
    found = ids(session, select(1000, text))
    assert found
    assert all(at % 3 == 0 for at in found)

    assert [ids(session, select(limit, text)) for limit in (3, 1000)] == [found[:3], found]
    assert len(planned) == 1
    session.sql("SET datafusion.execution.batch_size = 100")
    assert ids(session, select(1000, text)) == found
    assert len(planned) == 2
    session.deregister_table("docs")
    kept = lance.write_dataset(copies().slice(4), tmp_path / "docs.lance")
    session.register_lance("docs", kept)
    assert ids(session, select(1000, text, "'exhaustive'"))[:2] == [6, 9]
    assert len(planned) == 3


def test_a_filter_that_may_change_is_planned_each_time(path: Path) -> None:
    session = session_of(path)
    for name, kept in (("even", 0), ("even", 1)):
        session.register_udf(
            udf(
                lambda n, kept=kept: pc.equal(pc.bit_wise_and(n, 1), kept),
                [pa.int64()],
                pa.bool_(),
                "immutable",
                name,
            )
        )
        assert {at % 2 for at in ids(session, select(6, f"'{name}(id)'"))} == {kept}
    found = {tuple(ids(session, select(6, "'random() < 0.5'"))) for _ in range(20)}
    assert len(found) > 1


def test_modes(path: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(path, tmp_path / "copy"))
    added = copies().slice(0, 2).set_column(0, "id", pa.array([100, 101]))
    lance.write_dataset(added, copy, mode="append")
    session = session_of(copy)
    for mode in ("", ", NULL, NULL", ", NULL, 'approximate'", ", NULL, 'Approximate'"):
        call = search(4).removesuffix(")") + mode + ")"
        assert ids(session, f"SELECT id FROM {call}") == [0, 100, 1, 101]
    assert ids(session, select(4, "NULL", "'indexed'")) == [0, 1, 2, 3]
    every = ids(session, select(1000, "NULL", "'exhaustive'"))
    assert every[:5] == [0, 100, 1, 101, 2]
    assert len(every) == len(ranked()) + 2
    near = ids(session, select(1000))
    assert 10 < len(near) < len(every)
    assert near == [one for one in every if one in set(near)]

    without = session_of(copy, use_indexes=False)
    assert ids(without, select(1000)) == every
    indexed = ids(without, select(1000, "NULL", "'indexed'"))
    assert indexed == [one for one in every if one < 100]


@pytest.mark.parametrize("texts", [[None, " "], [QUERY, "unlike"], [QUERY, None]])
def test_none_of_the_rows_without_index_counts(
    path: Path, tmp_path: Path, texts: list[str | None]
) -> None:
    """None of them has a signature, or passes the filter."""
    copy = shutil.copytree(path, tmp_path / "docs.lance")
    added = copies().slice(0, 2).set_column(0, "id", pa.array([100, 101]))
    place = added.schema.get_field_index("text")
    lance.write_dataset(added.set_column(place, "text", pa.array(texts)), copy, mode="append")
    session = session_of(copy)
    for mode in ("'approximate'", "'exhaustive'"):
        assert ids(session, select(4, "'id < 100'", mode)) == [0, 1, 2, 3]
        if texts[1] is None:
            assert ids(session, select(4, "'id <> 100'", mode)) == [0, 1, 2, 3]
    if texts[0] is None:
        assert ids(session, select(4)) == [0, 1, 2, 3]


def test_rows_without_index_are_signed_once_for_a_version(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closest = ranked()[:5]
    signed: list[int] = []
    sign = SignatureProcedure.sign

    def counting(self: SignatureProcedure, texts: pa.Array) -> Any:
        signed.append(len(texts))
        return sign(self, texts)

    monkeypatch.setattr(SignatureProcedure, "sign", counting)
    session = session_of(path)
    plain = search(5, column="plain")
    assert ids(session, f"SELECT id FROM {plain}") == ids(session, f"SELECT id FROM {plain}")
    assert sum(signed) == len(copies())
    assert ids(session, select(2, "'id < 9'", column="plain")) == [0, 1]
    assert sum(signed) == len(copies())
    small = session_of(path, cache_bytes=0)
    for times in (2, 3):
        assert ids(small, f"SELECT id FROM {plain}") == closest
        assert sum(signed) == times * len(copies())
    assert ids(small, select(2, "'id < 9'", column="plain")) == [0, 1]
    assert sum(signed) == 3 * len(copies()) + 9


def test_a_column_without_index_is_ranked_whole(path: Path) -> None:
    found = session_of(path).sql(f"SELECT id, _distance FROM {search(1000, column='plain')}")
    assert found.to_pydict()["id"] == ranked()
    assert found.to_pydict()["_distance"] == [distances()[at] for at in ranked()]


def test_the_parameters_are_those_of_the_index(tmp_path: Path) -> None:
    path = tmp_path / "words.lance"
    lance.write_dataset(pa.table({"id": [0, 1], "text": ["a b", "c b"]}), path)
    create_index(path, num_hashes=64, num_bands=64, shingle_size=1)
    for use_indexes in (True, False):
        session = session_of(path, use_indexes=use_indexes)
        call = search(5, text="'a b'")
        found = session.sql(f"SELECT id, _distance FROM {call}").to_pydict()
        assert found["id"] == [0, 1]
        assert 0 < found["_distance"][1] < 1
        assert found["_distance"][1] * 64 % 1 == 0


def test_texts_of_many_rows_come_in_batches_in_order(tmp_path: Path) -> None:
    path = tmp_path / "many.lance"
    near = [f"{QUERY} {at % 700}" for at in range(20_000)]
    columns = {"id": range(20_000), "text": near, "tags": [[str(at)] for at in range(20_000)]}
    lance.write_dataset(pa.table(columns), path, max_rows_per_file=7000)
    create_index(path)
    session = session_of(path)
    found = session.sql(f"SELECT id, tags, _distance FROM {search(15_000)}").to_arrow_table()
    assert found.num_rows == 15_000
    assert found["_distance"].to_pylist() == sorted(found["_distance"].to_pylist())
    assert found["tags"].to_pylist() == [[str(at)] for at in found["id"].to_pylist()]
    assert len(set(found["id"].to_pylist())) == 15_000


@pytest.mark.parametrize("text", ["''", "' '", "NULL", "'!?'"])
def test_a_text_without_tokens_finds_nothing(session: LanceSessionContext, text: str) -> None:
    for rest in ((), ("NULL", "'exhaustive'")):
        assert ids(session, select(5, *rest, text=text)) == []
        assert ids(session, f"SELECT count(*) AS id FROM {search(5, *rest, text=text)}") == [0]


def test_limits(session: LanceSessionContext) -> None:
    assert ids(session, select(0)) == []
    assert ids(session, select("1 + 1")) == [0, 1]
    for huge in (2**63 - 1, 2**64 - 1):
        assert ids(session, select(huge, "NULL", "'exhaustive'")) == ranked()
        assert ids(session, select(huge))[:3] == [0, 1, 2]


# Where it may stand


STATEMENTS = {
    "join": ("SELECT d.id FROM docs d JOIN {0} s ON d.id = s.id WHERE d.lang = 'en'", [1, 3]),
    "left join": ("SELECT s.id FROM {0} s LEFT JOIN docs d ON d.id = s.id + 90", [0, 1, 2, 3]),
    "cte": ("WITH s AS (SELECT * FROM {0}) SELECT a.id FROM s a JOIN s b USING (id)", [0, 1, 2, 3]),
    "subquery": ("SELECT id FROM (SELECT * FROM {0} ORDER BY _distance LIMIT 2)", [0, 1]),
    "in": ("SELECT id FROM docs WHERE id IN (SELECT id FROM {0})", [0, 1, 2, 3]),
    "not in": ("SELECT id FROM docs WHERE id NOT IN (SELECT id FROM {0}) AND id < 6", [4, 5]),
    "exists": (
        "SELECT id FROM docs o WHERE EXISTS (SELECT 1 FROM {0} s WHERE s.id = o.id)",
        [0, 1, 2, 3],
    ),
    "scalar": ("SELECT id FROM docs WHERE id = (SELECT max(id) FROM {0})", [3]),
    "union": ("SELECT id FROM {0} UNION SELECT id FROM {1}", [0, 1, 2, 3]),
    "union all": ("SELECT id FROM {0} UNION ALL SELECT id FROM {1}", [0, 0, 1, 1, 2, 3]),
    "except": ("SELECT id FROM {0} EXCEPT SELECT id FROM {1}", [2, 3]),
    "aggregate": ("SELECT max(id) AS id FROM {0} GROUP BY lang", [2, 3]),
    "window": ("SELECT sum(id) OVER (ORDER BY _distance) AS id FROM {0}", [0, 1, 3, 6]),
    "several": ("SELECT a.id FROM {0} a, {1} b WHERE a.id = b.id", [0, 1]),
    "lateral": ("SELECT s.id FROM docs d, LATERAL {1} s WHERE d.id = 7", [0, 1]),
    "columns": ("SELECT x.b AS id FROM {0} AS x(b)", [0, 1, 2, 3]),
    "any_element": ("SELECT id FROM {0} WHERE any_element(d, 'k = 1')", [1]),
    "any_element elsewhere": (
        "SELECT s.id FROM {0} s JOIN docs d ON d.id = s.id WHERE any_element(d.d, 'k = 1')",
        [1],
    ),
    "served elsewhere": (
        "SELECT s.id FROM {0} s JOIN docs d ON d.id = s.id WHERE array_has(d.tags, 't1')",
        [1],
    ),
}


@pytest.mark.parametrize("name", STATEMENTS)
@pytest.mark.parametrize("use_indexes", [True, False])
def test_it_stands_anywhere(path: Path, tmp_path: Path, name: str, use_indexes: bool) -> None:
    copy = Path(shutil.copytree(path, tmp_path / "copy"))
    lance.dataset(copy).create_scalar_index("tags", "LABEL_LIST")
    session = session_of(copy, use_indexes=use_indexes)
    statement, wanted = STATEMENTS[name]
    sql = statement.format(search(4), search(2))
    if name == "columns":
        names = "b, " + ", ".join(f"c{at}" for at in range(6))
        sql = sql.replace("x(b)", f"x({names})")
    found = session.sql(sql)
    assert sorted(found.to_pydict()["id"]) == wanted
    assert sorted(pa.table(found)["id"].to_pylist()) == wanted
    assert found.count() == len(wanted)
    if name != "any_element" and "any" not in name:
        assert sorted(ids(session.plain, sql)) == wanted
    if use_indexes and name == "served elsewhere":
        plan = session.sql(f"EXPLAIN {sql}").to_pydict()["plan"][-1]
        assert "kind=LabelList" in plan
        assert "kind=MinHashLsh" in plan


def test_the_name_of_the_table_may_be_any_constant(session: LanceSessionContext) -> None:
    for rest in ((), ("'lang = ''en'''",)):
        wanted = ids(session, select(2, *rest))
        other = select(2, *rest).replace("'docs'", "'do' || 'cs'")
        assert ids(session, other) == wanted
        assert ids(session, f"{other} WHERE any_element(d, 'v >= 0')") == wanted


def test_views_prepared_statements_and_dataframes(path: Path) -> None:
    session = session_of(path)
    session.sql(f"CREATE VIEW near AS SELECT id, lang, _distance FROM {search(4)}")
    assert ids(session, "SELECT id FROM near WHERE lang = 'en'") == [1, 3]
    session.sql(f"PREPARE p AS SELECT id FROM {search(4)} WHERE id > $1")
    assert ids(session, "EXECUTE p(1)") == [2, 3]
    session.sql(f"CREATE TABLE kept AS SELECT id FROM {search(4)}")
    assert ids(session, "SELECT id FROM kept ORDER BY id") == [0, 1, 2, 3]
    frame = session.sql(f"SELECT * FROM {search(4)}").filter(col("id") > 0).select(col("id"))
    assert frame.sort(col("id").sort(ascending=False)).limit(2).to_pydict() == {"id": [3, 2]}
    total = session.table("near").aggregate([], [functions.sum(col("id")).alias("id")])
    assert total.to_pydict() == {"id": [6]}
    temporary = session.sql(select(2)).into_view(temporary=True)
    session.register_table("temporary", temporary)
    assert ids(session, "SELECT id FROM temporary") == [0, 1]
    assert [len(batch.to_pyarrow()) for batch in session.sql(select(4))] == [4]


def test_a_dataframe_searches_once_and_keeps_its_version(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Path(shutil.copytree(path, tmp_path / "copy"))
    session = session_of(copy)
    searches: list[object] = []
    run = minhash_search.MinHashSearch.run

    def counting(self: minhash_search.MinHashSearch, stats: Any) -> Any:
        searches.append(self)
        return run(self, stats)

    monkeypatch.setattr(minhash_search.MinHashSearch, "run", counting)
    frame = session.sql(select(3))
    frame.execution_plan()
    session.sql(f"EXPLAIN SELECT id FROM {search(3)}").collect()
    assert searches == []
    assert frame.to_pydict() == frame.to_pydict() == {"id": [0, 1, 2]}
    assert len(searches) == 1
    lance.dataset(copy).delete("id = 1")
    session.refresh("docs")
    assert frame.to_pydict() == {"id": [0, 1, 2]}
    assert ids(session, select(3)) == [0, 2, 3]


# Who has the function


def test_every_session_has_the_functions(path: Path) -> None:
    found = select(1)
    plain = SessionContext()
    wrapped = LanceSessionContext.wrap(plain)
    wrapped.register_lance("docs", path)
    for context in (wrapped, wrapped.enable_url_table(), plain, LanceSessionContext.wrap(wrapped)):
        assert ids(context, found) == [0]
    adopted = LanceSessionContext().adopt(SessionContext())
    adopted.register_lance("docs", path)
    assert ids(adopted, found) == [0]


def test_a_function_of_that_name_stays() -> None:
    context = SessionContext()
    rows = Table(pyarrow.dataset.dataset(pa.table({"id": [77]})))
    context.register_udtf(udtf(lambda *_: rows, "minhash_search"))
    session = LanceSessionContext.wrap(context)
    assert ids(session, "SELECT id FROM minhash_search('x')") == [77]


def test_sessions_that_share_their_state_use_indexes_or_not(path: Path) -> None:
    session = session_of(path)
    without = LanceSessionContext.wrap(session, use_indexes=False)
    near = len(ids(session, select(1000)))
    assert len(ids(without, select(1000))) == len(ranked()) > near


def test_a_session_is_gone_with_its_last_use(path: Path) -> None:
    session = session_of(path)
    filtered = select(1, "'lang = ''de'' AND minhash_distance(text, ''a'', 64, 8, 1) <= 1.0'")
    assert ids(session, f"{filtered} WHERE any_element(d, 'k = 0')") == [0]
    session.sql(f"CREATE VIEW near AS {filtered}")
    assert ids(session, "SELECT id FROM near") == [0]
    session.sql("SELECT * FROM minhash_pairs('docs', 'text', 0.5)").collect()
    gone = weakref.ref(session)
    table = weakref.ref(session._lance_table("name", "docs"))
    del session
    gc.collect()
    assert gone() is None
    assert table() is None
