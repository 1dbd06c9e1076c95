"""A statement that comes again is analysed once, and never answered as things were before."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from datafusion import SessionContext, udf

from datafusion_lance.engine import LanceSessionContext
from datafusion_lance.engine.registry import RegisteredTable
from datafusion_lance.rewrites import rewrite

TAGGED = "SELECT id FROM images WHERE array_has(tags, 'a')"
CARS = "SELECT id FROM images WHERE any_element(boxes, 'label = ''car''')"
BOX = pa.struct([("label", pa.string()), ("area", pa.int32())])


MIDNIGHT_IS_UTC = (
    "arrow_cast('2024-01-01T00:00:00', 'Timestamp(s, None)')::TIMESTAMPTZ = "
    "arrow_cast('2024-01-01T00:00:00Z', 'Timestamp(s, Some(\"+00:00\"))')"
)
"""TRUE where the session's time zone is UTC."""


def images(first: int = 0) -> pa.Table:
    rows = range(first, first + 8)
    return pa.table(
        {
            "id": pa.array(rows),
            "tags": [["a"] if n % 2 else ["b"] for n in rows],
            "boxes": pa.array(
                [[{"label": "car" if n % 4 == 1 else "dog", "area": n}] for n in rows],
                pa.list_(BOX),
            ),
        }
    )


def written(folder: Path, name: str, first: int = 0) -> Path:
    path = folder / name
    session = LanceSessionContext()
    lance.write_dataset(images(first), path)
    session.register_lance("t", path)
    session.create_lance_index("t", "tags", "LABEL_LIST")
    session.create_lance_index("t", "boxes", "LIST_ELEMENT", keys=["label", "area"])
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return written(tmp_path, "images.lance")


@pytest.fixture
def session(path: Path) -> LanceSessionContext:
    session = LanceSessionContext()
    session.register_lance("images", path)
    return session


@pytest.fixture
def analyses(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """One entry for each analysis of a plan."""
    made: list[Any] = []
    analyse = rewrite.analyse

    def counted(*arguments: Any) -> Any:
        made.append(arguments)
        return analyse(*arguments)

    monkeypatch.setattr(rewrite, "analyse", counted)
    return made


def ids(session: SessionContext, query: str) -> list[int]:
    return sorted(session.sql(query).to_pydict()["id"])


@pytest.mark.parametrize("query", [TAGGED, CARS])
def test_a_statement_is_analysed_once(
    session: LanceSessionContext, analyses: list[Any], query: str
) -> None:
    first = ids(session, query)
    assert [ids(session, query) for _ in range(3)] == [first] * 3
    assert len(analyses) == 1
    assert all(session.execution(session.sql(query)).uses_index for _ in range(2))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (TAGGED, TAGGED.replace("'a'", "'b'")),
        (CARS, CARS.replace("car", "dog")),
        (f"{TAGGED} AND id IN (-0.0, 1)", f"{TAGGED} AND id IN (0.0, 3)"),
    ],
)
def test_other_literals_are_another_statement(
    session: LanceSessionContext, one: str, other: str
) -> None:
    plain = LanceSessionContext.wrap(session.undisclosed, use_indexes=False)
    for _ in range(2):
        for query in (one, other):
            assert ids(session, query) == ids(plain, query)


def test_a_table_of_the_same_name_is_another_table(
    session: LanceSessionContext, tmp_path: Path
) -> None:
    for query in (TAGGED, CARS):
        ids(session, query)
    session.deregister_table("images")
    session.register_lance("images", written(tmp_path, "others.lance", first=8))
    assert ids(session, TAGGED) == [9, 11, 13, 15]
    assert ids(session, CARS) == [9, 13]


def test_a_refreshed_table_shows_its_new_rows(session: LanceSessionContext, path: Path) -> None:
    assert ids(session, CARS) == [1, 5]
    lance.write_dataset(images(8), path, mode="append")
    assert ids(session, CARS) == [1, 5]
    session.refresh("images")
    assert ids(session, CARS) == [1, 5, 9, 13]


