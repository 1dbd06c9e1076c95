"""A damaged index file is told by its name and the check that it fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from datafusion_lance.indexes.errors import CorruptIndexError
from datafusion_lance.indexes.query import Not
from datafusion_lance.indexes.snapshot import Snapshot

from ..answers import has_any, snapshot_of, true_rows
from .written_index import FILE, WrittenSegment, commit_index, row_addr_tree_map


def _table(path: Path) -> lance.LanceDataset:
    lists = [[f"label-{i}", f"label-{i % 3}"] for i in range(50)]
    return lance.write_dataset(pa.table({"tags": lists}), path / "table.lance")


def _index_file(dataset: lance.LanceDataset) -> Path:
    (file,) = Path(dataset.uri).glob(f"_indices/*/{FILE}")
    return file


def _search(snapshot: Snapshot) -> None:
    """Reads keys, two bitmaps and the null lists."""
    true_rows(snapshot, Not(has_any(snapshot, ["label-1", "label-49"], match_null=False)))


def _assert_corrupt(snapshot: Snapshot, check: str) -> None:
    for _ in range(2):  # what failed is not kept as if it had not
        with pytest.raises(CorruptIndexError, match=check) as raised:
            _search(snapshot)
        assert raised.value.file == str(_index_file(snapshot.dataset))
        assert raised.value.file in str(raised.value)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.99])
def test_a_truncated_file(share: float, tmp_path: Path) -> None:
    dataset = _table(tmp_path)
    dataset.create_scalar_index("tags", "LABEL_LIST")
    file = _index_file(dataset)
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * share)])
    _assert_corrupt(snapshot_of(dataset), f"it has {len(data)} bytes: ")


def test_a_file_that_is_no_lance_file(tmp_path: Path) -> None:
    dataset = _table(tmp_path)
    dataset.create_scalar_index("tags", "LABEL_LIST")
    file = _index_file(dataset)
    size = file.stat().st_size
    file.write_bytes(b"x" * size)
    _assert_corrupt(snapshot_of(dataset), f"no LANC at the end of its {size} bytes")


def test_a_file_with_a_damaged_end(tmp_path: Path) -> None:
    dataset = _table(tmp_path)
    dataset.create_scalar_index("tags", "LABEL_LIST")
    file = _index_file(dataset)
    data = file.read_bytes()
    file.write_bytes(data[:-40] + b"\xff" * 36 + data[-4:])
    _assert_corrupt(snapshot_of(dataset), "it opens: ")


def test_a_missing_file(tmp_path: Path) -> None:
    dataset = _table(tmp_path)
    dataset.create_scalar_index("tags", "LABEL_LIST")
    file = _index_file(dataset)
    file.unlink()
    snapshot = snapshot_of(dataset)
    with pytest.raises(CorruptIndexError, match="missing index file") as raised:
        _search(snapshot)
    assert raised.value.file == str(file)


_MAP = row_addr_tree_map({0: [1, 2]})


def _segment(**changes: object) -> WrittenSegment:
    postings = changes.pop("postings", [("label-1", _MAP), ("label-49", _MAP)])
    return WrittenSegment(postings, {0}, **changes)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("make", "check"),
    [
        (lambda: _segment(names=("keys", "rows")), "the columns are .*, not keys and bitmaps"),
        (
            lambda: _segment(
                postings=[("label-1", b"text"), ("label-49", b"text")], bitmap_type=pa.string()
            ),
            "bitmaps are string, not binary",
        ),
        (
            lambda: _segment(postings=[("label-1", _MAP), ("label-1", _MAP)]),
            "the keys: a key stands twice",
        ),
        (
            lambda: _segment(postings=[(None, _MAP), ("a", _MAP), (None, _MAP)]),
            "the keys: the key NULL stands twice",
        ),
        (
            lambda: _segment(postings=[("label-1", _MAP[:-1]), ("label-49", _MAP)]),
            "the bitmap in row 0: a row set that ends inside a bitmap",
        ),
        (
            lambda: _segment(postings=[("label-1", _MAP), ("label-49", b"")]),
            "the bitmap in row 1: a row set shorter than its count",
        ),
        (
            lambda: _segment(postings=[("label-1", _MAP), ("label-49", _MAP[:12] + b"\xff" * 16)]),
            "the bitmap in row 1: ",
        ),
        (
            lambda: _segment(postings=[("label-1", row_addr_tree_map({0: [50]}))]),
            "row 50 in fragment 0, which has 50 rows",
        ),
        (
            lambda: _segment(null_lists={0: [7, 1_000_000]}),
            "row 1000000 in fragment 0, which has 50 rows",
        ),
        (
            lambda: _segment(nulls_metadata=""),
            "the schema's metadata has no lance:label_list_nulls",
        ),
        (lambda: _segment(nulls_metadata="17"), "label_list_nulls is '17', and the file has"),
        (lambda: _segment(nulls_metadata="-1"), "label_list_nulls is '-1'"),
        (lambda: _segment(nulls_metadata="one"), "label_list_nulls is 'one'"),
        (lambda: _segment(nulls_metadata="0"), "the set of null lists: "),
        (
            lambda: _segment(null_lists=_MAP + b"?"),
            "the set of null lists: .* after its last entry",
        ),
    ],
)
def test_checks_of_the_contents(
    make: Callable[[], WrittenSegment], check: str, tmp_path: Path
) -> None:
    _assert_corrupt(snapshot_of(commit_index(_table(tmp_path), make())), check)


def test_a_bitmap_that_nobody_asks_for_is_not_read(tmp_path: Path) -> None:
    segment = _segment(postings=[("label-1", _MAP), ("other", b"damaged")])
    snapshot = snapshot_of(commit_index(_table(tmp_path), segment))
    assert true_rows(snapshot, has_any(snapshot, ["label-1"])) == {1, 2}
