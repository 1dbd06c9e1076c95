"""Index metadata from the manifest: every type, every version, wherever the manifest is."""

from __future__ import annotations

import os
import uuid
import warnings
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.bitmap import Bitmap
from lance.dataset import Index, IndexFile, LanceOperation

from datafusion_lance.indexes.errors import CorruptIndexError, LanceIndexError
from datafusion_lance.indexes.manifest import LanceIndex, read_indexes, read_manifest

from .answers import has_any, snapshot_of, true_rows

_ROWS = pa.table({"id": range(8), "tags": [["a"], ["b"]] * 4, "vector": [[1.0, 2.0]] * 8})


def _table(path: Path, *, v2_paths: bool = True, stable_row_ids: bool = False) -> Path:
    """Two fragments, at version 1; a label list index at version 2."""
    place = path / "table.lance"
    dataset = lance.write_dataset(
        _ROWS,
        place,
        max_rows_per_file=4,
        enable_v2_manifest_paths=v2_paths,
        enable_stable_row_ids=stable_row_ids,
    )
    dataset.create_scalar_index("tags", "LABEL_LIST")
    return place


def _names(dataset: lance.LanceDataset) -> list[str]:
    return [index.name for index in read_indexes(dataset)]


@pytest.mark.parametrize("v2_paths", [False, True])
def test_what_the_metadata_says(tmp_path: Path, v2_paths: bool) -> None:
    dataset = lance.dataset(_table(tmp_path, v2_paths=v2_paths))
    (index,) = read_indexes(dataset)
    (listed,) = dataset.describe_indices()
    assert (index.name, index.kind, index.field_ids) == ("tags_idx", "LabelList", (1,))
    (segment,) = index.segments
    assert segment.uuid == str(listed.segments[0].uuid)
    assert segment.fragment_ids == {0, 1}
    assert segment.dataset_version == 1
    assert segment.index_version == 1
    assert segment.details_type_url == "/lance.table.LabelListIndexDetails"
    assert segment.base_id is None
    assert segment.created_at is not None
    ((name, size),) = segment.files
    assert (Path(dataset.uri) / "_indices" / segment.uuid / name).stat().st_size == size
    assert read_indexes(dataset) == (index,)
    assert hash(read_indexes(dataset)[0]) == hash(index)


