"""A list element index changes no answer: with it, without it, and over rows in memory."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from datafusion import SessionContext
from hypothesis import given
from hypothesis import strategies as st

from datafusion_lance.engine import LanceSessionContext
from datafusion_lance.indexes.list_element.builder import create_list_element

from .oracle_rows import index_scans
from .rewrites.any_element_text import duckdb, masked

ELEMENT = pa.struct(
    [
        ("label", pa.string()),
        ("confidence", pa.float32()),
        ("size", pa.int8()),
        ("flag", pa.bool_()),
        ("area", pa.int64()),
    ]
)
POOLS: dict[str, list[Any]] = {
    "label": [None, "", "car", "cat", "dog", "ca%t", "ca\nr"],
    "confidence": [None, 0.0, -0.0, 0.5, 0.9, 2.0, float("nan")],
    "size": [None, 1, 2, 3],
    "flag": [None, True, False],
    "area": [None, 1, 2],
}
INDEXES = {
    "a_label": ["label", "confidence", "size", "flag"],
    "b_flag": ["flag", "size"],
    "c_size": ["size", "label"],
}
ROWS = 400
FRAGMENT_ROWS = 100
INDEXED_ROWS = 300


def lists(start: int, stop: int) -> pa.ListArray:
    """Lists of up to three elements; a tenth are NULL, and so is a sixth of the elements.

    Under a NULL element lie values like any others, which Lance does not keep.
    """
    random = np.random.default_rng(start)
    lengths = random.integers(0, 4, stop - start)
    count = int(lengths.sum())
    fields = [
        pa.array([pool[i] for i in random.integers(0, len(pool), count)], ELEMENT.field(name).type)
        for name, pool in POOLS.items()
    ]
    elements = pa.StructArray.from_arrays(
        fields, fields=list(ELEMENT), mask=pa.array(random.random(count) < 1 / 6)
    )
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    nulls = pa.array(random.random(stop - start) < 1 / 10)
    return pa.ListArray.from_arrays(pa.array(offsets), elements, mask=nulls)


class Sessions:
    """One table: with its indexes, without them, and its rows in memory, read back and as written.

    They differ for a lambda that reads under NULL elements.
    """

    def __init__(self, path: Path) -> None:
        written: list[pa.Table] = []
        for start in range(0, ROWS, FRAGMENT_ROWS):
            if start == INDEXED_ROWS:
                for name, keys in INDEXES.items():
                    create_list_element(lance.dataset(path), "d", keys, name, progress=False)
            stop = start + FRAGMENT_ROWS
            rows = pa.table({"id": np.arange(start, stop), "d": lists(start, stop)})
            lance.write_dataset(rows, path, mode="append" if start else "create")
            written.append(rows)
        lance.dataset(path).delete("id % 17 = 3")
        self.indexed = LanceSessionContext(duckdb())
        self.indexed.register_lance("t", path)
        self.plain = LanceSessionContext(duckdb(), use_indexes=False)
        self.plain.register_lance("t", path)
        self.memory = SessionContext(duckdb())
        self.memory.from_arrow(lance.dataset(path).to_table(), name="t")
        self.written = SessionContext(duckdb())
        self.written.from_arrow(pa.concat_tables(written), name="t")

    def is_served(self, condition: str) -> bool:
        return bool(index_scans(self.indexed.sql(f"SELECT id FROM t WHERE {condition}")))

    def check(self, condition: str, *, masked_only: bool = False) -> None:
        """All find the same rows: those written too, where every read is masked."""
        text = f"SELECT id FROM t WHERE ({condition}) AND id % 17 <> 3 ORDER BY id"
        contexts = [self.indexed, self.plain, self.memory, *([self.written] if masked_only else [])]
        found, *others = [c.sql(text).to_arrow_table()["id"].to_pylist() for c in contexts]
        assert others == [found] * len(others)


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Sessions:
    return Sessions(tmp_path_factory.mktemp("semantics") / "t")


def call(predicate: str) -> str:
    """`any_element(d, predicate)`."""
    return f"array_any_match(d, e -> {masked(predicate)})"


@pytest.mark.parametrize("outer", ["{}", "NOT {}", "{} IS NULL", "{} IS NOT TRUE", "{} IS FALSE"])
@pytest.mark.parametrize(
    "predicate",
    [
        "e.label = 'car'",
        "e.label = ''",
        "e.label IS NULL",
        "e.label IN ('car', 'dog')",
        "e.label = 'car' AND e.confidence = 0",
        "e.label = 'car' AND (e.confidence IN (-0.0, 0.5, 1, 2) OR e.confidence = 0.0)",
        "e.label = 'car' AND e.confidence >= 0",
        "e.label = 'car' AND e.confidence < 0",
        "e.label = 'car' AND e.confidence > 1",
        "e.label = 'car' AND e.confidence = 'NaN'",
        "e.label = 'car' AND e.confidence = 0.9",
        "e.label = 'car' AND e.confidence > 0.9",
        "e.label IN ('car', 'dog') AND e.confidence IS NULL AND e.size IN (1, 2) AND NOT e.flag",
        "e.label IS NULL AND e.confidence IS NULL",
        "e.label = 'car' AND e.label = 'dog'",
        "e.label = 'car' AND e.label IS NULL",
        "e.label = 'car' OR e.label IS NULL",
        "e.label = 'car' AND e.confidence > 1 OR e.label = 'dog' AND e.confidence <= 0.5",
        "e.flag",
        "NOT e.flag",
        "e.flag AND e.size > 1",
        "NOT e.flag AND e.size = 2",
        "e.size = 300",
        "e.size = 1 AND e.label LIKE 'ca%'",
        "e.size = 1 AND e.label LIKE 'ca\\%%'",
        "e.size = 1 AND starts_with(e.label, 'ca%')",
    ],
)
def test_what_the_keys_answer(sessions: Sessions, predicate: str, outer: str) -> None:
    condition = outer.format(call(predicate))
    assert sessions.is_served(condition)
    sessions.check(condition, masked_only=True)


@pytest.mark.parametrize(
    "predicate",
    [
        "e.label IN ('car', NULL)",
        "e.label = 'car' AND e.confidence IS NOT NULL",
        "e.label = 'car' AND e.area > 1",
        "e.label = 'car' AND e.confidence <> 0.5",
        "e.label = 'car' AND e.confidence IN (0.0, 0.5, 1, 2)",
        "(e.label = 'car') IS TRUE",
        "(e.label IS NOT DISTINCT FROM 'car')",
        "e.flag IS TRUE",
        "e.flag IS FALSE",
        "e.flag IS UNKNOWN",
        "e.size = 1 AND e.label LIKE 'c_r%'",
        "e.label = NULL",
        "e['label'] = 'car'",
        "e['label'] IS NULL",
        "NOT e['flag']",
        "e IS NOT NULL AND e['label'] = 'car'",
        "e IS NOT NULL AND e['label'] IS NULL",
        "CASE WHEN e IS NOT NULL THEN e['label'] IS NULL END",
    ],
)
def test_what_has_no_negation(sessions: Sessions, predicate: str) -> None:
    condition = call(predicate)
    assert sessions.is_served(condition)
    sessions.check(condition)
    assert not sessions.is_served(f"NOT {condition}")
    sessions.check(f"NOT {condition}")
    sessions.check(f"{condition} IS NULL")


def test_null_lists(sessions: Sessions) -> None:
    condition = call("e.label = 'car'") + " OR d IS NULL"
    assert sessions.is_served(condition)
    sessions.check(condition)


# -- random predicates ---------------------------------------------------------------------

FIXING = [
    "e.label = 'car'",
    "e.label IN ('car', 'dog')",
    "e.label IS NULL",
    "(e.label = 'car' OR e.label IS NULL)",
    "e.flag",
    "NOT e.flag",
    "(e.flag OR e.flag IS NULL)",
    "e.size = 1",
    "e.size IN (1, 2, 300)",
]
OTHERS = [
    "e.label LIKE 'ca%'",
    "e.label LIKE 'ca\\%%'",
    "e.label <> 'car'",
    "e.label IN ('car', NULL)",
    "e.label IS NOT NULL",
    "(e.label IS NOT DISTINCT FROM 'dog')",
    "e.label NOT IN ('car')",
    "e.label >= 'cat'",
    "e.confidence > 0.5",
    "e.confidence = 0",
    "e.confidence < 0",
    "e.confidence >= 0",
    "e.confidence = 'NaN'",
    "e.confidence = 0.9",
    "e.confidence IN (0.0, 1, 2, 3, 4)",
    "(e.confidence IN (0.0, 1, 2, 3.5) OR e.confidence = 0.0)",
    "e.confidence IN (1, 2)",
    "e.confidence IS NULL",
    "(e.confidence = 0 OR e.confidence = 2)",
    "(e.confidence > 1 OR e.confidence < 0.5)",
    "e.size > 1",
    "e.size IS NULL",
    "e.size BETWEEN 2 AND 3",
    "e.size = 2.5",
    "e.size < 300",
    "(e.size = 1) IS TRUE",
    "e.flag IS NULL",
    "e.flag IS TRUE",
    "e.flag IS FALSE",
    "e.flag IS UNKNOWN",
    "e.flag IS NOT TRUE",
    "e.area = 1",
    "e.area IS NULL",
    "TRUE",
    "FALSE",
    "NULL::BOOLEAN",
]


def conditions() -> st.SearchStrategy[str]:
    """Predicates on an element, most of which begin with one that fixes a first key."""
    some = st.sampled_from(FIXING) | st.sampled_from(OTHERS)

    def longer(shorter: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        word = st.sampled_from(["AND", "AND", "OR"])
        return st.one_of(
            st.builds("({} {} {})".format, shorter, word, shorter),
            st.builds("NOT ({})".format, shorter),
            st.builds("({}) IS TRUE".format, shorter),
        )

    rest = st.recursive(some, longer, max_leaves=4)
    return st.one_of(rest, st.builds("{} AND {}".format, st.sampled_from(FIXING), rest))


@st.composite
def lambdas(draw: st.DrawFn) -> str:
    """A condition with fields read as they are, perhaps under a test of the element."""
    plain = re.compile(r"\be\.(\w+)")
    condition = masked(plain.sub(r"e['\1']", draw(conditions()), count=draw(st.integers(0, 3))))
    form = draw(
        st.sampled_from(
            [
                "{}",
                "{}",
                "e IS NOT NULL AND {}",
                "CASE WHEN e IS NOT NULL THEN {} END",
                "CASE WHEN e IS NULL THEN NULL ELSE {} END",
            ]
        )
    )
    return form.format(condition)


OUTER = [
    "{}",
    "{}",
    "NOT {}",
    "{} IS NULL",
    "{} IS NOT TRUE",
    "{} IS FALSE",
    "({} OR d IS NULL)",
    "NOT ({} AND id > 100)",
]


def calls(predicates: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """One or two calls, each tested somehow."""
    one = st.builds(
        lambda outer, predicate: outer.format(f"array_any_match(d, e -> {predicate})"),
        st.sampled_from(OUTER),
        predicates,
    )
    return one | st.builds("{} {} {}".format, one, st.sampled_from(["AND", "OR"]), one)


@given(calls(conditions().map(masked)))
def test_any_element_of_any_predicate(sessions: Sessions, condition: str) -> None:
    sessions.check(condition, masked_only=True)


@given(calls(lambdas()))
def test_any_lambda(sessions: Sessions, condition: str) -> None:
    sessions.check(condition)
