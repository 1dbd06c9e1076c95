"""The functions for DataFrames."""

from __future__ import annotations

from typing import Any

import pytest
from datafusion import SessionContext, col, lit

from datafusion_lance.indexes.errors import InvalidArgumentError
from datafusion_lance.udfs import minhash_distance, minhash_signature, minhash_similarity

ROWS = {"text": ["one two three four", "one two three five", None], "other": ["x", " ", "x"]}


def test_they_work_in_any_session() -> None:
    rows = SessionContext().from_pydict(ROWS)

    near = rows.filter(minhash_distance(col("text"), "One Two Three Four") < lit(0.1))
    ordered = rows.sort(
        minhash_similarity(col("text"), lit("one two three five")).sort(False, False)
    )

    assert near.to_pydict()["text"] == ["one two three four"]
    assert ordered.to_pydict()["text"] == [*reversed(ROWS["text"][:2]), None]


def test_the_query_may_be_a_column_or_null() -> None:
    rows = SessionContext().from_pydict(ROWS)

    found = rows.select(
        minhash_distance(col("text"), col("other")).alias("each"),
        minhash_distance(col("text"), None).alias("null"),
    )

    assert found.to_pydict() == {"each": [1.0, None, None], "null": [None] * 3}


def test_parameters_give_other_signatures() -> None:
    rows = SessionContext().from_pydict(ROWS)

    found = rows.select(
        minhash_signature(col("text"), num_hashes=4, num_bands=2, shingle_size=1).alias("s")
    ).to_pydict()

    assert [None if s is None else len(s) for s in found["s"]] == [4, 4, None]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_hashes": 100}, "num_hashes: got 100, takes a multiple of num_bands, which is 16"),
        ({"num_bands": 0}, "num_bands: got 0, takes a number from 1 to 256"),
        ({"shingle_size": "3"}, "shingle_size: got '3', takes a number from 1"),
        ({"query": 5}, "query: got 5, takes a text, or an expression of one"),
        ({"text": "text"}, "text: got 'text', takes an expression, such as col\\(\"text\"\\)"),
    ],
)
def test_arguments_that_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        minhash_distance(**({"text": col("text"), "query": "q"} | arguments))
