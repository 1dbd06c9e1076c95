"""Files that go while a session is open: errors that name them, and a session that goes on."""

from __future__ import annotations

import datetime as dt
import shutil
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from datafusion import DataFrame

from datafusion_lance.engine import InvalidArgumentError, LanceSessionContext, MissingIndexFileError
from datafusion_lance.indexes.list_element.builder import create_list_element

ELEMENT = pa.struct([("label", pa.string())])
ROWS = pa.table(
    {
        "id": pa.array(range(60), pa.int64()),
        "text": ["x"] * 60,
        "tags": [["even"] if n % 2 == 0 else [] for n in range(60)],
        "d": pa.array([[{"label": "a"}] * (n % 2) for n in range(60)], pa.list_(ELEMENT)),
    }
)
EVEN, ODD = [*range(0, 60, 2)], [*range(1, 60, 2)]
QUERIES = {
    "bitmap_page_lookup": ("SELECT id FROM t WHERE array_has(tags, 'even') AND text = 'x'", EVEN),
    "page_lookup": ("SELECT id FROM t WHERE any_element(d, 'label = ''a''') AND text = 'x'", ODD),
}


def build(path: Path) -> None:
    dataset = lance.dataset(path)
    dataset.create_scalar_index("tags", "LABEL_LIST", name="tags_idx", replace=True)
    create_list_element(lance.dataset(path), "d", ["label"], "d_idx", replace=True, progress=False)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    lance.write_dataset(ROWS, tmp_path / "t.lance", max_rows_per_file=20)
    build(tmp_path / "t.lance")
    return tmp_path / "t.lance"


@pytest.fixture(params=["never asked", "asked before"])
def session(path: Path, tmp_path: Path, request: pytest.FixtureRequest) -> LanceSessionContext:
    """A session that keeps nothing of the indexes, with another table beside."""
    lance.write_dataset(ROWS, tmp_path / "other.lance").create_scalar_index("tags", "LABEL_LIST")
    session = LanceSessionContext(cache_bytes=0)
    session.register_lance("t", path)
    session.register_lance("other", tmp_path / "other.lance")
    if request.param == "asked before":
        for query, expected in QUERIES.values():
            assert ids(session.sql(query)) == expected
    return session


def ids(frame: DataFrame) -> list[int]:
    return sorted(frame.to_pydict()["id"])


def goes_on(session: LanceSessionContext) -> None:
    """What has nothing to do with the files that are gone works as before."""
    assert ids(session.sql("SELECT id FROM other WHERE array_has(tags, 'even')")) == EVEN
    assert session.sql("SELECT 1 AS id").to_pydict() == {"id": [1]}


@pytest.mark.parametrize("name", QUERIES)
def test_an_index_file_that_goes_between_planning_and_running(
    session: LanceSessionContext, path: Path, name: str
) -> None:
    query, expected = QUERIES[name]
    frame = session.sql(query)
    frame.explain()
    for file in (path / "_indices").glob("*/*"):
        file.unlink()
    for again in (frame, session.sql(query)):
        with pytest.raises(MissingIndexFileError, match=rf"{name}\.lance: .*refresh moves"):
            again.collect()
    goes_on(session)
    session.use_indexes = False
    assert ids(frame) == ids(session.sql(query)) == expected
    session.use_indexes = True
    build(path)
    session.refresh("t")
    assert ids(session.sql(query)) == expected


@pytest.mark.parametrize("name", QUERIES)
def test_a_dataset_that_is_deleted(session: LanceSessionContext, path: Path, name: str) -> None:
    frame = session.sql(QUERIES[name][0])
    shutil.rmtree(path)
    for again in (frame, session.sql(QUERIES[name][0])):
        with pytest.raises(Exception, match=r"t\.lance/") as raised:
            again.collect()
        assert is_missing(raised.value)
    with pytest.raises(InvalidArgumentError, match="there is nothing at this path"):
        session.refresh("t")
    goes_on(session)
    lance.write_dataset(ROWS, path)
    session.refresh("t")
    assert ids(session.sql(QUERIES[name][0])) == QUERIES[name][1]


def is_missing(error: Exception) -> bool:
    return isinstance(error, MissingIndexFileError) or "not found" in str(error).lower()


def found_or_gone(frame: DataFrame, path: Path) -> list[int] | None:
    """None where a file of the dataset is not found, and the error names it."""
    try:
        return ids(frame)
    except Exception as error:
        if is_missing(error) and str(path) in str(error):
            return None
        raise


@pytest.mark.parametrize("name", QUERIES)
def test_a_version_that_is_cleaned_up(session: LanceSessionContext, path: Path, name: str) -> None:
    """Its rows, where Lance still has them, or an error that names the file; never other rows."""
    query, expected = QUERIES[name]
    frame = session.sql(query)
    lance.dataset(path).delete("id < 20")
    lance.dataset(path).optimize.compact_files()
    build(path)
    lance.dataset(path).cleanup_old_versions(dt.timedelta(0), delete_unverified=True)
    for again in (frame, session.sql(query)):
        assert found_or_gone(again, path) in (expected, None)
    goes_on(session)
    session.refresh("t")
    assert ids(session.sql(query)) == [one for one in expected if one >= 20]
