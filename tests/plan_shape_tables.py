"""The tables that the plan shapes read, and sessions over them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from datafusion import SessionConfig, SessionContext

from datafusion_lance.engine import LanceSessionContext
from datafusion_lance.udfs import register_any_element

from .oracle_rows import TwiceStored, memory_context, rows_of, store_twice
from .test_statements import IMAGES as IMAGES_WITHOUT_BOXES
from .test_statements import TAGS, cameras, draw_list, reviews
from .test_statements import images as images_without_boxes

BOXES = pa.list_(pa.struct([("label", pa.string()), ("confidence", pa.float64())]))
IMAGES = IMAGES_WITHOUT_BOXES.append(pa.field("boxes", BOXES))

LABELS = ("car", "dog", "cat", None)
CONFIDENCES = (0.25, 0.5, 0.75, 1.0, None)

__all__ = ["BOXES", "IMAGES", "LABELS", "TAGS", "memory", "session", "store_tables"]


def images(draw: random.Random, shots: range) -> pa.Table:
    """Images with boxes: NULL lists, empty ones, and NULL elements and fields among them."""
    elements = [
        None if draw.random() < 0.1 else {"label": label, "confidence": draw.choice(CONFIDENCES)}
        for label in LABELS * 4
    ]
    boxes = [draw_list(draw, tuple(elements), 3) for _ in shots]
    plain = images_without_boxes(draw, shots)
    columns = {name: plain[name].to_pylist() for name in plain.column_names}
    return rows_of({**columns, "boxes": boxes}, IMAGES)


def store_tables(folder: Path) -> tuple[TwiceStored, ...]:
    """The three tables, written to `folder` and held in memory.

    Of each table some rows are deleted and some lie in fragments that no index covers.
    """
    draw = random.Random(5)
    return (
        store_twice(
            folder,
            "images",
            images(draw, range(240)),
            key="shot",
            rows_per_fragment=50,
            indexed=("tags", "codes"),
            indexed_structs={"boxes": ("label", "confidence")},
            deleted_before=range(5, 240, 31),
            deleted_after=range(2, 240, 23),
            appended=images(draw, range(240, 300)),
        ),
        store_twice(
            folder,
            "cameras",
            cameras(draw, range(26)),
            key="serial",
            rows_per_fragment=10,
            indexed=("features",),
            deleted_after=(3, 17),
            appended=cameras(draw, range(26, 32)),
        ),
        store_twice(
            folder,
            "reviews",
            reviews(draw, range(200)),
            key="review",
            rows_per_fragment=64,
            indexed=("words",),
            deleted_before=range(0, 200, 17),
            appended=reviews(draw, range(200, 220)),
        ),
    )


def session(tables: Sequence[TwiceStored], *, use_indexes: bool) -> LanceSessionContext:
    """A session over the Lance tables."""
    context = LanceSessionContext(use_indexes=use_indexes)
    for table in tables:
        context.register_lance(table.name, str(table.path))
    return context


def memory(tables: Sequence[TwiceStored]) -> SessionContext:
    """Plain DataFusion over the rows in memory, which knows `any_element` of the boxes.

    It has one partition: with more, DataFusion 55 at times gives too many rows of an anti join
    on IS NOT DISTINCT FROM with a further condition.
    """
    context = memory_context(tables, SessionConfig().with_target_partitions(1))
    register_any_element(context, BOXES)
    return context
