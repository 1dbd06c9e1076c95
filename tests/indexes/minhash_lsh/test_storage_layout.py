"""Storage Layout: both files are read alike from a mapped file and by pylance."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lance
import numpy as np
import pytest

from datafusion_lance.indexes.cache import ReaderCache
from datafusion_lance.indexes.dataset_files import DatasetFiles
from datafusion_lance.indexes.errors import CorruptIndexError
from datafusion_lance.indexes.minhash_lsh import rows
from datafusion_lance.indexes.minhash_lsh.mapped_column import map_lists, map_numbers
from datafusion_lance.indexes.minhash_lsh.ranked import Ranked
from datafusion_lance.indexes.minhash_lsh.search import nearest
from datafusion_lance.indexes.minhash_lsh.segment import BANDS, SIGNATURES, opened
from datafusion_lance.indexes.minhash_lsh.signatures import count_differences
from datafusion_lance.indexes.search_stats import SearchStats

from .searched import Searched, corpus, index_text, listed, table_of


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are as if they were not on this machine."""
    monkeypatch.setattr(DatasetFiles, "local_path", lambda self, relative: None)


def _table(
    folder: Path, count: int, num_hashes: int, num_bands: int, words: int = 8
) -> lance.LanceDataset:
    dataset = table_of(folder, corpus(count, 5, words), per_fragment=count)
    index_text(dataset, num_hashes=num_hashes, num_bands=num_bands, shingle_size=1)
    return lance.dataset(folder)


def _columns_are_mapped(searched: Searched) -> bool:
    (index,) = searched.snapshot.indexes
    files, folder = searched.snapshot.files_of(index.segments[0])
    segment = opened(index.segments[0], files, folder, searched.snapshot.cache, SearchStats())
    lists = map_lists(segment.signatures, 1, np.uint16, segment.parameters.num_hashes)
    numbers = map_numbers(segment.bands, 0, np.uint64), map_numbers(segment.bands, 1, np.uint32)
    return None not in (lists, *numbers)


