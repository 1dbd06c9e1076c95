"""`minhash_pairs` and `minhash_clusters` in statements."""

from __future__ import annotations

import shutil
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

from datafusion_lance.engine import CorruptIndexError, InvalidArgumentError, LanceSessionContext
from datafusion_lance.indexes.minhash_lsh.parameters import MinHashParameters
from datafusion_lance.indexes.minhash_lsh.signature import SignatureProcedure

from .minhash_corpus import Corpus, copies, create_index, session_of, write_copies

Pair = tuple[int, int, float]


@pytest.fixture(scope="module", params=[False, True], ids=["addresses", "stable row ids"])
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1,500 texts in two segments and without index, some deleted and some updated."""
    path = tmp_path_factory.mktemp("duplicates") / "docs.lance"
    corpus = Corpus(3)
    lance.write_dataset(
        corpus.rows(0, 700), path, max_rows_per_file=300, enable_stable_row_ids=request.param
    )
    create_index(path, num_bands=64)
    lance.write_dataset(corpus.rows(700, 1200), path, mode="append")
    lance.dataset(path).optimize.optimize_indices(num_indices_to_merge=0)
    lance.write_dataset(corpus.rows(1200, 1500), path, mode="append")
    lance.dataset(path).delete("id % 13 = 4")
    lance.dataset(path).update({"text": "'moved ' || text"}, where="id % 97 = 1")
    return path


def with_row_ids(path: Path, *, use_indexes: bool = True) -> LanceSessionContext:
    session = LanceSessionContext(use_indexes=use_indexes)
    session.register_lance("docs", path, row_id=True)
    return session


def brute_force(path: Path, max_distance: float, column: str = "text") -> list[Pair]:
    rows = lance.dataset(path).to_table(columns=[column], with_row_id=True)
    signed, signatures = SignatureProcedure.of(MinHashParameters()).sign(rows[column])
    ids = rows["_rowid"].to_numpy()[signed]
    pairs: list[Pair] = []
    for at, signature in enumerate(signatures):
        far = np.mean(signatures[:at] != signature, axis=1)
        for other in np.flatnonzero(far <= max_distance):
            left, right = sorted((int(ids[at]), int(ids[other])))
            pairs.append((left, right, float(np.float32(far[other]))))
    return sorted(pairs)


def found_pairs(session: LanceSessionContext, sql: str) -> list[Pair]:
    found = session.sql(sql).to_arrow_table()
    assert found.schema.types == [pa.uint64(), pa.uint64(), pa.float32()]
    return sorted(zip(*found.to_pydict().values(), strict=True))


@pytest.mark.parametrize("use_indexes", [True, False])
def test_pairs(path: Path, use_indexes: bool) -> None:
    session = with_row_ids(path, use_indexes=use_indexes)
    for distance in (0, 0.25):
        wanted = brute_force(path, distance)
        assert found_pairs(session, f"SELECT * FROM minhash_pairs('docs', 'text', {distance})") == (
            wanted
        )
        assert wanted
        count = session.sql(f"SELECT count(*) AS n FROM minhash_pairs('docs', 'text', {distance})")
        assert count.to_pydict() == {"n": [len(wanted)]}


def test_pairs_join_with_the_table(path: Path) -> None:
    session = with_row_ids(path)
    joined = session.sql(
        "SELECT a.id AS a, b.id AS b, p._distance FROM minhash_pairs('docs', 'text', 0.25) p "
        "JOIN docs a ON a._rowid = p.left_rowid JOIN docs b ON b._rowid = p.right_rowid "
        "WHERE p._distance > 0"
    ).to_pydict()
    wanted = [pair for pair in brute_force(path, 0.25) if pair[2] > 0]
    assert len(joined["a"]) == len(wanted) > 0
    assert sorted(joined["_distance"]) == sorted(pair[2] for pair in wanted)


@pytest.mark.parametrize("use_indexes", [True, False])
def test_clusters(path: Path, use_indexes: bool) -> None:
    session = with_row_ids(path, use_indexes=use_indexes)
    cluster: dict[int, int] = {}
    pairs = brute_force(path, 0.25)
    for row in {row for pair in pairs for row in pair[:2]}:
        cluster[row] = row
    for _ in pairs:
        before = dict(cluster)
        for left, right, _ in pairs:
            cluster[left] = cluster[right] = min(cluster[left], cluster[right])
        if before == cluster:
            break
    found = session.sql("SELECT * FROM minhash_clusters('docs', 'text', 0.25)").to_pydict()
    assert dict(zip(found["row_id"], found["cluster_id"], strict=True)) == cluster
    kept = session.sql(
        "SELECT count(*) AS n FROM docs WHERE _rowid NOT IN "
        "(SELECT row_id FROM minhash_clusters('docs', 'text', 0.25) WHERE row_id <> cluster_id)"
    ).to_pydict()["n"][0]
    assert kept == session.table("docs").count() - len(cluster) + len(set(cluster.values()))


def test_a_column_without_index(tmp_path: Path) -> None:
    path = tmp_path / "docs.lance"
    lance.write_dataset(copies(), path)
    session = session_of(path)
    wanted = brute_force(path, 0.1, "plain")
    assert found_pairs(session, "SELECT * FROM minhash_pairs('docs', 'plain', 0.1)") == wanted


def test_large_buckets_are_given_through_one_row(tmp_path: Path) -> None:
    path = tmp_path / "docs.lance"
    lance.write_dataset(pa.table({"text": ["the same text every time"] * 50}), path)
    create_index(path)
    session = session_of(path)
    count = "SELECT count(*) AS n FROM minhash_pairs('docs', 'text', 0.1{})"
    assert session.sql(count.format("")).to_pydict() == {"n": [50 * 49 // 2]}
    assert session.sql(count.format(", 10")).to_pydict() == {"n": [49]}
    statement = "EXPLAIN ANALYZE SELECT * FROM minhash_pairs('docs', 'text', 0.1, 10)"
    plan = session.sql(statement).to_pydict()["plan"][0]
    assert "answer=approximate" in plan
    assert "large_buckets=1, pairs_folded=1176, pairs_skipped=0" in plan


def test_a_limit_ends_the_work_and_columns_are_chosen(path: Path) -> None:
    session = with_row_ids(path)
    frame = session.sql("SELECT _distance FROM minhash_pairs('docs', 'text', 0.3) LIMIT 3")
    assert frame.count() == 3
    assert frame.schema().names == ["_distance"]
    filtered = session.sql(
        "SELECT right_rowid FROM minhash_pairs('docs', 'text', 0.3) WHERE left_rowid = 3"
    )
    wanted = [right for left, right, _ in brute_force(path, 0.3) if left == 3]
    assert sorted(filtered.to_pydict()["right_rowid"]) == wanted


@pytest.mark.parametrize("name", ["minhash_pairs", "minhash_clusters"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("'docs', 'text'", "got '2 arguments', takes (table, column, max_distance[, max_bucket])"),
        ("'docs', 'text', 1.5", "max_distance: got 1.5, takes a number from 0 to 1"),
        ("'docs', 'text', -0.1", "max_distance: got -0.1,"),
        ("'docs', 'text', NULL", "max_distance: got None,"),
        ("'docs', 'text', 'x'", "max_distance: got 'x',"),
        ("'docs', 'text', $1", "max_distance: got '$1', takes a literal in minhash_"),
        ("'docs', 'text', 0.1, 1", "max_bucket: got 1, takes an integer of at least 2"),
        ("'nope', 'text', 0.1", "table: got 'nope'"),
        ("'docs', 'id', 0.1", "column: got 'id', takes a text column of docs"),
    ],
)
def test_bad_arguments(tmp_path: Path, name: str, arguments: str, message: str) -> None:
    session = session_of(write_copies(tmp_path / "docs.lance"))
    with pytest.raises(InvalidArgumentError) as caught:
        session.sql(f"SELECT * FROM {name}({arguments})")
    assert message in str(caught.value)


def test_a_damaged_index(tmp_path: Path) -> None:
    path = write_copies(tmp_path / "docs.lance")
    (bands,) = (path / "_indices").glob("*/bands.lance")
    bands.write_bytes(bands.read_bytes()[:100])
    frame = session_of(path).sql("SELECT * FROM minhash_pairs('docs', 'text', 0.1)")
    with pytest.raises(CorruptIndexError, match=r"bands\.lance"):
        frame.collect()
    shutil.rmtree(path / "_indices")
    without = session_of(path, use_indexes=False)
    assert without.sql("SELECT * FROM minhash_pairs('docs', 'text', 0.5)").count() > 0
