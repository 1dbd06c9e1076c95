"""The specification's section Storage Layout: the target BTree's files, against pylance's own."""

from __future__ import annotations

import random
import shutil
from bisect import bisect_left
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lance.file import LanceFileReader, LanceFileWriter

from datafusion_lance.indexes.cache import ReaderCache
from datafusion_lance.indexes.errors import CorruptIndexError
from datafusion_lance.indexes.list_element.btree import BTree
from datafusion_lance.indexes.list_element.builder import create_list_element
from datafusion_lance.indexes.list_element.key_encoding import AFTER
from datafusion_lance.indexes.list_element.key_range import TupleRanges
from datafusion_lance.indexes.search_stats import SearchStats
from datafusion_lance.indexes.snapshot import Snapshot

from .reference import encode_tuple

ELEMENT = pa.struct([("label", pa.string()), ("confidence", pa.float32())])
KINDS = ("string", "float")
PAGE = 4096

Lists = list[Any]


def written(path: Path, lists: Lists, rows_per_file: int = 1_000_000) -> lance.LanceDataset:
    table = pa.table({"d": pa.array(lists, pa.list_(ELEMENT))})
    return lance.write_dataset(table, path, max_rows_per_file=rows_per_file)


def indexed(path: Path, lists: Lists, rows_per_file: int = 1_000_000) -> lance.LanceDataset:
    dataset = written(path, lists, rows_per_file)
    create_list_element(dataset, "d", ["label", "confidence"], progress=False)
    return dataset


def entries_of(lists: Lists) -> list[tuple[bytes | None, int]]:
    """What the specification says of each element and each null list: value and row."""
    found: list[tuple[bytes | None, int]] = []
    for row, elements in enumerate(lists):
        if elements is None:
            found.append((None, row))
            continue
        for element in elements:
            fields = element or {}
            values = (fields.get("label"), fields.get("confidence"))
            found.append((encode_tuple(KINDS, values), row))
    return found


def index_folder(dataset: lance.LanceDataset) -> Path:
    (folder,) = (Path(dataset.uri) / "_indices").iterdir()
    return folder


def tables_of(folder: Path) -> dict[str, tuple[pa.Schema, pa.Table]]:
    found: dict[str, tuple[pa.Schema, pa.Table]] = {}
    for file in folder.iterdir():
        reader = LanceFileReader(str(file))
        found[file.name] = (reader.metadata().schema, reader.read_all().to_table())
    return found


def element(number: int) -> dict[str, Any]:
    return {"label": f"label {number % 97}", "confidence": number % 13 / 8}


SHAPES: dict[str, Lists] = {
    "no rows": [],
    "nothing but empty lists": [[], []],
    "one entry": [[element(1)]],
    "a full page": [[element(i)] for i in range(PAGE)],
    "an entry more than a page": [[element(i)] for i in range(PAGE + 1)],
    "null lists and values in one page": [None, [element(1), None], [], [None]],
    "null pages": [None] * (2 * PAGE + 7) + [[element(i), element(i + 1)] for i in range(5000)],
    "nothing but null lists": [None] * PAGE,
    "null keys": [[{"label": None, "confidence": i / 2}, {"label": "x"}] for i in range(9)],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_files_are_those_of_a_btree_over_the_same_values(shape: str, tmp_path: Path) -> None:
    entries = entries_of(SHAPES[shape])
    random.Random(1).shuffle(entries)
    values = pa.table({"values": pa.array([value for value, _ in entries], pa.binary())})
    peer = lance.write_dataset(values, tmp_path / "peer")
    peer.create_scalar_index("values", "BTREE")
    dataset = indexed(tmp_path / "ours", SHAPES[shape])

    ours, theirs = tables_of(index_folder(dataset)), tables_of(index_folder(peer))
    assert ours.keys() == theirs.keys()
    for name, (schema, table) in theirs.items():
        assert ours[name][0].equals(schema, check_metadata=True)
        # The ids are other rows'; the next test has them.
        columns = [column for column in schema.names if column != "ids"]
        assert ours[name][1].select(columns).equals(table.select(columns))


@pytest.mark.parametrize("shape", SHAPES)
def test_every_element_and_every_null_list_has_an_entry(shape: str, tmp_path: Path) -> None:
    dataset = indexed(tmp_path / "t", SHAPES[shape])
    _, data = tables_of(index_folder(dataset))["page_data.lance"]
    got = zip(data.column("values").to_pylist(), data.column("ids").to_pylist(), strict=True)
    assert sorted(got, key=repr) == sorted(entries_of(SHAPES[shape]), key=repr)


def test_a_struct_s_null_hides_the_values_under_it(tmp_path: Path) -> None:
    children = [pa.array(["a", "b", "c"]), pa.array([1.0, 2.0, 3.0], pa.float32())]
    mask = pa.array([False, True, False])
    structs = pa.StructArray.from_arrays(children, ["label", "confidence"], mask=mask)
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), structs)
    dataset = lance.write_dataset(pa.table({"d": lists}), tmp_path / "t")
    create_list_element(dataset, "d", ["label", "confidence"], progress=False)
    _, data = tables_of(index_folder(dataset))["page_data.lance"]
    assert data.column("values")[0].as_py() == encode_tuple(KINDS, (None, None))


