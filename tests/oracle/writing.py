"""Writes tables fragment by fragment."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa


def write_fragments(
    path: Path | str, rows: pa.Table, rows_per_fragment: int, stable_row_ids: bool = False
) -> None:
    """Appends `rows` to the dataset, which is made where there is none.

    Each fragment is a copy of its rows: pylance fails on some slices with NULLs in structs.
    """
    for low in range(0, max(1, rows.num_rows), rows_per_fragment):
        high = min(low + rows_per_fragment, rows.num_rows)
        part = rows.take(pa.array(range(low, high), pa.int64()))
        exists = Path(path, "_versions").exists()
        lance.write_dataset(
            part,
            path,
            mode="append" if exists else "create",
            enable_stable_row_ids=stable_row_ids,
        )
