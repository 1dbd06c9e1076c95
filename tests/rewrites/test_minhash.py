"""What a bound on a MinHash distance asks of the indexes: the text before, the query after."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from datafusion.expr import Expr
from lance.indices import IndexConfig

from datafusion_lance.engine.environment import SessionEnvironment
from datafusion_lance.indexes.cache import ReaderCache
from datafusion_lance.indexes.query import Query
from datafusion_lance.indexes.snapshot import Snapshot
from datafusion_lance.rewrites.indexed_scan import IndexedScan
from datafusion_lance.rewrites.minhash import read_minhash
from datafusion_lance.udfs.minhash.registration import register_minhash

from .any_element_text import analysing_context, the_filter

D = "minhash_distance(u, 'q')"
S = "minhash_similarity(u, 'q')"


class Indexed:
    """A table with a MinHash index on `u`, another one on `w`, and the rule over it."""

    def __init__(self, folder: Path) -> None:
        kind = pa.large_string()
        rows = pa.table({"u": ["a"], "v": ["a"], "w": pa.array(["a"], kind), "x": [1.0]})
        dataset = lance.write_dataset(rows, folder / "t")
        for column, parameters in (("u", {}), ("w", {"shingle_size": 2})):
            dataset.create_scalar_index(
                column, IndexConfig("minhashlsh", parameters=parameters), name=f"{column}_idx"
            )
        self.schema = rows.schema
        self.snapshot = Snapshot(lance.dataset(folder / "t"), ReaderCache(1 << 20))

    def read(self, condition: str) -> tuple[Query | None, list[str]]:
        """The query of a condition on a row, and the notes."""
        context = analysing_context()
        register_minhash(context)
        plan = the_filter(context, "t", self.schema.empty_table(), condition)
        recognize = SessionEnvironment(context).distance_function
        scan = IndexedScan("t", plan, self.schema, self.snapshot, recognize=recognize)
        return read_minhash(Expr(plan.to_variant().predicate()), scan), scan.notes


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Indexed:
    return Indexed(tmp_path_factory.mktemp("minhash"))


@pytest.mark.parametrize(
    ("condition", "query"),
    [
        (f"{D} <= 0.2", "{d} <= 25/128"),
        (f"{D} < 0.203125", "{d} <= 25/128"),
        (f"{D} <= 0.203125", "{d} <= 26/128"),
        (f"0.2 >= {D}", "{d} <= 25/128"),
        (f"0.2 < {D}", "{d} >= 26/128"),
        (f"{D} > 0.2", "{d} >= 26/128"),
        (f"NOT {D} > 0.2", "{d} <= 25/128"),
        ("minhash_distance('q', u) <= 0.2", "{d} <= 25/128"),
        (f"{D} = 0.5", "{d} = 64/128"),
        (f"{D} = 0.51", "{d} < 0"),
        (f"{D} <> 0.5", "NOT {d} = 64/128"),
        (f"{D} <> 0", "{d} >= 1/128"),
        (f"{D} < 0", "{d} < 0"),
        (f"{D} >= 0", "{d} <= 128/128"),
        (f"{S} >= 0.9", "{d} <= 12/128"),
        (f"0.9 > {S}", "{d} >= 13/128"),
        (f"1 - {S} <= 0.2", "{d} <= 25/128"),
        (f"100 * {D} <= 20", "{d} <= 25/128"),
        (f"CAST({D} AS FLOAT) <= 0.2", "{d} <= 25/128"),
        (f"{D} IN (0, 0.5, 0.51)", "{d} = 0/128 OR {d} = 64/128"),
        (f"{D} NOT IN (0, 0.5, 0.75)", "NOT ({d} = 0/128 OR {d} = 64/128 OR {d} = 96/128)"),
        (f"{D} IN (0.1, 0.2, 0.3, 0.4, 0.6)", "{d} < 0"),
        (f"{D} IS NULL", "{d} < 0 IS NULL"),
        (f"{D} IS NOT NULL", "NOT ({d} < 0 IS NULL)"),
        (f"{D} IS DISTINCT FROM 0.5", "NOT ({d} = 64/128 IS TRUE)"),
        (f"{D} IS NOT DISTINCT FROM 0.5", "{d} = 64/128 IS TRUE"),
        (f"{D} < 'NaN'", "{d} <= 128/128"),
        (f"{D} >= 'NaN'", "{d} < 0"),
        ("minhash_distance(u, NULL) <= 0.2", "minhash_distance(u, NULL) <= 25/128"),
        (
            "minhash_distance(arrow_cast(u, 'LargeUtf8'), 'q') <= 0.2",
            "{d} <= 25/128",
        ),
    ],
)
def test_a_bound_is_whole_numbers_of_positions(
    indexed: Indexed, condition: str, query: str
) -> None:
    found, notes = indexed.read(condition)
    assert (str(found), notes) == (query.format(d=D), [])


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        (f"{D} <= x", "the bound is no literal of its type"),
        (f"round({D}, 1) <= 0.2", "no comparison of a distance with a literal"),
        ("minhash_distance(u, v) <= 0.2", "the other text is not a literal"),
        ("minhash_distance(u, v) IS NULL", "the other text is not a literal"),
        (f"{D} IN (0, x)", "not every item is a literal of its type"),
        (
            f"{D} IN (0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1)",
            "more than 8 searches",
        ),
        (
            "minhash_distance(w, 'q') <= 0.2",
            "its signatures are not made with the parameters of minhash_distance",
        ),
    ],
)
def test_what_is_not_served_is_noted(indexed: Indexed, condition: str, reason: str) -> None:
    query, notes = indexed.read(condition)
    assert query is None
    assert all(note.startswith("table t, index ") for note in notes)
    assert any(note.endswith(reason) for note in notes), notes


@pytest.mark.parametrize(
    "condition", ["minhash_distance(v, 'q') <= 0.2", "x <= 0.2", "u IS NULL", "x IN (1, 2)"]
)
def test_what_no_index_could_serve_is_not_noted(indexed: Indexed, condition: str) -> None:
    assert indexed.read(condition) == (None, [])