def test_the_default_schema_may_change(session: LanceSessionContext, tmp_path: Path) -> None:
    session.sql("CREATE SCHEMA other")
    session.register_lance("other.images", written(tmp_path, "others.lance", first=8))
    for query in (TAGGED, CARS):
        before = ids(session, query)
        session.sql("SET datafusion.catalog.default_schema = 'other'")
        assert ids(session, query) == [number + 8 for number in before]
        session.sql("SET datafusion.catalog.default_schema = 'public'")
        assert ids(session, query) == before


def test_a_table_of_another_kind_in_the_same_plan_may_change(session: LanceSessionContext) -> None:
    query = f"{TAGGED} AND id IN (SELECT n FROM wanted)"
    joined = "SELECT images.id FROM images JOIN wanted ON id = n WHERE array_has(tags, 'a')"
    for number in (1, 3, 5):
        session.from_pydict({"n": [number]}, name="wanted")
        assert ids(session, query) == ids(session, joined) == [number]
        session.deregister_table("wanted")


@pytest.mark.parametrize("start", [TAGGED, CARS])
def test_a_function_may_be_registered_anew(session: LanceSessionContext, start: str) -> None:
    for wanted in (1, 5):
        is_wanted = udf(
            lambda ids, wanted=wanted: pc.equal(ids, wanted),
            [pa.int64()],
            pa.bool_(),
            "immutable",
            "is_wanted",
        )
        session.register_udf(is_wanted)
        assert ids(session, f"{start} AND is_wanted(id)") == [wanted]


def test_a_function_named_any_element_takes_its_place(session: LanceSessionContext) -> None:
    assert ids(session, CARS) == [1, 5]
    never = udf(
        lambda boxes, text: pa.array([False] * len(boxes)),
        [pa.list_(BOX), pa.string()],
        pa.bool_(),
        "immutable",
        "any_element",
    )
    session.register_udf(never)
    assert ids(session, CARS) == []


def test_what_changes_by_itself_is_looked_at_each_time(
    session: LanceSessionContext, analyses: list[Any]
) -> None:
    for query in (f"{TAGGED} AND now() > '2020-01-01'", f"{TAGGED} AND random() < 2"):
        before = len(analyses)
        assert ids(session, query) == ids(session, query) == [1, 3, 5, 7]
        assert len(analyses) >= before + 2


def test_a_zone_may_be_set(session: LanceSessionContext) -> None:
    query = f"{TAGGED} AND {MIDNIGHT_IS_UTC}"
    plain = LanceSessionContext.wrap(session.undisclosed, use_indexes=False)
    for zone in ("+00:00", "+05:00", "+00:00"):
        session.sql(f"SET datafusion.execution.time_zone = '{zone}'")
        assert ids(session, query) == ids(plain, query)


def test_a_session_that_shares_its_state_remembers_nothing(path: Path, analyses: list[Any]) -> None:
    context = SessionContext()
    session = LanceSessionContext.wrap(context)
    session.register_lance("images", path)
    assert ids(session, CARS) == ids(session, CARS) == [1, 5]
    assert len(analyses) == 2
    context.sql("SET datafusion.sql_parser.enable_ident_normalization = false")
    assert ids(session, CARS) == [1, 5]


def test_a_session_that_is_shared_later_remembers_nothing_from_then_on(
    session: LanceSessionContext, analyses: list[Any]
) -> None:
    assert ids(session, CARS) == ids(session, CARS)
    assert len(analyses) == 1
    LanceSessionContext.wrap(session)
    assert ids(session, CARS) == ids(session, CARS)
    assert len(analyses) == 3


@pytest.mark.parametrize(
    "share",
    [
        lambda session: session.plain,
        lambda session: LanceSessionContext.wrap(session),
        lambda session: LanceSessionContext.wrap(session.plain, use_indexes=False),
        lambda session: session.with_extensions(),
    ],
    ids=["plain", "wrap", "wrap of plain", "with_extensions"],
)
@pytest.mark.parametrize("start", [TAGGED, CARS])
def test_what_another_holder_of_the_state_sets_is_seen(
    session: LanceSessionContext, start: str, share: Callable[[LanceSessionContext], SessionContext]
) -> None:
    query = f"{start} AND {MIDNIGHT_IS_UTC}"
    assert ids(session, query) == ids(session, query) != []
    other = share(session)
    assert ids(session, query) != []
    other.sql("SET datafusion.execution.time_zone = '+05:00'")
    assert ids(session, query) == []


