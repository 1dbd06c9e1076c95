"""Indexes that pylance itself built, and what it stored in them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance.file import LanceFileReader
from lance.indices import IndexConfig

from datafusion_lance.indexes.manifest import LanceIndex, read_indexes


def indexed(folder: Path, texts: Sequence[str | None], **parameters: Any) -> lance.LanceDataset:
    """A new table with one column `text`, indexed by pylance."""
    dataset = lance.write_dataset(pa.table({"text": pa.array(texts, pa.string())}), folder)
    dataset.create_scalar_index("text", IndexConfig("minhashlsh", parameters=parameters))
    return dataset


def index_of(dataset: lance.LanceDataset) -> LanceIndex:
    """The one index of the table."""
    (index,) = read_indexes(dataset)
    return index


def stored_signatures(dataset: lance.LanceDataset) -> dict[int, npt.NDArray[np.uint16]]:
    """The signature of each row of a table of one fragment that pylance gave one."""
    (segment,) = index_of(dataset).segments
    file = LanceFileReader(f"{dataset.uri}/_indices/{segment.uuid}/signatures.lance")
    rows = file.read_all().to_table()
    return dict(
        zip(rows["_rowid"].to_pylist(), np.array(rows["signature"].to_pylist()), strict=True)
    )


def stored_band_keys(dataset: lance.LanceDataset) -> list[int]:
    """All band keys of the table's one segment, in order."""
    (segment,) = index_of(dataset).segments
    file = LanceFileReader(f"{dataset.uri}/_indices/{segment.uuid}/bands.lance")
    return file.read_all().to_table()["band_key"].to_pylist()
