"""A small Lance table of images with tags and detections, for tests of what lives beside it."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa

from datafusion_lance.engine import LanceSessionContext

_DETECTION = pa.struct({"label": pa.string(), "confidence": pa.float64()})
_CAR = {"label": "car", "confidence": 0.95}
_DOG = {"label": "dog", "confidence": 0.4}

IMAGES = pa.table(
    {
        "id": pa.array(range(6), pa.int64()),
        "tags": pa.array(
            [["night", "rain"], ["day"], [], None, ["rain", None], ["night"]],
            pa.list_(pa.string()),
        ),
        "detections": pa.array(
            [[_CAR, _DOG], [_DOG], [], None, [None], [_CAR]], pa.list_(_DETECTION)
        ),
    }
)
"""Two fragments of three rows."""

CARS = "SELECT id FROM images WHERE any_element(detections, 'label = ''car''') ORDER BY id"
TAGGED = "SELECT id FROM images WHERE array_has(tags, 'night') ORDER BY id"


def write_images(path: Path, *, stable_row_ids: bool = False) -> Path:
    lance.write_dataset(IMAGES, path, max_rows_per_file=3, enable_stable_row_ids=stable_row_ids)
    return path


def append_images(path: Path, first_id: int = 6) -> None:
    """Writes the six rows again, with new ids, in two more fragments."""
    ids = pa.array(range(first_id, first_id + 6), pa.int64())
    lance.write_dataset(IMAGES.set_column(0, "id", ids), path, mode="append", max_rows_per_file=3)


def ids(session: LanceSessionContext, query: str) -> list[int]:
    return session.sql(query).to_pydict()["id"]


def uses_index(session: LanceSessionContext, query: str) -> bool:
    return "IndexScan:" in str(session.sql(f"EXPLAIN {query}").to_pydict())
