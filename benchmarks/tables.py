"""The generated tables that the benchmarks read, made once and kept."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

FOLDER = Path(__file__).resolve().parent / ".tables"

LABELS = 1_000
TAGS_A_ROW = 5
STRUCTS_A_ROW = 4  # on average
ROWS_A_BATCH = 50_000
ROWS_A_FRAGMENT = 250_000
FLOATS_A_VECTOR = 128


def frequencies() -> np.ndarray:
    """Probability of each label, the most frequent first: a Zipf-Mandelbrot law.

    Its two constants give the first label about 354,000 rows of a million with `TAGS_A_ROW`
    draws a row, and the last one about 118.
    """
    weights = (np.arange(1, LABELS + 1) + 7.3) ** -1.7
    return weights / weights.sum()


def drawn(count: int, rng: np.random.Generator) -> pa.Array:
    """So many labels, as frequent as `frequencies` says."""
    labels = pa.array([f"label_{number:04}" for number in range(LABELS)])
    return labels.take(pa.array(rng.choice(LABELS, count, p=frequencies())))


def detections(rows: int, rng: np.random.Generator) -> pa.ListArray:
    """Lists of structs, none of them NULL: a label, a confidence and a place."""
    lengths = rng.poisson(STRUCTS_A_ROW, rows)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    structs = pa.StructArray.from_arrays(
        [
            drawn(offsets[-1], rng),
            pa.array(rng.random(offsets[-1], dtype=np.float32)),
            *(pa.array(rng.integers(0, 2_000, offsets[-1], dtype=np.int32)) for _ in "xy"),
        ],
        names=["label", "confidence", "x", "y"],
    )
    return pa.ListArray.from_arrays(offsets, structs)


def batch(first_id: int, rows: int, rng: np.random.Generator) -> pa.RecordBatch:
    """`rows` rows of id, score, caption, tags and detections, from `first_id` on."""
    lists = detections(rows, rng)
    words = zip(*(drawn(rows, rng).to_pylist() for _ in range(6)), strict=True)
    return pa.RecordBatch.from_pydict(
        {
            "id": pa.array(np.arange(first_id, first_id + rows)),
            "score": pa.array(rng.random(rows)),
            "caption": pa.array(map(" ".join, words)),
            "tags": pa.ListArray.from_arrays(
                np.arange(0, rows * TAGS_A_ROW + 1, TAGS_A_ROW, dtype=np.int32),
                drawn(rows * TAGS_A_ROW, rng),
            ),
            "detections": lists,
        }
    )


def wide_batch(first_id: int, rows: int, rng: np.random.Generator) -> pa.RecordBatch:
    """The columns of `batch` and 15 more: 20, a vector and what comes with an image among them."""
    narrow = batch(first_id, rows, rng)
    columns: dict[str, Any] = dict(zip(narrow.schema.names, narrow.columns, strict=True))
    numbers = pa.array(np.arange(first_id, first_id + rows))
    vectors = pa.array(rng.random(rows * FLOATS_A_VECTOR, dtype=np.float32))
    columns["vector"] = pa.FixedSizeListArray.from_arrays(vectors, FLOATS_A_VECTOR)
    columns["url"] = pc.binary_join_element_wise(
        "https://images.example/", pc.cast(numbers, pa.string()), ".jpg", ""
    )
    columns["taken"] = pc.cast(pc.multiply(numbers, 1_000_000), pa.timestamp("us"))
    columns["checked"] = pa.array(rng.random(rows) < 0.5)
    for name in ("camera", "place", "license"):
        columns[name] = drawn(rows, rng)
    for name in ("width", "height", "iso"):
        columns[name] = pa.array(rng.integers(100, 6_000, rows, dtype=np.int32))
    for name in ("bytes", "owner"):
        columns[name] = pa.array(rng.integers(0, 1 << 40, rows))
    for name in ("latitude", "longitude", "sharpness"):
        columns[name] = pa.array(rng.random(rows))
    return pa.RecordBatch.from_pydict(columns)


def images(rows: int, folder: Path = FOLDER) -> Path:
    """The path of a Lance table of `rows` rows in `folder`, with a label list index on `tags`."""
    return _kept(folder / f"images-{rows}.lance", rows, batch)


def wide_images(rows: int, folder: Path = FOLDER) -> Path:
    """The same with 20 columns."""
    return _kept(folder / f"wide-{rows}.lance", rows, wide_batch)


def _kept(
    path: Path, rows: int, made: Callable[[int, int, np.random.Generator], pa.RecordBatch]
) -> Path:
    if path.exists():
        return path
    print(f"Generating {rows:,} rows, once …", flush=True)
    path.parent.mkdir(exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    rng = np.random.default_rng(20)
    first = made(0, min(ROWS_A_BATCH, rows), rng)
    later = (
        made(start, min(ROWS_A_BATCH, rows - start), rng)
        for start in range(ROWS_A_BATCH, rows, ROWS_A_BATCH)
    )
    dataset = lance.write_dataset(
        (part for parts in ((first,), later) for part in parts),
        unfinished,
        schema=first.schema,
        max_rows_per_file=ROWS_A_FRAGMENT,
    )
    dataset.create_scalar_index("tags", "LABEL_LIST")
    unfinished.rename(path)
    return path