def test_a_type_that_pylance_does_not_know(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    place = _table(tmp_path)
    unknown = Index(
        uuid=str(uuid.uuid4()),
        name="structs_idx",
        fields=[1],
        dataset_version=2,
        fragment_ids=Bitmap([1]),
        index_version=0,
        files=[IndexFile("page_data.lance", 7)],
        index_details=("/lance.index.pb.UnheardOfIndexDetails", b"details"),
    )
    operation = LanceOperation.CreateIndex([unknown], [])
    lance.LanceDataset.commit(place, operation, read_version=2)
    dataset = lance.dataset(place)
    capfd.readouterr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        indexes = read_indexes(dataset)
    assert capfd.readouterr() == ("", "")
    assert [(index.name, index.kind) for index in indexes] == [
        ("tags_idx", "LabelList"),
        ("structs_idx", "UnheardOf"),
    ]
    assert indexes[1].segments[0].details == b"details"
    assert snapshot_of(dataset).covered_fragments(indexes[1]) == {1}


def test_all_kinds_of_pylance(tmp_path: Path) -> None:
    dataset = lance.dataset(_table(tmp_path))
    dataset.create_scalar_index("id", "BTREE")
    assert [(index.kind, index.field_ids) for index in read_indexes(dataset)] == [
        ("LabelList", (1,)),
        ("BTree", (0,)),
    ]


def test_segments_of_one_name_are_one_index(tmp_path: Path) -> None:
    dataset = lance.dataset(_table(tmp_path))
    dataset.insert(_ROWS)
    dataset.optimize.optimize_indices(num_indices_to_merge=0)
    (index,) = read_indexes(lance.dataset(dataset.uri))
    assert [sorted(segment.fragment_ids) for segment in index.segments] == [[0, 1], [2]]


# -- which version --------------------------------------------------------------------------


@pytest.mark.parametrize("v2_paths", [False, True])
def test_each_version_has_its_own_indexes(tmp_path: Path, v2_paths: bool) -> None:
    place = _table(tmp_path, v2_paths=v2_paths)
    dataset = lance.dataset(place)
    dataset.tags.create("bare", 1)
    dataset.create_scalar_index("id", "BTREE")
    assert _names(lance.dataset(place, version=1)) == []
    assert _names(lance.dataset(place, version="bare")) == []
    assert _names(lance.dataset(place, version=2)) == ["tags_idx"]
    assert _names(dataset.checkout_version(2)) == ["tags_idx"]
    assert _names(lance.dataset(place)) == ["tags_idx", "id_idx"]


def test_a_branch(tmp_path: Path) -> None:
    """Version 3 of the branch and version 3 of the trunk are not the same."""
    trunk = lance.dataset(_table(tmp_path))
    branch = trunk.create_branch("side/line", ("main", 2))
    branch.create_scalar_index("id", "BTREE")
    trunk.create_scalar_index("tags", "LABEL_LIST", name="again")
    assert branch.version == trunk.version == 3
    assert _names(branch) == ["tags_idx", "id_idx"]
    assert _names(trunk) == ["tags_idx", "again"]
    over = trunk.checkout_version(("side/line", None))
    assert _names(over) == ["tags_idx", "id_idx"]
    assert _names(over.checkout_version(("main", 3))) == ["tags_idx", "again"]
    assert _names(branch.checkout_version(("main", 3))) == ["tags_idx", "again"]
    for dataset in (branch, over):
        snapshot = snapshot_of(dataset)
        assert true_rows(snapshot, has_any(snapshot, ["a"])) == {0, 2, 1 << 32, 1 << 32 | 2}


@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_a_shallow_clone(tmp_path: Path, stable_row_ids: bool) -> None:
    """Its index, data and deletion files are those of the table it was cloned from."""
    dataset = lance.dataset(_table(tmp_path, stable_row_ids=stable_row_ids))
    dataset.delete("id = 2")
    clone = dataset.shallow_clone(tmp_path / "clone.lance", dataset.version)
    (index,) = read_indexes(clone)
    assert index.segments[0].base_id is not None
    snapshot = snapshot_of(clone)
    assert true_rows(snapshot, has_any(snapshot, ["a"])) == {0, 1 << 32, 1 << 32 | 2}
    clone.delete("id = 0")
    snapshot = snapshot_of(lance.dataset(clone.uri))
    assert true_rows(snapshot, has_any(snapshot, ["a"])) == {1 << 32, 1 << 32 | 2}


# -- where ----------------------------------------------------------------------------------


def test_a_uri_and_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = _table(tmp_path)
    assert _names(lance.dataset(place.as_uri())) == ["tags_idx"]
    monkeypatch.chdir(tmp_path)
    snapshot = snapshot_of(lance.dataset("table.lance"))
    assert [index.name for index in snapshot.indexes] == ["tags_idx"]
    os.chdir(tmp_path.parent)
    assert len(true_rows(snapshot, has_any(snapshot, ["a"]))) == 4


def test_a_store_that_is_no_file_system(tmp_path: Path) -> None:
    """pylance's object store for local files takes the road of S3 and the others."""
    uri = f"file-object-store://{_table(tmp_path)}"
    dataset = lance.dataset(uri)
    dataset.delete("id = 2")
    snapshot = snapshot_of(dataset)
    assert true_rows(snapshot, has_any(snapshot, ["a"])) == {0, 1 << 32, 1 << 32 | 2}


def test_a_table_in_memory_cannot_be_read_again() -> None:
    dataset = lance.write_dataset(_ROWS, "memory://table")
    dataset.create_scalar_index("tags", "LABEL_LIST")
    with pytest.raises(LanceIndexError, match="version 2 of memory://table cannot be found again"):
        read_indexes(dataset)
    snapshot = snapshot_of(dataset)
    assert snapshot.fragment_ids == (0,)
    assert snapshot.indexes == ()
    assert snapshot.indexes_unread is not None


# -- damage ---------------------------------------------------------------------------------


def _manifest_file(place: Path) -> Path:
    return min((place / "_versions").glob("*.manifest"))


@pytest.mark.parametrize(
    ("damage", "check"),
    [
        (lambda data: data[:-1], "no LANC at its end"),
        (lambda data: b"", "no LANC at its end"),
        (lambda data: data[:-16] + b"\xff" * 8 + data[-8:], "the Manifest message ends outside"),
        (lambda data: b"\xff" * 4 + data[4:], "the IndexSection message ends outside the file"),
        (lambda data: data[:4] + b"\xff" * 30 + data[34:], "the IndexSection message"),
    ],
)
def test_a_damaged_manifest_is_told_by_its_name(
    tmp_path: Path, damage: Callable[[bytes], bytes], check: str
) -> None:
    place = _table(tmp_path)
    dataset = lance.dataset(place)
    file = _manifest_file(place)
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(CorruptIndexError, match=check) as raised:
        read_manifest(dataset)
    assert raised.value.file == str(file)


def test_an_index_is_a_value() -> None:
    index = LanceIndex("i", "BTree", (1,), ())
    assert index == LanceIndex("i", "BTree", (1,), ())
    assert {index: 1}[LanceIndex("i", "BTree", (1,), ())] == 1
