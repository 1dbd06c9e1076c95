"""Values of the functions, against signatures that pylance stored."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from datafusion import SessionContext, col
from hypothesis import given, settings
from hypothesis import strategies as st

from datafusion_lance.udfs import minhash_distance, minhash_signature, minhash_similarity
from datafusion_lance.udfs.minhash.definitions import function_of

from ...indexes.minhash_lsh.stored import indexed, stored_signatures
from ...indexes.minhash_lsh.texts import texts

Pair = tuple[str | None, str | None]


def stored_distances(pairs: list[Pair], num_hashes: int, shingle_size: int) -> list[float | None]:
    """The distance of each pair, from pylance's own signatures of all texts."""
    column = [text for pair in pairs for text in pair]
    with tempfile.TemporaryDirectory() as folder:
        dataset = indexed(
            Path(folder) / "t.lance",
            column,
            num_hashes=num_hashes,
            num_bands=1,
            shingle_size=shingle_size,
        )
        signatures = stored_signatures(dataset)
    return [
        float(np.mean(signatures[row] != signatures[row + 1]))
        if row in signatures and row + 1 in signatures
        else None
        for row in range(0, len(column), 2)
    ]


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.none() | texts, st.none() | texts), min_size=1, max_size=8),
    st.sampled_from((1, 64, 100, 128)),
    st.integers(1, 4),
)
def test_distances_are_those_of_the_signatures_that_pylance_stores(
    pairs: list[Pair], num_hashes: int, shingle_size: int
) -> None:
    expected = stored_distances(pairs, num_hashes, shingle_size)
    rows = SessionContext().from_pydict(
        {
            "a": pa.array([a for a, _ in pairs], pa.string()),
            "b": pa.array([b for _, b in pairs], pa.string()),
        }
    )

    found = rows.select(
        *(
            function(
                col("a"), col("b"), num_hashes=num_hashes, num_bands=1, shingle_size=shingle_size
            ).alias(name)
            for name, function in (("far", minhash_distance), ("near", minhash_similarity))
        )
    ).to_pydict()

    assert found["far"] == pytest.approx(expected)
    assert found["near"] == pytest.approx([None if d is None else 1 - d for d in expected])


def test_shares_are_whole_numbers_over_the_number_of_hashes() -> None:
    """So that `<= 0.2` means what it says."""
    words = [f"w{n}" for n in range(40)]
    column = pa.array([" ".join(words[:n]) for n in range(3, 40)])
    query = pa.array([" ".join(words)] * len(column))

    for num_hashes in (10, 100, 128):
        given = (num_hashes, 1)
        far = function_of("minhash_distance", given)(column, query).to_pylist()
        near = function_of("minhash_similarity", given)(column, query).to_pylist()
        assert set(far) <= {n / num_hashes for n in range(num_hashes + 1)}
        assert near == [(num_hashes - round(d * num_hashes)) / num_hashes for d in far]
        assert len(set(far)) > 3


def test_null_and_texts_without_tokens_have_no_distance() -> None:
    distance = function_of("minhash_distance")
    without = (None, "", " \n", "...")

    pairs = [*product(without, ("a b", *without)), *product(("a b",), without), ("a b", "A, b")]
    found = distance(pa.array([a for a, _ in pairs]), pa.array([b for _, b in pairs]))

    assert found.to_pylist() == [None] * (len(pairs) - 1) + [0.0]
    assert found.type == pa.float64()


def test_one_query_for_all_rows_or_one_each() -> None:
    column = pa.array(["a b c d", "a b c e", "x", None, "a b c d"])
    distance = function_of("minhash_distance")

    for query in ("a b c d", "x y", "", None):
        everywhere = distance(column, pa.array([query] * 5, pa.string())).to_pylist()
        alone = [
            distance(column[row : row + 1], pa.array([query], pa.string())).to_pylist()[0]
            for row in range(5)
        ]
        assert everywhere == alone
        turned = distance(pa.array([query] * 5, pa.string()), column).to_pylist()
        assert everywhere == turned
    assert distance(column, column).to_pylist() == [0.0, 0.0, 0.0, None, 0.0]


def test_batches_of_any_size() -> None:
    """More than the signatures that are held at once, sliced, and none."""
    column = pa.array(["skip", *(f"text {n % 7} of many {n % 3}" for n in range(3000)), None])[1:]
    query = pa.array(["text 1 of many 2"] * 3001)
    distance = function_of("minhash_distance", (4096, 1))

    whole = distance(column, query)
    parts = [distance(column[n : n + 1], query[n : n + 1]) for n in (0, 1, 2999, 3000)]

    assert [whole[n] for n in (0, 1, 2999, 3000)] == [part[0] for part in parts]
    assert len(whole) == 3001
    assert len(distance(column[:0], query[:0])) == 0


def test_signatures_are_those_that_pylance_stores(tmp_path: Path) -> None:
    column = ["one text of some words", None, "", "another text of words", "...", "x"]
    stored = stored_signatures(indexed(tmp_path / "t.lance", column))
    rows = SessionContext().from_pydict({"text": column})

    table = rows.select(minhash_signature(col("text")).alias("s")).to_arrow_table()

    assert table.schema.field("s").type == pa.list_(pa.uint16(), 128)
    expected = [stored[row].tolist() if row in stored else None for row in range(len(column))]
    assert table["s"].to_pylist() == expected


def test_threads_share_a_function() -> None:
    column = pa.array([f"text {n % 50} of many" for n in range(1000)])
    query = pa.array(["text 7 of many"] * 1000)
    distance = function_of("minhash_distance", (64,))
    expected = distance(column, query)

    with ThreadPoolExecutor(8) as pool:
        assert all(
            found == expected for found in pool.map(lambda _: distance(column, query), range(16))
        )