# -- reading -------------------------------------------------------------------------------


def tree_of(
    dataset: lance.LanceDataset, cache: ReaderCache | None = None, position: int = 0
) -> BTree:
    snapshot = Snapshot(dataset, ReaderCache(64 << 20) if cache is None else cache)
    segment = snapshot.indexes[position].segments[0]
    return BTree(segment, *snapshot.files_of(segment), snapshot.cache)


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> tuple[lance.LanceDataset, list[bytes | None]]:
    """A BTREE of pylance over binary values: NULLs, repeated ones, and one over many pages."""
    draw = random.Random(2)
    values: list[bytes | None] = [None] * 5000
    values += [b"\2k%04d" % draw.randrange(3000) for _ in range(30_000)]
    values += [b"\2many"] * 20_000
    values += [b"\2k0000" + b"\0" * n for n in range(4)]
    draw.shuffle(values)
    table = pa.table({"values": pa.array(values, pa.binary())})
    dataset = lance.write_dataset(table, tmp_path_factory.mktemp("peer") / "t")
    dataset.create_scalar_index("values", "BTREE")
    return dataset, values


@pytest.fixture(scope="module")
def in_order(
    peer: tuple[lance.LanceDataset, list[bytes | None]],
) -> tuple[list[bytes], np.ndarray]:
    pairs = sorted((value, row) for row, value in enumerate(peer[1]) if value is not None)
    return [value for value, _ in pairs], np.array([row for _, row in pairs])


BOUNDS = st.one_of(
    st.builds(lambda n, rest: b"\2k%04d" % n + rest, st.integers(0, 3001), st.binary(max_size=2)),
    st.sampled_from([b"", b"\0", b"\2many", b"\2many\0", b"\2manz", AFTER]),
)


