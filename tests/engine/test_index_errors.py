"""Errors of an index search reach the user as they are, whichever way the rows are asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from datafusion import DataFrame

from datafusion_lance.engine import LanceSessionContext
from datafusion_lance.indexes.errors import CorruptIndexError

HAS = "SELECT id FROM images WHERE array_has(tags, 'a')"
BOUND = "SELECT count(*) AS n FROM images WHERE array_has(tags, 'a') GROUP BY ROLLUP (id % 3)"


@pytest.fixture
def session(tmp_path: Path) -> LanceSessionContext:
    """A table whose index file is cut short."""
    rows = pa.table({"id": range(6), "tags": [["a"], ["b"]] * 3})
    dataset = lance.write_dataset(rows, tmp_path / "images.lance")
    dataset.create_scalar_index("tags", "LABEL_LIST")
    (file,) = (tmp_path / "images.lance" / "_indices").glob("*/bitmap_page_lookup.lance")
    file.write_bytes(file.read_bytes()[:-40])
    context = LanceSessionContext()
    context.register_lance("images", tmp_path / "images.lance")
    return context


async def _all(stream: Any) -> list[Any]:
    return [batch async for batch in stream]


WAYS: dict[str, Callable[[DataFrame], Any]] = {
    "collect": lambda frame: frame.collect(),
    "to_arrow_table": lambda frame: frame.to_arrow_table(),
    "count": lambda frame: frame.count(),
    "show": lambda frame: frame.show(),
    "execute_stream": lambda frame: list(frame.execute_stream()),
    "execute_stream_partitioned": lambda frame: [
        list(stream) for stream in frame.execute_stream_partitioned()
    ],
    "asynchronously": lambda frame: asyncio.run(_all(frame.execute_stream())),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("query", [HAS, BOUND], ids=["rebuilt", "bound"])
def test_a_damaged_index_is_named(session: LanceSessionContext, query: str, way: str) -> None:
    with pytest.raises(CorruptIndexError) as raised:
        WAYS[way](session.sql(query))
    assert raised.value.file.endswith("bitmap_page_lookup.lance")
    session.use_indexes = False
    assert session.sql(HAS).to_pydict() == {"id": [0, 2, 4]}


def test_an_arrow_stream_tells_its_text(session: LanceSessionContext) -> None:
    """The C stream interface carries no more of an error."""
    with pytest.raises(Exception, match="bitmap_page_lookup"):
        pa.table(session.sql(HAS))
