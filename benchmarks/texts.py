"""A generated table of texts, some of them near duplicates of others, made once and kept."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
from lance.indices import IndexConfig

from tables import FOLDER

WORDS_A_TEXT = 30
VOCABULARY = 50_000
COPIES = 0.2
"""The part of the texts that are copies of others, each with up to `MOST_CHANGES` words changed."""
MOST_CHANGES = 3
SHINGLE = 3
ROWS_A_BATCH = 50_000


def words(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The words of each text as numbers (rows, WORDS_A_TEXT), and which text it is a copy of.

    A text that is no copy is its own original.
    """
    rng = np.random.default_rng(30)
    drawn = rng.integers(0, VOCABULARY, (rows, WORDS_A_TEXT))
    original = np.arange(rows)
    copies = rng.random(rows) < COPIES
    copies[0] = False
    originals = np.flatnonzero(~copies)
    original[copies] = rng.choice(originals, int(copies.sum()))
    drawn[copies] = drawn[original[copies]]
    for change in range(MOST_CHANGES):
        changed = np.flatnonzero(copies & (rng.integers(0, MOST_CHANGES + 1, rows) > change))
        drawn[changed, rng.integers(0, WORDS_A_TEXT, len(changed))] = rng.integers(
            0, VOCABULARY, len(changed)
        )
    return drawn, original


def texts(numbers: np.ndarray) -> list[str]:
    """One text for each row of words."""
    return [" ".join(map("w{}".format, row)) for row in numbers.tolist()]


def shingles(text: str) -> set[str]:
    """What a text is compared by: all runs of `SHINGLE` words."""
    parts = text.split()
    return {" ".join(parts[i : i + SHINGLE]) for i in range(len(parts) - SHINGLE + 1)}


def near_duplicates(rows: int, similarity: float) -> np.ndarray:
    """The pairs of texts whose shingles have at least that Jaccard similarity: (n, 2), ascending.

    Copies of different texts have no shingle in common but by chance.
    """
    numbers, original = words(rows)
    order = np.argsort(original, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(original[order])) + 1)
    found: list[tuple[int, int]] = []
    for group in groups:
        if len(group) == 1:
            continue
        members = sorted(group.tolist())
        sets = [shingles(text) for text in texts(numbers[members])]
        for one in range(len(members)):
            for other in range(one + 1, len(members)):
                common = len(sets[one] & sets[other])
                if common >= similarity * (len(sets[one]) + len(sets[other]) - common):
                    found.append((members[one], members[other]))
    return np.array(found, dtype=np.int64).reshape(-1, 2)


def text_table(rows: int, folder: Path = FOLDER) -> Path:
    """The path of a Lance table of `rows` texts in one fragment, with a MinHash index."""
    path = folder / f"texts-{rows}.lance"
    if path.exists():
        return path
    print(f"Generating {rows:,} texts, once …")
    folder.mkdir(exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    schema = pa.schema({"id": pa.int64(), "text": pa.string()})

    def batches() -> Iterator[pa.RecordBatch]:
        numbers, _ = words(rows)
        for start in range(0, rows, ROWS_A_BATCH):
            here = texts(numbers[start : start + ROWS_A_BATCH])
            ids = np.arange(start, start + len(here))
            yield pa.RecordBatch.from_arrays([pa.array(ids), pa.array(here)], schema=schema)

    dataset = lance.write_dataset(batches(), unfinished, schema=schema, max_rows_per_file=rows)
    build_index(dataset)
    unfinished.rename(path)
    return path


def build_index(dataset: lance.LanceDataset) -> None:
    """A MinHash index with pylance's own parameters, in the place of one that is there."""
    dataset.create_scalar_index("text", IndexConfig("minhashlsh", parameters={}), replace=True)