def test_the_global_context_is_shared_from_the_start() -> None:
    session = LanceSessionContext.global_ctx()
    query = f"SELECT {MIDNIGHT_IS_UTC} AS same, any_element([named_struct('n', 1)], 'n = 1') AS any"
    assert session.sql(query).to_pydict() == {"same": [True], "any": [True]}
    try:
        SessionContext.global_ctx().sql("SET datafusion.execution.time_zone = '+05:00'")
        assert session.sql(query).to_pydict() == {"same": [False], "any": [True]}
    finally:
        SessionContext.global_ctx().sql("RESET datafusion.execution.time_zone")


@pytest.mark.parametrize(
    "statement",
    [
        "/* SELECT */ SET datafusion.execution.time_zone = '+05:00'",
        "-- SELECT\n  set datafusion.execution.time_zone to '+05:00'",
        "SET TIME ZONE = '+05:00';",
    ],
)
def test_a_setting_is_seen_however_it_is_written(
    session: LanceSessionContext, statement: str
) -> None:
    for start in (TAGGED, CARS):
        query = f"{start} AND {MIDNIGHT_IS_UTC}"
        before = ids(session, query)
        session.sql(statement)
        assert ids(session, query) == []
        session.sql("RESET datafusion.execution.time_zone")
        assert ids(session, query) == before != []


@pytest.mark.parametrize(
    "condition", ["array_has(tags, 'a')", "any_element(boxes, 'label = ''car''')"]
)
def test_a_view_may_be_replaced_in_the_catalog(
    session: LanceSessionContext, tmp_path: Path, condition: str
) -> None:
    other = LanceSessionContext()
    other.register_lance("images", written(tmp_path, "others.lance", first=8))
    schema = session.catalog().schema()
    query = f"SELECT min(id) AS id FROM seen WHERE {condition}"
    views = [each.sql("SELECT * FROM images").into_view() for each in (session, other)]
    firsts = [each.sql(query.replace("seen", "images")).to_pydict() for each in (session, other)]
    for view, first in zip(views * 2, firsts * 2, strict=True):
        schema.register_table("seen", view)
        assert [session.sql(query).to_pydict() for _ in range(2)] == [first] * 2
        schema.deregister_table("seen")


@pytest.mark.parametrize("start", [TAGGED, CARS])
def test_a_refreshed_table_lets_go_of_its_past_versions(
    session: LanceSessionContext, path: Path, start: str
) -> None:
    def tables() -> int:
        gc.collect()
        return sum(isinstance(each, RegisteredTable) for each in gc.get_objects())

    before = tables()
    for round_ in range(3):
        for number in range(10):
            ids(session, f"{start} AND id > {number}")
        lance.write_dataset(images(8 * (round_ + 1)), path, mode="append")
        session.refresh("images")
        assert tables() == before


def test_a_session_ends_with_its_last_use(path: Path) -> None:
    session = LanceSessionContext()
    session.register_lance("images", path)
    for query in (TAGGED, CARS):
        ids(session, query)
    ended = weakref.ref(session)
    gc.disable()
    try:
        del session
        assert ended() is None
    finally:
        gc.enable()


def test_only_the_last_plans_are_kept(session: LanceSessionContext, analyses: list[Any]) -> None:
    for number in range(70):
        ids(session, f"{TAGGED} AND id > {number}")
    ids(session, f"{TAGGED} AND id > 69")
    assert len(analyses) == 70
    ids(session, f"{TAGGED} AND id > 0")
    assert len(analyses) == 71


def test_threads_share_what_is_known(session: LanceSessionContext) -> None:
    queries = {query: ids(session, query) for query in (TAGGED, CARS, f"{CARS} AND id > 1")}

    def ask(number: int) -> bool:
        query = list(queries)[number % len(queries)]
        return ids(session, query) == queries[query]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(120)))