@settings(max_examples=30)
@given(
    bounds=st.lists(BOUNDS, min_size=2, max_size=30, unique=True)
    | st.lists(BOUNDS, min_size=200, max_size=500, unique=True)
)
def test_ranges_of_pylance_s_own_files(
    peer: tuple[lance.LanceDataset, list[bytes | None]],
    in_order: tuple[list[bytes], np.ndarray],
    bounds: list[bytes],
) -> None:
    dataset, ordered = peer[0], in_order
    ends = sorted(bounds)[: len(bounds) // 2 * 2]
    ranges = list(zip(ends[::2], ends[1::2], strict=True))
    got = tree_of(dataset, SHARED).search(TupleRanges.of(ranges), SearchStats())
    values, rows = ordered
    expected = [rows[bisect_left(values, low) : bisect_left(values, high)] for low, high in ranges]
    assert np.array_equal(np.sort(got), np.sort(np.concatenate(expected)))


SHARED = ReaderCache(64 << 20)


def test_unbounded_and_null_entries(peer: tuple[lance.LanceDataset, list[bytes | None]]) -> None:
    dataset, values = peer
    tree = tree_of(dataset)
    every = tree.search(TupleRanges.everything(), SearchStats())
    nulls = tree.null_ids(SearchStats())
    assert sorted(every.tolist()) == [i for i, v in enumerate(values) if v is not None]
    assert sorted(nulls.tolist()) == [i for i, v in enumerate(values) if v is None]
    assert len(tree.search(TupleRanges.of([]), SearchStats())) == 0


def test_a_lookup_of_up_to_4096_entries_reads_at_most_two_pages(tmp_path: Path) -> None:
    sizes = [1, 5, 100, 1000, 4095, 4096, 3000, 4096, 17, 4096]
    lists = [[{"label": f"{i:03}"}] for i, size in enumerate(sizes) for _ in range(size)]
    dataset = indexed(tmp_path / "t", lists)
    for number, size in enumerate(sizes):
        key = encode_tuple(KINDS[:1], [f"{number:03}"])
        stats = SearchStats()
        found = tree_of(dataset).search(TupleRanges.of([(key, key + AFTER)]), stats)
        assert len(found) == size
        assert 1 <= stats.pages_read <= 2
    for absent in ("", "0000", "004a", "999"):
        key, stats = encode_tuple(KINDS[:1], [absent]), SearchStats()
        assert len(tree_of(dataset).search(TupleRanges.of([(key, key + AFTER)]), stats)) == 0
        assert stats.pages_read <= 1


def test_pages_are_kept_within_the_cache_s_limit(
    peer: tuple[lance.LanceDataset, list[bytes | None]],
) -> None:
    dataset, _ = peer
    ranges = TupleRanges.of([(b"\2k1000", b"\2k1100")])
    roomy = ReaderCache(64 << 20)
    first, second = SearchStats(), SearchStats()
    found = tree_of(dataset, roomy).search(ranges, first)
    assert tree_of(dataset, roomy).search(ranges, second).tolist() == found.tolist()
    assert first.pages_read > 0
    assert (second.pages_read, second.bytes_read) == (0, 0)
    narrow = ReaderCache(200_000)
    everything = tree_of(dataset, narrow).search(TupleRanges.everything(), SearchStats())
    assert len(everything) == 50_004
    assert narrow.nbytes <= 200_000


def test_ten_thousand_ranges_read_each_page_once(
    peer: tuple[lance.LanceDataset, list[bytes | None]],
) -> None:
    dataset, values = peer
    keys = [b"\2k%04d" % n for n in range(3000)] + [b"\2k%04dx" % n for n in range(3000)]
    ranges = TupleRanges.of((key, key + b"\0") for key in sorted(keys))
    stats = SearchStats()
    got = tree_of(dataset).search(ranges, stats)
    wanted = set(keys)
    assert sorted(got.tolist()) == [i for i, v in enumerate(values) if v in wanted]
    assert stats.pages_read <= 14


def test_one_tree_answers_several_threads(
    peer: tuple[lance.LanceDataset, list[bytes | None]],
) -> None:
    tree = tree_of(peer[0], ReaderCache(100_000))
    ranges = [TupleRanges.of([(b"\2k%04d" % n, b"\2k%04d" % (n + 40))]) for n in range(0, 2900, 50)]
    expected = [tree.search(each, SearchStats()).tolist() for each in ranges]
    with ThreadPoolExecutor(8) as threads:
        got = list(threads.map(lambda each: tree.search(each, SearchStats()).tolist(), ranges * 3))
    assert got == expected * 3


# -- damage --------------------------------------------------------------------------------


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def scramble(file: Path) -> None:
    file.write_bytes(b"no Lance file at all" * 100)


@pytest.mark.parametrize("name", ["page_data.lance", "page_lookup.lance"])
@pytest.mark.parametrize("damage", [cut, scramble, Path.unlink, lambda f: f.write_bytes(b"")])
def test_a_damaged_file_is_named(
    name: str, damage: Callable[[Path], object], tmp_path: Path
) -> None:
    dataset = indexed(tmp_path / "t", [[element(i)] for i in range(10_000)])
    damage(index_folder(dataset) / name)
    with pytest.raises(CorruptIndexError) as error:
        tree_of(dataset).search(TupleRanges.everything(), SearchStats())
    assert error.value.file.endswith(name)


@pytest.mark.parametrize("name", ["page_data.lance", "page_lookup.lance"])
def test_another_index_s_file_is_found_out(name: str, tmp_path: Path) -> None:
    """Files of equal shape, so that nothing but the values gives the change away."""
    one = indexed(tmp_path / "one", [[element(i)] for i in range(10_000)])
    other = indexed(tmp_path / "other", [[element(i // 2)] for i in range(10_000)])
    shutil.copy(index_folder(other) / name, index_folder(one) / name)
    with pytest.raises(CorruptIndexError, match="is not the one of page_lookup"):
        tree_of(one).search(TupleRanges.everything(), SearchStats())


def test_files_that_changed_places_are_found_out(tmp_path: Path) -> None:
    dataset = indexed(tmp_path / "t", [[element(i)] for i in range(10_000)])
    folder = index_folder(dataset)
    data, lookup = folder / "page_data.lance", folder / "page_lookup.lance"
    kept = data.read_bytes()
    shutil.copy(lookup, data)
    lookup.write_bytes(kept)
    with pytest.raises(CorruptIndexError, match="its columns are"):
        tree_of(dataset).search(TupleRanges.everything(), SearchStats())


def rewritten(file: Path, change: Callable[[pa.Table], pa.Table], **metadata: str) -> None:
    reader = LanceFileReader(str(file))
    schema = reader.metadata().schema
    table = change(reader.read_all().to_table())
    kept = {**(schema.metadata or {}), **{k.encode(): v.encode() for k, v in metadata.items()}}
    file.unlink()
    with LanceFileWriter(str(file), schema.with_metadata(kept)) as writer:
        for batch in table.cast(schema).combine_chunks().to_batches():
            writer.write_batch(batch)


def shifted(table: pa.Table) -> pa.Table:
    return table.set_column(3, "page_idx", pa.array(np.arange(1, len(table) + 1), pa.uint32()))


def counted(table: pa.Table) -> pa.Table:
    return table.set_column(2, "null_count", pa.array([0, 0, 1], pa.uint32()))


def reversed_rows(table: pa.Table) -> pa.Table:
    return table.take(pa.array(np.arange(len(table))[::-1]))


@pytest.mark.parametrize(
    ("name", "change", "metadata", "check"),
    [
        ("page_lookup.lance", lambda t: t.slice(0, 2), {}, "it lists 2 pages, and 10000 rows"),
        ("page_lookup.lance", shifted, {}, "page_idx are not those of the pages"),
        ("page_lookup.lance", counted, {}, "NULLs behind values"),
        ("page_lookup.lance", lambda t: t, {"batch_size": "x"}, "its batch_size is 'x'"),
        ("page_lookup.lance", lambda t: t, {"batch_size": "0"}, "its batch_size is '0'"),
        ("page_lookup.lance", lambda t: t, {"range_partitioned": "true"}, "partitioned by ranges"),
        ("page_data.lance", lambda t: t.slice(0, 9_000), {}, "page 2 is not the one of"),
        ("page_data.lance", reversed_rows, {}, "page 0 is not the one of"),
    ],
)
def test_files_that_do_not_fit_the_layout_are_refused(
    name: str,
    change: Callable[[pa.Table], pa.Table],
    metadata: dict[str, str],
    check: str,
    tmp_path: Path,
) -> None:
    dataset = indexed(tmp_path / "t", [[element(i)] for i in range(10_000)])
    rewritten(index_folder(dataset) / name, change, **metadata)
    with pytest.raises(CorruptIndexError, match=check):
        tree_of(dataset).search(TupleRanges.everything(), SearchStats())


def test_values_that_do_not_ascend_are_refused(tmp_path: Path) -> None:
    dataset = indexed(tmp_path / "t", [[element(i)] for i in range(10_000)])

    def swap(table: pa.Table) -> pa.Table:
        order = np.arange(len(table))
        order[1], order[4000] = 4000, 1
        return table.take(pa.array(order))

    rewritten(index_folder(dataset) / "page_data.lance", swap)
    with pytest.raises(CorruptIndexError, match="the values of page 0 do not ascend"):
        tree_of(dataset).search(TupleRanges.everything(), SearchStats())


def test_pages_in_any_order_are_put_in_order(tmp_path: Path) -> None:
    dataset = indexed(tmp_path / "t", [[element(i)] for i in range(10_000)])
    rewritten(index_folder(dataset) / "page_lookup.lance", reversed_rows)
    assert len(tree_of(dataset).search(TupleRanges.everything(), SearchStats())) == 10_000
