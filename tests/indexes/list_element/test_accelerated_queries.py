"""The specification's section Accelerated Queries: TRUE and NULL rows, against its definition."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datafusion_lance.indexes.cache import ReaderCache
from datafusion_lance.indexes.list_element.builder import create_list_element
from datafusion_lance.indexes.list_element.key_range import (
    Between,
    Fixed,
    In,
    IsNull,
    KeySearch,
)
from datafusion_lance.indexes.list_element.reader import ListElementReader
from datafusion_lance.indexes.search_stats import SearchStats
from datafusion_lance.indexes.snapshot import Snapshot

from .codecs import codec_of
from .reference import any_element, conjunction

NAN = float("nan")
LABELS = ["", "a", "b", "car", "a value of more than eight bytes", "b\0"]
FLOATS = [-0.0, 0.0, 1.5, -1.5, float("inf"), float("-inf"), NAN, -NAN]
NUMBERS = [-128, -1, 0, 1, 2, 127]
ELEMENT = pa.struct(
    [("other", pa.int8()), ("s", pa.string()), ("f", pa.float32()), ("n", pa.int8())]
)
POOLS: dict[str, list[Any]] = {"s": LABELS, "f": FLOATS, "n": NUMBERS}


CODECS = {"s": codec_of("string"), "f": codec_of("float"), "n": codec_of("int8")}


# -- what a condition means, value by value ------------------------------------------------


def rank(value: Any) -> Any:
    """A value as DataFusion compares it: the zeros equal, NaN above all, -NaN below."""
    if isinstance(value, float):
        if value != value:
            return (2 if np.signbit(value) == 0 else 0, 0.0)
        return (1, value + 0.0)
    return value.encode() if isinstance(value, str) else value


Condition = tuple[str, tuple[Any, ...]]


def holds(condition: Condition, value: Any) -> bool | None:
    kind, arguments = condition
    if kind == "is null":
        return value is None
    if value is None:
        return None
    if kind == "in":
        return rank(value) in [rank(v) for v in arguments]
    low, low_closed, high, high_closed = arguments
    above = low is None or rank(value) > rank(low) or (low_closed and rank(value) == rank(low))
    below = high is None or rank(value) < rank(high) or (high_closed and rank(value) == rank(high))
    return above and below


def fixed(key: str, condition: Condition) -> Fixed:
    kind, arguments = condition
    codec = CODECS[key]
    return (
        IsNull(codec) if kind == "is null" else In.of(codec, pa.array(arguments, codec.arrow_type))
    )


def between(key: str, condition: Condition) -> Between:
    low, low_closed, high, high_closed = condition[1]
    codec = CODECS[key]

    def bound(value: Any) -> pa.Scalar | None:
        return None if value is None else pa.array([value], codec.arrow_type)[0]

    return Between.of(
        codec, bound(low), bound(high), low_closed=low_closed, high_closed=high_closed
    )


@st.composite
def searches(draw: st.DrawFn, keys: tuple[str, ...]) -> list[tuple[str, Condition]]:
    """Conditions on the first of the keys: fixed ones, and perhaps a range on the next."""
    length = draw(st.integers(1, len(keys)))
    conditions: list[tuple[str, Condition]] = []
    for place, key in enumerate(keys[:length]):
        value = st.sampled_from(POOLS[key])
        if place and place == length - 1 and draw(st.booleans()):
            end = st.none() | value
            drawn = draw(st.tuples(end, st.booleans(), end, st.booleans()))
            conditions.append((key, ("between", drawn)))
        elif draw(st.integers(0, 3)) == 0:
            conditions.append((key, ("is null", ())))
        else:
            values = draw(st.lists(value, min_size=1, max_size=4))
            conditions.append((key, ("in", tuple(values))))
    return conditions


def search_of(conditions: list[tuple[str, Condition]]) -> KeySearch:
    ranges = [between(key, c) for key, c in conditions if c[0] == "between"]
    return KeySearch(
        tuple(fixed(key, c) for key, c in conditions if c[0] != "between"),
        ranges[0] if ranges else None,
    )


# -- tables --------------------------------------------------------------------------------


def lists(seed: int, rows: int) -> list[list[dict[str, Any] | None] | None]:
    random = np.random.default_rng(seed)

    def pick(values: list[Any]) -> Any:
        return None if random.random() < 0.2 else values[random.integers(len(values))]

    def element() -> dict[str, Any] | None:
        if random.random() < 0.1:
            return None
        return {"other": 1, "s": pick(LABELS), "f": pick(FLOATS), "n": pick(NUMBERS)}

    def row() -> list[dict[str, Any] | None] | None:
        return None if random.random() < 0.1 else [element() for _ in range(random.integers(4))]

    return [row() for _ in range(rows)]


class Table:
    """A table with an index, and every row of it by its address."""

    def __init__(self, path: Path, keys: tuple[str, ...], list_type: Any) -> None:
        self.keys = keys
        values = pa.array(lists(len(keys), 300), list_type(ELEMENT))
        data = pa.table({"id": np.arange(300), "d": values})
        self.dataset = lance.write_dataset(data, path, max_rows_per_file=130)
        create_list_element(self.dataset, "d", keys, progress=False)
        self.dataset.delete("id % 11 = 3")
        self.snapshot = Snapshot(self.dataset, ReaderCache(1 << 20))
        (index,) = self.snapshot.indexes
        self.reader = ListElementReader(index, self.snapshot)
        scan = self.dataset.to_table(with_row_address=True)
        self.rows = dict(
            zip(scan.column("_rowaddr").to_pylist(), scan.column("d").to_pylist(), strict=True)
        )


ORDERS = [("s",), ("s", "f"), ("f", "n", "s"), ("n", "s", "f")]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> list[Table]:
    folder = tmp_path_factory.mktemp("tables")
    kinds = [pa.list_, pa.large_list, pa.list_, pa.list_]
    return [
        Table(folder / str(i), keys, kind)
        for i, (keys, kind) in enumerate(zip(ORDERS, kinds, strict=True))
    ]


@given(data=st.data(), which=st.integers(0, len(ORDERS) - 1))
def test_true_and_null_rows_are_those_of_the_definition(
    tables: list[Table], data: st.DataObject, which: int
) -> None:
    table = tables[which]
    conditions = data.draw(searches(table.keys))
    search = search_of(conditions)
    covered = table.reader.fragment_ids
    assert covered == frozenset(table.snapshot.fragment_ids)
    answer = table.reader.answer(search, covered, SearchStats())

    def predicate(element: Any) -> bool | None:
        field = element or {}
        return conjunction([holds(condition, field.get(key)) for key, condition in conditions])

    expected = {at: any_element(row, predicate) for at, row in table.rows.items()}
    live = table.snapshot.live_rows(covered)
    assert answer.null is not None
    assert set((answer.true & live).addresses().tolist()) == {
        at for at, value in expected.items() if value is True
    }
    assert set((answer.null & live).addresses().tolist()) == {
        at for at, value in expected.items() if value is None
    }
    assert len(search.true_ranges()) <= search.range_count
    assert len(search.null_ranges()) <= search.null_range_count


@settings(max_examples=50)
@given(data=st.data())
def test_ranges_ascend_and_do_not_overlap(data: st.DataObject) -> None:
    search = search_of(data.draw(searches(("n", "s", "f"))))
    for ranges in (search.true_ranges(), search.null_ranges()):
        ends = [end for pair in zip(ranges.low, ranges.high, strict=True) for end in pair]
        assert ends == sorted(ends)
        assert all(low < high for low, high in zip(ranges.low, ranges.high, strict=True))


# -- the text's own rules ------------------------------------------------------------------


def of(key: str, *values: Any) -> In:
    return In.of(CODECS[key], pa.array(values, CODECS[key].arrow_type))


def test_null_sets_are_crossed_with_the_in_values_of_the_other_keys() -> None:
    search = KeySearch((of("s", "a", "b"), of("n", 1, 2, 3)), Between.of(CODECS["f"]))
    assert search.range_count == 2 * 3
    assert search.null_range_count == 3 * 4 * 2 - 6
    assert len(search.null_ranges()) == 18


def test_is_null_is_never_unknown() -> None:
    search = KeySearch((IsNull(CODECS["s"]),))
    assert search.null_range_count == 0
    assert len(search.null_ranges()) == 0


def test_no_values_are_unknown_where_the_key_is_null() -> None:
    search = KeySearch((In(CODECS["n"], ()),))
    assert len(search.true_ranges()) == 0
    assert search.null_ranges().low == (b"\0\0",)


def test_an_empty_range_is_unknown_where_its_key_is_null() -> None:
    low, high = pa.scalar(2, pa.int8()), pa.scalar(1, pa.int8())
    search = KeySearch((of("s", "a"),), Between.of(CODECS["n"], low, high))
    assert (search.range_count, len(search.true_ranges())) == (0, 0)
    assert len(search.null_ranges()) == search.null_range_count == 2


def test_a_search_is_shortened_to_a_limit() -> None:
    search = KeySearch((of("s", *LABELS), of("f", 1.5, 2.5)))
    assert search.range_count == 12
    assert search.null_range_count == 7 * 3 - 12
    assert search.within(12) is search
    assert search.within(11) == KeySearch(search.fixed[:1])
    assert search.within(5) is None


def test_null_rows_are_left_out_where_nobody_wants_them(tables: list[Table]) -> None:
    reader, search = tables[0].reader, KeySearch((of("s", "a"),))
    answer = reader.answer(search, reader.fragment_ids, SearchStats(), null_wanted=False)
    assert (answer.null, answer.exact) == (None, True)


def test_null_is_not_one_of_the_values() -> None:
    with pytest.raises(ValueError, match="NULL"):
        In.of(CODECS["n"], pa.array([1, None], pa.int8()))
    with pytest.raises(ValueError, match="NULL"):
        Between.of(CODECS["n"], pa.scalar(None, pa.int8()))


def test_a_prefix_is_a_range() -> None:
    names = ["", "a", "ab", "abc", "ab\U0010ffff", "ac", "b", "é", "ê"]
    encoded = CODECS["s"].encode(pa.array(names)).to_pylist()
    for prefix in ("", "a", "ab", "é", "\U0010ffff"):
        found = Between.starting_with(CODECS["s"], prefix.encode())
        inside = [n for n, e in zip(names, encoded, strict=True) if found.low <= e < found.high]
        assert inside == [name for name in names if name.startswith(prefix)]
    data = [b"", b"\xfe\xff", b"\xff", b"\xff\xff", b"\xff\xff\0"]
    codec = codec_of("binary")
    for prefix in (b"\xff", b"\xff\xff", b"\xfe\xff"):
        found = Between.starting_with(codec, prefix)
        encoded = codec.encode(pa.array(data)).to_pylist()
        inside = [n for n, e in zip(data, encoded, strict=True) if found.low <= e < found.high]
        assert inside == [value for value in data if value.startswith(prefix)]


DAY = pa.array([1], pa.int32()).view(pa.date32())


def scalar(value: Any, kind: pa.DataType) -> pa.Scalar:
    return cast("pa.Scalar", pa.scalar(value, kind))


@pytest.mark.parametrize(
    ("search", "text"),
    [
        (KeySearch((of("s", "car"),)), "label = 'car'"),
        (KeySearch((of("s", "it's"),)), "label = 'it''s'"),
        (KeySearch((of("f", 0.0),)), "label = 0.0"),
        (KeySearch((of("f", 0.9),)), "label = 0.9"),
        (KeySearch((IsNull(CODECS["s"]), of("n", 1, 2))), "label IS NULL AND confidence IN (1, 2)"),
        (
            KeySearch((of("n", *range(8)),)),
            "label IN (0, 1, 2, 3, 4, … 3 more)",
        ),
        (
            KeySearch(
                (of("s", "car"),),
                Between.of(CODECS["f"], scalar(0.9, pa.float32()), low_closed=False),
            ),
            "label = 'car' AND confidence > 0.9",
        ),
        (
            KeySearch(
                (of("s", "car"),),
                Between.of(CODECS["n"], scalar(1, pa.int8()), scalar(127, pa.int8())),
            ),
            "label = 'car' AND confidence >= 1 AND confidence <= 127",
        ),
        (
            KeySearch((of("n", 1),), Between.starting_with(CODECS["s"], "né".encode()[:2])),
            r"label = 1 AND confidence >= 'n\xc3' AND confidence < 'n\xc4'",
        ),
        (
            KeySearch((In.of(codec_of("bool"), pa.array([True])),)),
            "label = TRUE",
        ),
        (
            KeySearch(
                (In.of(codec_of("date32:day"), pa.array([1], pa.int32()).view(pa.date32())),)
            ),
            "label = '1970-01-02'",
        ),
    ],
)
def test_a_search_prints_as_sql(search: KeySearch, text: str) -> None:
    assert search.describe(["label", "confidence"]) == text
