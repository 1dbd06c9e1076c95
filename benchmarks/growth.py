"""How a statement's time grows: with the table, a needle's labels, a search's ranges, segments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa

from datafusion_lance.engine import LanceSessionContext
from datafusion_lance.indexes.list_element.builder import build_segment, commit_segments
from list_element import INDEX, condition_of
from measure import Timing, interleaved
from report import number, print_table
from tables import LABELS, batch

NEEDLES = (1, 3, 10, 30, 100, 300, 1_000)
RANGES = (1, 10, 100, 1_000, 10_000)
SEGMENTS = (1, 2, 4, 8, 16, 32, 64)
MOST_ROWS = 256_000
"""Of the table for `SEGMENTS`, which has as many fragments as there are segments at most."""


@dataclass(frozen=True, slots=True)
class Growth:
    """Timings by what grows, ascending."""

    title: str
    grows: str
    timings: Mapping[int, Timing]

    @property
    def slope(self) -> float:
        """By how much time grows in the last step, as the exponent of what grows: 1 is linear.

        The first steps are what a statement costs however little it looks for.
        """
        (x1, first), (x2, last) = sorted(self.timings.items())[-2:]
        return float(np.log(last.median / first.median) / np.log(x2 / x1))


def over_rows(paths: Sequence[Path], hits: Sequence[int], runs: int) -> Iterator[Growth]:
    """As many hits in tables of several sizes, each with a list element index."""
    for count in hits:
        statements = {}
        for path in paths:
            dataset = lance.dataset(path)
            statements[dataset.count_rows()] = (path, condition_of(dataset, count).sql)
        yield _timed(f"any_element, {count} elements", "rows of the table", statements, runs)


def over_labels(path: Path, runs: int) -> Growth:
    """More and more labels in one `array_has_any`, the rare ones first."""
    labels = [f"'label_{number:04}'" for number in reversed(range(LABELS))]
    statements = {
        count: (
            path,
            f"SELECT count(*) FROM images WHERE array_has_any(tags, [{', '.join(labels[:count])}])",
        )
        for count in NEEDLES
    }
    return _timed("COUNT(*), array_has_any", "labels in the needle", statements, runs)


def over_ranges(path: Path, runs: int) -> Growth:
    """More and more values of the second key, each a range of its own in the index."""
    values = [repr(float(value)) for value in np.random.default_rng(40).random(max(RANGES))]
    statements = {
        count: (
            path,
            "SELECT count(*) FROM images WHERE any_element(detections, 'label = ''label_0000'' "
            f"AND confidence IN ({', '.join(values[:count])})')",
        )
        for count in RANGES
    }
    return _timed("COUNT(*), any_element", "ranges of keys", statements, runs)


def over_segments(folder: Path, rows: int, runs: int) -> Growth:
    """The same fragments in more and more segments of a list element index."""
    statements = {}
    for count in SEGMENTS:
        path = segmented(folder, min(rows, MOST_ROWS), count)
        statements[count] = (path, condition_of(lance.dataset(path), 30).sql)
    return _timed("any_element, 30 elements", "segments of the index", statements, runs)


def segmented(folder: Path, rows: int, segments: int) -> Path:
    """The path of a table of `SEGMENTS`' most fragments with an index of so many segments."""
    path = folder / f"segments-{rows}-{segments}.lance"
    if path.exists():
        return path
    unfinished = path.with_suffix(".unfinished")
    dataset = lance.write_dataset(
        pa.Table.from_batches([batch(0, rows, np.random.default_rng(50))]),
        unfinished,
        mode="overwrite",
        max_rows_per_file=-(-rows // max(SEGMENTS)),
    )
    fragments = [fragment.fragment_id for fragment in dataset.get_fragments()]
    keys = ["label", "confidence"]
    built = [
        build_segment(dataset, "detections", keys, fragment_ids=part.tolist(), progress=False)
        for part in np.array_split(fragments, segments)
    ]
    commit_segments(dataset, built, INDEX)
    unfinished.rename(path)
    return path


def _timed(title: str, grows: str, statements: Mapping[int, tuple[Path, str]], runs: int) -> Growth:
    sessions = {}
    for count, (path, statement) in statements.items():
        session = LanceSessionContext()
        session.register_lance("images", path)
        sessions[str(count)] = lambda session=session, statement=statement: session.sql(
            statement
        ).to_arrow_table()
    timings = interleaved(sessions, runs)
    return Growth(title, grows, {int(count): timing for count, timing in timings.items()})


def print_growth(found: Sequence[Growth]) -> None:
    """A row for each: the medians, and the slope at the end."""
    rows = [
        (
            f"{one.title}: {one.grows}",
            ", ".join(f"{x:,}: {number(timing.median)}" for x, timing in one.timings.items()),
            f"{one.slope:.2f}",
            "" if one.slope <= 1 else "WORSE THAN LINEAR",
        )
        for one in found
    ]
    print_table("growth, medians in ms", ("", "", "slope", ""), rows)
