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
MANY_LABELS = 1_000_000
TAGS_A_ROW = 5
STRUCTS_A_ROW = 4  # on average
ROWS_A_BATCH = 50_000
ROWS_A_FRAGMENT = 250_000
FLOATS_A_VECTOR = 128


def frequencies(labels: int, exponent: float) -> np.ndarray:
    """Probability of each label, the most frequent first: a Zipf-Mandelbrot law.

    With 1,000 labels and 1.7 the first label is in about 354,000 rows of a million with
    `TAGS_A_ROW` draws a row, and the last one in about 118.
    """
    weights = (np.arange(1, labels + 1) + 7.3) ** -exponent
    return weights / weights.sum()


def drawn(count: int, rng: np.random.Generator) -> pa.Array:
    """So many of the labels, as frequent as `frequencies` says."""
    labels = pa.array([f"label_{number:04}" for number in range(LABELS)])
    return labels.take(pa.array(rng.choice(LABELS, count, p=frequencies(LABELS, 1.7))))


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
            "tags": tag_lists(drawn(rows * TAGS_A_ROW, rng)),
            "detections": lists,
        }
    )


def tag_lists(flat: pa.Array) -> pa.ListArray:
    """Lists of `TAGS_A_ROW` labels."""
    return pa.ListArray.from_arrays(np.arange(0, len(flat) + 1, TAGS_A_ROW, dtype=np.int32), flat)


def many_labels_batch(first_id: int, rows: int, rng: np.random.Generator) -> pa.RecordBatch:
    """id and tags, of which there are `MANY_LABELS` different ones: most are in a few rows."""
    numbers = rng.choice(MANY_LABELS, rows * TAGS_A_ROW, p=frequencies(MANY_LABELS, 1.0))
    labels = pc.binary_join_element_wise("label_", pc.cast(pa.array(numbers), pa.string()), "")
    ids = pa.array(np.arange(first_id, first_id + rows))
    return pa.RecordBatch.from_pydict({"id": ids, "tags": tag_lists(labels)})


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


def many_labels(rows: int, folder: Path = FOLDER) -> Path:
    """The path of a table of ids and tags out of `MANY_LABELS`, with a label list index."""
    return _kept(folder / f"many-labels-{rows}.lance", rows, many_labels_batch)


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
