"""Columns that are read by ranges of bytes hold what they hold mapped into memory."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lance
import numpy as np
import pytest

from datafusion_lance.indexes.cache import ReaderCache
from datafusion_lance.indexes.dataset_files import DatasetFiles
from datafusion_lance.indexes.errors import CorruptIndexError
from datafusion_lance.indexes.lance_file import OpenFile
from datafusion_lance.indexes.minhash_lsh.mapped_column import map_lists, map_numbers
from datafusion_lance.indexes.minhash_lsh.ranged_column import ranged_lists, ranged_numbers
from datafusion_lance.indexes.minhash_lsh.search import MinHashReader
from datafusion_lance.indexes.minhash_lsh.segment import BANDS, SIGNATURES
from datafusion_lance.indexes.search_stats import SearchStats
from datafusion_lance.indexes.snapshot import Snapshot

from .searched import Searched, corpus, index_text, listed, table_of

HASHES, BANDS_OF_EACH, ROWS = 64, 16, 6000


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    dataset = table_of(folder, corpus(ROWS, 5), per_fragment=ROWS)
    index_text(dataset, num_hashes=HASHES, num_bands=BANDS_OF_EACH, shingle_size=1)
    return folder


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are as if they were not on this machine."""
    monkeypatch.setattr(DatasetFiles, "local_path", lambda self, relative: None)


Opener = Callable[[str], OpenFile]


@pytest.fixture
def opener(built: Path) -> Opener:
    def opened(name: str) -> OpenFile:
        (path,) = built.glob(f"_indices/*/{name}")
        files = DatasetFiles.at(lance.dataset(built), str(built))
        return OpenFile(files, str(path.relative_to(built)))

    return opened


def test_numbers(opener: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    file = opener(BANDS)
    mapped = [map_numbers(file, 0, np.uint64), map_numbers(file, 1, np.uint32)]
    monkeypatch.setattr(DatasetFiles, "local_path", lambda self, relative: None)
    file = opener(BANDS)
    ranged = ranged_numbers(file, (np.uint64, np.uint32))
    assert ranged is not None
    random = np.random.default_rng(1)
    starts = [0, file.num_rows - 1, *random.integers(0, file.num_rows, 40).tolist()]
    counts = [int(random.integers(1, min(9000, file.num_rows - at) + 1)) for at in starts]
    spans = list(zip(starts, counts, strict=True))
    stats = SearchStats()
    for span, found in zip(spans, ranged.read(spans, stats), strict=True):
        assert found is not None
        for column, numbers in zip(mapped, found, strict=True):
            assert column is not None
            expected = column.read(*span)
            assert expected is not None
            assert numbers.dtype == expected.dtype
            assert numbers.tolist() == expected.tolist()
    # The tables of both columns, and what lies near each other together.
    assert 0 < stats.requests <= 6
    with ThreadPoolExecutor(4) as pool:
        again = pool.map(lambda span: list(ranged.read([span], SearchStats())), spans)
        assert all(None not in found for found in again)


def test_lists(opener: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    mapped = map_lists(opener(SIGNATURES), 1, np.uint16, HASHES)
    monkeypatch.setattr(DatasetFiles, "local_path", lambda self, relative: None)
    file = opener(SIGNATURES)
    ranged = ranged_lists(file, 1, np.uint16, HASHES)
    assert mapped is not None
    assert ranged is not None
    stats = SearchStats()
    last = file.num_rows - 1
    for rows in ([0], [last], [3, 4, 5, 900, 901, 5000], list(range(0, last, 7))):
        taken = ranged.take(np.array(rows), stats)
        assert taken.tolist() == mapped.take(np.array(rows)).tolist()
    assert ranged.run(17, 800, stats).tolist() == next(mapped.runs(17, 817)).tolist()


@pytest.mark.usefixtures("away")
def test_columns_of_another_kind_are_left_to_pylance(opener: Opener) -> None:
    assert ranged_numbers(opener(BANDS), (np.uint64, np.uint64)) is None
    assert ranged_numbers(opener(SIGNATURES), (np.uint64,)) is None
    assert ranged_lists(opener(SIGNATURES), 1, np.uint16, HASHES + 1) is None
    assert ranged_lists(opener(BANDS), 0, np.uint16, 4) is None


@pytest.mark.parametrize("name", [BANDS, SIGNATURES])
def test_of_a_damaged_file_both_ways_say_the_same(
    name: str, built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path,) = built.glob(f"_indices/*/{name}")
    dataset, good = lance.dataset(built), path.read_bytes()
    signature = Searched(dataset).signatures[11]

    def found() -> object:
        snapshot = Snapshot(dataset, ReaderCache(1 << 26))
        reader = MinHashReader(snapshot.indexes[0], snapshot)
        try:
            answer = reader.candidates(signature, reader.fragment_ids, SearchStats())
        except CorruptIndexError as error:
            return error.file
        return listed(answer)

    random = np.random.default_rng(2)
    outcomes: list[object] = []
    try:
        for _ in range(30):
            # Tables of chunks, heads of chunks and values, in the first pages.
            at, size = int(random.integers(0, 40_000)), int(random.integers(1, 2000))
            path.write_bytes(good[:at] + bytes(size) + good[at + size :])
            mapped = found()
            with monkeypatch.context() as elsewhere:
                elsewhere.setattr(DatasetFiles, "local_path", lambda self, relative: None)
                assert found() == mapped
            outcomes.append(mapped)
    finally:
        path.write_bytes(good)
    assert str(path) in outcomes
    assert len({repr(outcome) for outcome in outcomes}) > 1
