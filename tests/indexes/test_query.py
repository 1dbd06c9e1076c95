"""The query tree: how it prints, what is known of it without reading, and what it answers."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from datafusion import SessionContext
from hypothesis import given
from hypothesis import strategies as st

from datafusion_lance.indexes.errors import InvalidArgumentError
from datafusion_lance.indexes.evaluation import evaluate
from datafusion_lance.indexes.list_element.key_range import Between, In, KeySearch
from datafusion_lance.indexes.manifest import IndexSegment, LanceIndex
from datafusion_lance.indexes.query import (
    And,
    AnyElement,
    HasAll,
    HasAny,
    Is,
    Not,
    Or,
    Query,
    Superset,
)
from datafusion_lance.indexes.search_stats import SearchStats
from datafusion_lance.indexes.snapshot import Snapshot

from .answers import has_all, has_any, snapshot_of
from .effort import one_in
from .label_list.element_types import samples
from .list_element.codecs import codec_of


def _index(name: str, version: int = 1) -> LanceIndex:
    url = "/lance.table.LabelListIndexDetails"
    segment = IndexSegment("u", name, (1,), 1, frozenset({0}), url, b"", version, None, None, ())
    return LanceIndex(name, "LabelList", (1,), (segment,))


_TAGS = _index("tags_idx")
_ELEMENTS = LanceIndex("detections_idx", "ListElement", (1,), ())
_LABEL, _SCORE = codec_of("string"), codec_of("float")
_CAR = KeySearch(
    (In.of(_LABEL, pa.array(["car"])),),
    Between.of(_SCORE, low=pa.scalar(0.9, pa.float32()), low_closed=False),
)


def _element(search: KeySearch = _CAR, *, whole: bool = True, null: bool = True) -> AnyElement:
    return AnyElement(_ELEMENTS, "detections", ("label", "score", "area"), search, whole, null)


_OLD = _index("old_idx", version=0)


def _many(null_ranges: int) -> KeySearch:
    """A search whose NULL rows take as many ranges: an IN, and NULL beside each other value."""
    values = pa.array([f"{i:05}" for i in range(null_ranges - 1)])
    return KeySearch((In.of(_LABEL, values), In.of(_SCORE, pa.array([], pa.float32()))))


def _any(labels: list[object], *, match_null: bool = False, index: LanceIndex = _TAGS) -> HasAny:
    kind = pa.string() if not labels else None
    return HasAny(index, "tags", pa.array(labels, kind), match_null)


# -- how it prints --------------------------------------------------------------------------

_NIGHT = _any(["night"])
_WET = _any(["night", "rain"])


@pytest.mark.parametrize(
    ("query", "text"),
    [
        (_NIGHT, "array_has(tags, 'night')"),
        (_WET, "array_has_any(tags, ['night', 'rain'])"),
        (_any([1, 2]), "array_has_any(tags, [1, 2])"),
        (_any([]), "array_has_any(tags, [])"),
        (_any(["a"], match_null=True), "array_has_any(tags, ['a', NULL])"),
        (_any(["it's"]), "array_has(tags, 'it''s')"),
        (
            HasAll(_TAGS, "tags", pa.array(["a", "b"]), True),
            "array_has_all(tags, ['a', 'b', NULL])",
        ),
        (
            And((_WET, Not(_NIGHT))),
            "array_has_any(tags, ['night', 'rain']) AND NOT array_has(tags, 'night')",
        ),
        (
            Or((And((_NIGHT, _NIGHT)), Not(Or((_NIGHT, _NIGHT))))),
            "(array_has(tags, 'night') AND array_has(tags, 'night')) OR "
            "NOT (array_has(tags, 'night') OR array_has(tags, 'night'))",
        ),
        (
            And((Or((_NIGHT, _NIGHT)), _NIGHT)),
            "(array_has(tags, 'night') OR array_has(tags, 'night')) AND array_has(tags, 'night')",
        ),
        (Is(_NIGHT, None), "array_has(tags, 'night') IS NULL"),
        (Not(Is(_NIGHT, True)), "NOT (array_has(tags, 'night') IS TRUE)"),
        (Is(Not(_NIGHT), False), "(NOT array_has(tags, 'night')) IS FALSE"),
        (Superset(_NIGHT), "array_has(tags, 'night')"),
        (_element(), "any_element(detections, label = 'car' AND score > 0.9)"),
    ],
)
def test_it_prints_as_sql(query: Query, text: str) -> None:
    assert str(query) == text


@pytest.mark.parametrize("labels", samples().values(), ids=samples().keys())
def test_labels_of_every_type_print(labels: pa.Array) -> None:
    text = str(HasAny(_TAGS, "tags", labels, match_null=False))
    assert text.startswith("array_has_any(tags, [")
    assert text.count(", ") == len(labels)


# -- values ---------------------------------------------------------------------------------


def test_equal_questions_are_equal() -> None:
    assert _any(["a", "b"]) == _any(["a", "b"])
    assert hash(And((_any(["a"]), Not(_any(["b"]))))) == hash(And((_any(["a"]), Not(_any(["b"])))))
    sliced = HasAny(_TAGS, "tags", pa.array(["x", "a", "y"])[1:2], False)
    assert sliced == _any(["a"])
    nan = float("nan")
    assert _any([nan]) == _any([nan])


def test_other_questions_are_not() -> None:
    one = pa.array(["a"])
    different = {
        _any(["a"]),
        _any(["b"]),
        _any(["a"], match_null=True),
        _any(["a"], index=_OLD),
        HasAll(_TAGS, "tags", one, False),
        HasAny(_TAGS, "other", one, False),
        HasAny(_TAGS, "tags", one.cast(pa.large_string()), False),
    }
    assert len(different) == 7
    assert _any([0.0]) != _any([-0.0])
    other_nan = pa.array(np.array([0x7FF8000000000001], dtype=np.uint64).view(np.float64))
    assert HasAny(_TAGS, "tags", other_nan, False) != _any([float("nan")])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: _any(["a", None]), r"labels: got \['a', None\], takes labels without NULL"),
        (lambda: And((_NIGHT,)), "children: got 1, takes two queries or more"),
        (lambda: Or(()), "children: got 0"),
        (lambda: Not(Superset(_NIGHT)), "takes an exact query with known NULL rows"),
        (lambda: Is(Superset(_NIGHT), False), "takes an exact query with known NULL rows"),
        (lambda: Not(_any(["a"], index=_OLD)), "takes an exact query with known NULL rows"),
    ],
)
def test_what_no_index_can_answer_cannot_be_asked(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(InvalidArgumentError, match=message):
        make()


@pytest.mark.parametrize(
    ("query", "exact", "null_known"),
    [
        (_NIGHT, True, True),
        (_any(["a"], index=_OLD), True, False),
        (And((_NIGHT, _any(["a"], index=_OLD))), True, False),
        (Or((_NIGHT, _any(["a"], index=_OLD))), True, False),
        (Is(_any(["a"], index=_OLD), True), True, True),
        (Not(Is(_any(["a"], index=_OLD), True)), True, True),
        (Superset(_NIGHT), False, False),
        (And((_NIGHT, Superset(_NIGHT))), False, False),
        (Or((_NIGHT, Superset(_NIGHT))), False, False),
        (Is(Superset(_NIGHT), True), False, False),
        (_element(), True, True),
        (_element(null=False), True, False),
        (_element(whole=False), False, False),
        (_element(_many(40_000)), True, True),
        (_element(_many(70_000)), True, False),
    ],
)
def test_what_is_known_without_reading(query: Query, exact: bool, null_known: bool) -> None:
    assert (query.exact, query.null_known) == (exact, null_known)


def test_the_indexes_of_a_tree() -> None:
    assert And((_NIGHT, Or((_any(["a"], index=_OLD), _WET)))).indexes == {_TAGS, _OLD}


# -- answers, against DataFusion over the same rows in memory -------------------------------

_LABELS = ["a", "b", "c", "zz"]
_lists = st.lists(
    st.one_of(st.none(), st.lists(st.sampled_from(["a", "b", "c", None]), max_size=4)),
    min_size=1,
    max_size=24,
)

Shape = tuple[Any, ...]
"""A predicate on the columns t and u, as nested tuples: the same for SQL and the index."""

_leaf = st.tuples(
    st.sampled_from(["any", "all"]),
    st.sampled_from(["t", "u"]),
    st.lists(st.sampled_from(_LABELS), max_size=3, unique=True).map(tuple),
    st.booleans(),
).filter(lambda leaf: bool(leaf[2]) or leaf[3])
_shape: st.SearchStrategy[Shape] = st.recursive(
    _leaf,
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner),
        st.tuples(st.sampled_from(["and", "or"]), st.lists(inner, min_size=2, max_size=3)),
        st.tuples(st.just("is"), inner, st.sampled_from([True, False, None])),
    ),
    max_leaves=6,
)


def _sql(shape: Shape) -> str:
    match shape:
        case ("any" | "all" as which, column, labels, match_null):
            needles = [f"'{label}'" for label in labels] + ["NULL"] * match_null
            return f"array_has_{which}({column}, [{', '.join(needles)}]::VARCHAR[])"
        case ("not", inner):
            return f"(NOT {_sql(inner)})"
        case ("and" | "or" as word, children):
            return f"({f' {word} '.join(map(_sql, children))})"
        case (_, inner, value):
            return f"({_sql(inner)} IS {'NULL' if value is None else value})"
    raise AssertionError(shape)


def _query(shape: Shape, snapshot: Snapshot) -> Query:
    match shape:
        case ("any", column, labels, match_null):
            return has_any(snapshot, labels, match_null=match_null, column=column)
        case ("all", column, labels, match_null):
            return has_all(snapshot, labels, match_null=match_null, column=column)
        case ("not", inner):
            return Not(_query(inner, snapshot))
        case ("and" | "or" as word, children):
            made = tuple(_query(child, snapshot) for child in children)
            return And(made) if word == "and" else Or(made)
        case (_, inner, value):
            return Is(_query(inner, snapshot), value)
    raise AssertionError(shape)


@one_in(6)
@given(
    t=_lists,
    u=_lists,
    deleted=st.sets(st.integers(0, 23), max_size=6),
    shapes=st.lists(_shape, min_size=6, max_size=10),
)
def test_answers_are_datafusions(
    t: list[list[str | None] | None],
    u: list[list[str | None] | None],
    deleted: set[int],
    shapes: list[Shape],
) -> None:
    kind = pa.list_(pa.string())
    rows = max(len(t), len(u))
    table = pa.table(
        {
            "id": range(rows),
            "t": pa.array([t[i % len(t)] for i in range(rows)], kind),
            "u": pa.array([u[i % len(u)] for i in range(rows)], kind),
        }
    )
    with TemporaryDirectory() as folder:
        dataset = lance.write_dataset(table, folder, max_rows_per_file=7)
        for column in ("t", "u"):
            dataset.create_scalar_index(column, "LABEL_LIST")
        if deleted:
            dataset.delete(f"id IN ({', '.join(map(str, deleted))})")
        dataset = lance.dataset(folder)
        live = dataset.to_table(with_row_address=True).rename_columns(["id", "t", "u", "address"])
        context = SessionContext()
        batches = live.combine_chunks().to_batches() or [
            pa.record_batch(live.to_pydict(), live.schema)
        ]
        context.register_record_batches("rows", [batches])
        snapshot = snapshot_of(dataset)
        fragments = frozenset(snapshot.fragment_ids)
        for shape in shapes:
            sql = f"SELECT address FROM rows WHERE {_sql(shape)} ORDER BY 1"
            truth = context.sql(sql).to_pydict().get("address", [])
            answer = evaluate(_query(shape, snapshot), snapshot, fragments, SearchStats())
            assert answer.true.addresses().tolist() == truth, _sql(shape)
            assert answer.exact


def test_a_superset_keeps_every_row_that_may_be_true(tmp_path: Path) -> None:
    table = pa.table({"t": [["a"], ["b"], ["a", "b"], []]})
    dataset = lance.write_dataset(table, tmp_path / "table.lance")
    dataset.create_scalar_index("t", "LABEL_LIST")
    snapshot = snapshot_of(dataset)
    a, b = (has_any(snapshot, [label], column="t") for label in "ab")
    query = Or((And((a, Not(b))), Superset(b)))
    answer = evaluate(query, snapshot, frozenset({0}), SearchStats())
    assert answer.true.offsets(0).tolist() == [0, 1, 2]
    assert not answer.exact
    assert answer.null is None
