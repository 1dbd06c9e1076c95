"""Tables with near-duplicate texts and a MinHash index, and how two nearest answers compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
from lance.indices import IndexConfig

from datafusion_lance.engine import LanceSessionContext
from datafusion_lance.indexes.list_element.builder import create_list_element

BOX = pa.struct([("label", pa.string()), ("area", pa.int32())])
WORDS = ("ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen")
INDEX = "u_minhash"


def base_texts() -> list[str]:
    """Six texts that have little in common."""
    random = np.random.default_rng(1)
    return [" ".join(random.choice(WORDS, 14)) for _ in range(6)]


def texts(count: int, seed: int) -> list[str | None]:
    """Copies of the base texts with up to four words changed; some NULL or without a token.

    A few words are all that take their places, so that many distances are equal.
    """
    random = np.random.default_rng(seed)
    bases = base_texts()
    made: list[str | None] = []
    for kind in random.integers(0, 12, count):
        if kind < 2:
            made.append((None, " ... ")[kind])
            continue
        words = bases[random.integers(0, len(bases))].split()
        for at in random.integers(0, len(words), random.integers(0, 5)):
            words[at] = str(random.choice(["owl", "pig"]))
        made.append(" ".join(words))
    return made


def rows(start: int, stop: int) -> pa.Table:
    """Rows with the ids `start` to `stop`."""
    random = np.random.default_rng(start)
    ids = range(start, stop)
    return pa.table(
        {
            "i": pa.array(ids, pa.int64()),
            "u": pa.array(texts(stop - start, start), pa.string()),
            "x": pa.array([None if n % 11 == 0 else n % 5 for n in ids], pa.int32()),
            "tags": pa.array(
                [None if n % 13 == 0 else [("a", "b", "c")[k]] for n, k in _drawn(random, ids, 3)],
                pa.list_(pa.string()),
            ),
            "boxes": pa.array(
                [
                    [{"label": ("car", "dog")[k % 2], "area": n % 7}] * (k % 3)
                    for n, k in _drawn(random, ids, 6)
                ],
                pa.list_(BOX),
            ),
        }
    )


def _drawn(random: np.random.Generator, ids: range, kinds: int) -> list[tuple[int, int]]:
    return list(zip(ids, random.integers(0, kinds, len(ids)).tolist(), strict=True))


def store(path: Path, *, stable_row_ids: bool, parameters: Mapping[str, object]) -> None:
    """Writes a table with a past: two segments, deleted, moved and appended rows.

    The label list and list element indexes cover less than the MinHash index does.
    """
    dataset = lance.write_dataset(
        rows(0, 240), path, max_rows_per_file=60, enable_stable_row_ids=stable_row_ids
    )
    dataset.delete("i % 29 = 4")
    dataset.create_scalar_index("tags", "LABEL_LIST", name="tags_labels")
    create_list_element(lance.dataset(path), "boxes", ["label", "area"], "boxes_a", progress=False)
    config = IndexConfig("minhashlsh", parameters=dict(parameters))
    lance.dataset(path).create_scalar_index("u", config, name=INDEX)
    lance.write_dataset(rows(240, 300), path, mode="append")
    lance.dataset(path).optimize.optimize_indices(index_names=[INDEX], num_indices_to_merge=0)
    lance.dataset(path).delete("i % 17 = 3")
    lance.dataset(path).update({"x": "4"}, "i % 23 = 5")
    lance.dataset(path).update({"u": f"'{base_texts()[0]}'"}, "i % 31 = 9")
    lance.write_dataset(rows(300, 340), path, mode="append")


@dataclass(frozen=True, repr=False)
class Sessions:
    """One table `t`: with its indexes, without them, and its rows in memory; `o` has ids only.

    All know `any_element`; in memory there is no Lance table, so nothing of it is read otherwise.
    """

    path: Path
    indexed: LanceSessionContext
    plain: LanceSessionContext
    memory: LanceSessionContext

    @classmethod
    def over(cls, path: Path) -> Sessions:
        indexed, plain = LanceSessionContext(), LanceSessionContext(use_indexes=False)
        memory = LanceSessionContext()
        for session in (indexed, plain):
            session.register_lance("t", path)
        memory.from_arrow(lance.dataset(path).to_table(), name="t")
        for session in (indexed, plain, memory):
            session.from_pydict({"x": [*range(60), None]}, name="o")
        return cls(path, indexed, plain, memory)


def assert_nearest(
    sessions: Sessions, statement: str, *, distance: str, limit: int | None, offset: int = 0
) -> None:
    """A statement that orders by `distance` alone gives rows that memory may give.

    `statement` has no LIMIT yet; `distance` is its column of the order, which decides which
    answers are right. Rows that are equally far may come in any order, and any of them may
    take the last places.
    """
    limited = f"{statement} LIMIT {limit}" + (f" OFFSET {offset}" if offset else "")
    expected = sessions.memory.sql(statement).to_pylist()
    for session in (sessions.indexed, sessions.plain):
        found = session.sql(limited).to_pylist()
        wanted = [row[distance] for row in expected][offset:][:limit]
        assert [row[distance] for row in found] == wanted, limited
        left = [str(row) for row in expected]
        for row in found:
            assert str(row) in left, f"{limited}\n{row}"
            left.remove(str(row))