def _answers(searched: Searched) -> Iterator[Ranked]:
    """Few candidates and many, and all rows."""
    for signature in searched.signatures[:: len(searched.signatures) // 7]:
        yield searched.reader.candidates(signature, searched.covered, SearchStats())
        yield searched.reader.all_rows(signature, searched.covered, SearchStats())


SHAPES = [(300, 1, 1), (300, 3, 3), (900, 8, 2), (900, 100, 20), (3000, 128, 16), (2500, 4096, 256)]


@pytest.mark.parametrize(("count", "num_hashes", "num_bands"), SHAPES)
def test_any_number_of_hashes(
    count: int, num_hashes: int, num_bands: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = _table(tmp_path, count, num_hashes, num_bands)
    searched = Searched(dataset)
    assert _columns_are_mapped(searched)
    mapped = [listed(answer) for answer in _answers(searched)]
    expected: list[Ranked] = []
    for signature in searched.signatures[:: len(searched.signatures) // 7]:
        expected += [searched.expected_candidates(signature), searched.expected_all(signature)]
    assert mapped == [listed(answer) for answer in expected]
    monkeypatch.setattr(DatasetFiles, "local_path", lambda self, relative: None)
    read = Searched(dataset)
    assert not _columns_are_mapped(read)
    assert [listed(answer) for answer in _answers(read)] == mapped


@pytest.mark.parametrize("num_hashes", [1, 7, 63, 64, 65, 255, 256, 2040, 4096])
def test_differences_are_counted(num_hashes: int) -> None:
    random = np.random.default_rng(num_hashes)
    signatures = random.integers(0, 3, (5000, num_hashes)).astype(np.uint16)
    signatures[17] = signatures[4]
    signatures[18] = signatures[4] + 1
    different = count_differences(signatures, signatures[4])
    assert different.tolist() == (signatures != signatures[4]).sum(axis=1).tolist()
    assert (different[17], different[18]) == (0, num_hashes)


@pytest.mark.usefixtures("away")
def test_a_large_bucket_that_spans_pages_read_by_pylance(tmp_path: Path) -> None:
    _large_bucket(tmp_path)


def test_a_large_bucket_that_spans_pages(tmp_path: Path) -> None:
    _large_bucket(tmp_path)


def _large_bucket(folder: Path) -> None:
    texts = ["the same text each time"] * 10_000 + corpus(500, 2)
    dataset = table_of(folder, texts, per_fragment=20_000)
    index_text(dataset, num_hashes=8, num_bands=4)
    searched = Searched(lance.dataset(folder))
    found = searched.candidates("the same text each time")
    assert found.row_ids.tolist() == list(range(10_000))
    signature = searched.sign("the same text each time")
    assert signature is not None
    stats = SearchStats()
    assert len(searched.reader.within(signature, 0, 3, searched.covered, stats)) == 10_000
    assert stats.buckets == 4


@pytest.mark.parametrize("texts", [[None, None], ["", None, " "], ["one", None]])
def test_hardly_any_text(texts: list[str | None], tmp_path: Path) -> None:
    dataset = table_of(tmp_path, texts, per_fragment=10)
    index_text(dataset)
    searched = Searched(lance.dataset(tmp_path))
    signed = [row for row, text in enumerate(texts) if text == "one"]
    assert searched.candidates("one").row_ids.tolist() == signed
    signature = searched.sign("two")
    assert signature is not None
    every = searched.reader.all_rows(signature, searched.covered, SearchStats())
    assert every.row_ids.tolist() == signed
    found = nearest(searched.reader, signature, 3, searched.covered, None, True, SearchStats())
    assert found.row_ids.tolist() == signed


def test_what_was_read_is_kept(tmp_path: Path) -> None:
    searched = Searched(_table(tmp_path, 900, 16, 8))
    first, second = SearchStats(), SearchStats()
    signature = searched.signatures[5]
    found = searched.reader.candidates(signature, searched.covered, first)
    again = searched.reader.candidates(signature, searched.covered, second)
    assert listed(found) == listed(again)
    assert first.pages_read > 0
    assert second.pages_read == 0
    assert second.bytes_read == second.signatures_compared * 16 * 2
    assert first.buckets == second.buckets == 8


def test_a_cache_that_keeps_nothing(tmp_path: Path) -> None:
    searched = Searched(_table(tmp_path, 900, 16, 8), cache_bytes=0)
    assert [listed(a) for a in _answers(searched)] == [
        listed(a) for a in _answers(Searched(searched.dataset))
    ]
    assert searched.snapshot.cache.nbytes == 0


def test_threads(tmp_path: Path) -> None:
    searched = Searched(_table(tmp_path, 900, 16, 8))
    expected = [listed(answer) for answer in _answers(Searched(searched.dataset))]
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: [listed(a) for a in _answers(searched)], range(16)):
            assert found == expected


@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize("name", [SIGNATURES, BANDS])
def test_flipped_bytes(
    name: str, local: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No checksum guards the payload: what is answered are rows of the table all the same."""
    searched = Searched(_table(tmp_path, 1200, 16, 8))
    live = np.arange(1200, dtype=np.uint64)
    (file,) = tmp_path.glob(f"_indices/*/{name}")
    sound = file.read_bytes()
    payload = lance.file.LanceFileReader(str(file)).metadata().num_data_bytes
    if not local:
        monkeypatch.setattr(DatasetFiles, "local_path", lambda self, relative: None)
    told = 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        data = np.frombuffer(sound, np.uint8).copy()
        flipped = random.integers(0, payload, random.integers(1, 30))
        data[flipped] ^= random.integers(1, 256, len(flipped)).astype(np.uint8)
        file.write_bytes(data.tobytes())
        searched.snapshot.cache = ReaderCache(1 << 26)
        for signature in searched.signatures[[3, 700]]:
            try:
                found = [
                    searched.reader.candidates(signature, searched.covered, SearchStats()),
                    nearest(
                        searched.reader, signature, 5, searched.covered, None, True, SearchStats()
                    ),
                ]
            except CorruptIndexError:
                told += 1
                continue
            assert np.isin(np.concatenate([each.addresses for each in found]), live).all()
    assert told > 0


def test_row_ids_of_a_large_segment_are_read_in_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = _table(tmp_path, 900, 16, 8)
    expected = [listed(answer) for answer in _answers(Searched(dataset))]
    monkeypatch.setattr(rows, "_WHOLE_UP_TO", 0)
    monkeypatch.setattr(rows, "_PAGE_ROWS", 50)
    for at_once, share in ((64, 4), (0, 4), (0, 1000)):
        monkeypatch.setattr(rows, "_PAGES_AT_ONCE", at_once)
        monkeypatch.setattr(rows, "_SHARE_OF_PAGES", share)
        assert [listed(answer) for answer in _answers(Searched(dataset))] == expected
