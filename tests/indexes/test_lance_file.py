"""Footers of Lance files that pylance would end the process over."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from datafusion_lance.indexes.dataset_files import DatasetFiles
from datafusion_lance.indexes.errors import CorruptIndexError
from datafusion_lance.indexes.lance_file import OpenFile


@pytest.fixture
def files(tmp_path: Path) -> DatasetFiles:
    path = tmp_path / "t"
    files = DatasetFiles.at(lance.write_dataset(pa.table({"n": [1]}), path), str(path))
    with files.create("file.lance", pa.schema({"n": pa.int64()})) as writer:
        writer.write_batch(pa.record_batch({"n": [1, 2, 3]}))
    return files


@pytest.mark.parametrize(
    ("place", "counts"),
    [(-13, "1 columns and 2147483649 buffers"), (-9, "2147483649 columns and 1 buffers")],
)
def test_a_count_that_is_too_large(files: DatasetFiles, place: int, counts: str) -> None:
    path = Path(files.base) / "file.lance"
    data = bytearray(path.read_bytes())
    assert OpenFile(files, "file.lance", size=len(data)).num_rows == 3
    data[place] ^= 0x80
    path.write_bytes(data)

    with pytest.raises(CorruptIndexError, match=f"{counts} end outside it"):
        OpenFile(files, "file.lance", size=len(data))


def test_a_file_of_a_footer_s_end(files: DatasetFiles) -> None:
    path = Path(files.base) / "file.lance"
    path.write_bytes(path.read_bytes()[-8:])

    with pytest.raises(CorruptIndexError, match="8 bytes are too few for a footer"):
        OpenFile(files, "file.lance", size=8)
