"""What a predicate on a list's elements asks of the indexes: the text before, the query after."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import lance
import pyarrow as pa
import pytest
from datafusion import SessionContext, udf
from datafusion.expr import Expr

from datafusion_lance.indexes.cache import ReaderCache
from datafusion_lance.indexes.list_element.builder import create_list_element
from datafusion_lance.indexes.query import AnyElement, Or, Query, Superset
from datafusion_lance.indexes.snapshot import Snapshot
from datafusion_lance.rewrites.indexed_scan import IndexedScan
from datafusion_lance.rewrites.list_element import read_list_element

from .any_element_text import analysing_context, masked, the_filter

ELEMENT = pa.struct(
    [
        ("label", pa.string()),
        ("confidence", pa.float32()),
        ("size", pa.int8()),
        ("flag", pa.bool_()),
        ("area", pa.int64()),
        ("box", pa.struct([("width", pa.int32())])),
    ]
)
ROW = {
    "label": "car",
    "confidence": 0.5,
    "size": 1,
    "flag": True,
    "area": 3,
    "box": {"width": 3},
}
NUMBERS = ", ".join(str(n) for n in range(300))
TEXTS = ", ".join(f"'{n}'" for n in range(300))
CAR = "e.label = 'car'"
THREE = "flag = TRUE AND size = 3"
NOTHING_FIXED = (
    "table t, index by_label: no condition fixes its first key, label, with =, IS NULL or IN "
    "with at most 65536 values"
)


class Indexed:
    """A table with list element indexes, and the rule over it."""

    def __init__(
        self, folder: Path, indexes: dict[str, list[str]], *, null_elements: bool = True
    ) -> None:
        element = pa.field("item", ELEMENT, nullable=null_elements)
        rows = pa.table({"id": [1], "d": pa.array([[ROW]], pa.list_(element))})
        dataset = lance.write_dataset(rows, folder / "t")
        for name, keys in indexes.items():
            create_list_element(dataset, "d", keys, name, progress=False)
            dataset = lance.dataset(folder / "t")
        self.show(dataset)

    def show(self, dataset: lance.LanceDataset) -> None:
        """Takes a version of the table to be the current one."""
        self.dataset = dataset
        self.schema = dataset.schema
        self.snapshot = Snapshot(dataset, ReaderCache(1 << 20))

    def read(
        self, condition: str, *, context: SessionContext | None = None
    ) -> tuple[Query | None, list[str]]:
        """The query of a condition on a row, and the notes."""
        context = analysing_context() if context is None else context
        plan = the_filter(context, "t", self.schema.empty_table(), condition)
        scan = IndexedScan("t", plan, self.schema, self.snapshot)
        return read_list_element(Expr(plan.to_variant().predicate()), scan), scan.notes

    def any_element(self, predicate: str) -> Query | None:
        """The query of an `any_element`."""
        query, _ = self.read(f"array_any_match(d, e -> {masked(predicate)})")
        return query


@pytest.fixture(scope="module")
def by_label(tmp_path_factory: pytest.TempPathFactory) -> Indexed:
    keys = ["label", "confidence", "size", "flag"]
    return Indexed(tmp_path_factory.mktemp("by_label"), {"by_label": keys})


@pytest.fixture(scope="module")
def by_flag(tmp_path_factory: pytest.TempPathFactory) -> Indexed:
    return Indexed(tmp_path_factory.mktemp("by_flag"), {"by_flag": ["flag", "size", "label"]})


EXACT = [
    ("e.label = 'car'", "label = 'car'"),
    ("'car' = e.label", "label = 'car'"),
    ("NOT (e.label <> 'car')", "label = 'car'"),
    ("e.label = upper('car')", "label = 'CAR'"),
    ("e.label IN ('car', 'dog', 'car')", "label IN ('car', 'dog')"),
    ("e.label = 'car' OR 'dog' = e.label OR e.label = 'cat'", "label IN ('car', 'cat', 'dog')"),
    ("e.label IS NULL", "label IS NULL"),
    ("e.label IS NULL AND e.confidence IS NULL", "label IS NULL AND confidence IS NULL"),
    ("e.confidence = 0.5 AND e.label = 'car'", "label = 'car' AND confidence = 0.5"),
    ("e.label = 'car' AND e.confidence >= 0", "label = 'car' AND confidence >= -0.0"),
    ("e.label = 'car' AND 2 > e.confidence", "label = 'car' AND confidence < 2.0"),
    ("e.label = 'car' AND 2 >= e.confidence", "label = 'car' AND confidence <= 2.0"),
    ("e.label = 'car' AND 2 < e.confidence", "label = 'car' AND confidence > 2.0"),
    ("e.label = 'car' AND 2 <= e.confidence", "label = 'car' AND confidence >= 2.0"),
    (
        "e.label = 'car' AND e.confidence BETWEEN 1 AND 2",
        "label = 'car' AND confidence >= 1.0 AND confidence <= 2.0",
    ),
    (
        "e.label = 'car' AND e.confidence > 1 AND e.confidence > 2 AND e.confidence < 9",
        "label = 'car' AND confidence > 2.0 AND confidence < 9.0",
    ),
    ("e.label IN ('a', 'b', 'c') AND e.label > 'a'", "label IN ('b', 'c')"),
    ("e.label IN ('a', 'b', 'c') AND e.label < 'b'", "label = 'a'"),
    ("e.label = 'a' AND e.label = 'b'", "label IN ()"),
    ("e.label = 'a' AND e.label IS NULL", "label IN ()"),
    ("e.label > 'b' AND e.label < 'a'", "label IN ()"),
    (
        "e.label = 'car' AND e.confidence = 1 AND e.size IN (3, 4) AND e.flag",
        "label = 'car' AND confidence = 1.0 AND size IN (3, 4) AND flag = TRUE",
    ),
    (
        "e.label = 'car' AND e.confidence = 1 AND e.size = 3 AND NOT e.flag",
        "label = 'car' AND confidence = 1.0 AND size = 3 AND flag = FALSE",
    ),
    ("e.label = 'car' AND e.label LIKE 'ca%'", "label = 'car'"),
    ("e.label LIKE 'car'", "label = 'car'"),
    (
        "e.label = 'car' AND (e.confidence = 0 OR e.confidence = 1)",
        "label = 'car' AND confidence IN (0.0, 1.0)",
    ),
    (
        # As any_element writes `confidence IN (0.0, 1)`.
        "e.label = 'car' AND (e.confidence IN (0.0, 1, 2, 4) OR e.confidence = 0.0)",
        "label = 'car' AND confidence IN (0.0, 1.0, 2.0, 4.0)",
    ),
    ("e.label = 'car' AND e.confidence > 0.9", "label = 'car' AND confidence > 0.9"),
    ("e.label = 'car' AND e.confidence = 0.9", "label = 'car' AND confidence IN ()"),
    (
        "e.label = 'car' AND e.confidence = 1 AND e.size = 300",
        "label = 'car' AND confidence = 1.0 AND size IN ()",
    ),
]


def described(query: Query | None) -> str | None:
    """The text of an `any_element` over `d`, without the call around it."""
    return None if query is None else str(query).removeprefix("any_element(d, ").removesuffix(")")


@pytest.mark.parametrize(("predicate", "search"), EXACT)
def test_conditions_on_the_keys_are_the_whole_predicate(
    by_label: Indexed, predicate: str, search: str
) -> None:
    query = by_label.any_element(predicate)
    assert isinstance(query, AnyElement)
    assert described(query) == search
    assert query.exact
    assert query.null_known


@pytest.mark.parametrize(
    ("predicate", "search"),
    [
        ("e.flag", "flag = TRUE"),
        ("NOT e.flag", "flag = FALSE"),
        ("e.flag = TRUE", "flag = TRUE"),
        ("e.flag = FALSE", "flag = FALSE"),
        ("e.flag <> TRUE", "flag = FALSE"),
        ("e.flag IN (TRUE, FALSE)", "flag IN (FALSE, TRUE)"),
        ("e.flag OR NOT e.flag", "flag IN (FALSE, TRUE)"),
        ("e.flag IS NULL", "flag IS NULL"),
        ("e.flag AND e.size = 3", "flag = TRUE AND size = 3"),
        ("e.size = 3 AND NOT e.flag", "flag = FALSE AND size = 3"),
        ("NOT (e.flag OR e.size <> 3)", "flag = FALSE AND size = 3"),
        (
            "e.flag AND e.size = 3 AND e.label LIKE 'a%'",
            THREE + " AND label >= 'a' AND label < 'b'",
        ),
        (
            "e.flag AND e.size = 3 AND starts_with(e.label, 'a_')",
            THREE + " AND label >= 'a_' AND label < 'a`'",
        ),
        (
            "e.flag AND e.size = 3 AND e.label LIKE '5\\%%'",
            THREE + " AND label >= '5%' AND label < '5&'",
        ),
    ],
)
def test_a_boolean_key_is_a_condition_of_its_own(
    by_flag: Indexed, predicate: str, search: str
) -> None:
    query = by_flag.any_element(predicate)
    assert described(query) == search
    assert query is not None
    assert query.exact
    assert query.null_known


@pytest.mark.parametrize(
    ("predicate", "queries"),
    [
        ("e.label = 'car' OR e.label IS NULL", ["label = 'car'", "label IS NULL"]),
        (
            "e.label = 'car' AND e.confidence > 2 OR e.label = 'car' AND e.confidence < 1",
            ["label = 'car' AND confidence > 2.0", "label = 'car' AND confidence < 1.0"],
        ),
        (
            "e.label = 'car' AND e.confidence > 2 OR e.label = 'dog' AND e.confidence < 1",
            ["label = 'car' AND confidence > 2.0", "label = 'dog' AND confidence < 1.0"],
        ),
        (
            "e.label = 'car' AND (e.confidence = 1 OR e.confidence IS NULL) "
            "AND (e.size = 1 OR e.size = 2)",
            [
                "label = 'car' AND confidence = 1.0 AND size IN (1, 2)",
                "label = 'car' AND confidence IS NULL AND size IN (1, 2)",
            ],
        ),
        (
            "(e.label = 'car' AND (e.confidence < 1 OR e.confidence > 2)) OR e.label = 'dog'",
            [
                "label = 'car' AND confidence < 1.0",
                "label = 'car' AND confidence > 2.0",
                "label = 'dog'",
            ],
        ),
    ],
)
def test_an_or_is_searched_for_side_by_side(
    by_label: Indexed, predicate: str, queries: list[str]
) -> None:
    query = by_label.any_element(predicate)
    assert isinstance(query, Or)
    assert [described(child) for child in query.children] == queries
    assert query.exact
    assert query.null_known


@pytest.mark.parametrize(
    ("predicate", "search"),
    [
        ("e.label = 'car' AND e.area > 3", "label = 'car'"),
        ("e.label = 'car' AND e.size = 3", "label = 'car'"),
        ("e.label = 'car' AND (e.confidence > 2 OR e.area = 1)", "label = 'car'"),
        (
            "e.label = 'car' AND e.confidence > 1 AND e.size = 3",
            "label = 'car' AND confidence > 1.0",
        ),
        ("e.label = 'car' AND e.confidence + 1 > 2", "label = 'car'"),
        ("e.label = 'car' AND e.confidence <> 2", "label = 'car'"),
        ("e.label = 'car' AND NOT (e.confidence IN (1, 2))", "label = 'car'"),
        ("e.label = 'car' AND e.confidence = e.size", "label = 'car'"),
        ("e.label = 'car' AND CAST(NULL AS BOOLEAN)", "label = 'car'"),
        ("e.label = 'car' AND e.label ILIKE 'CA%'", "label = 'car'"),
        ("e.label = 'car' AND e.label NOT LIKE 'ca%'", "label = 'car'"),
        ("e.label = 'car' AND e.label LIKE 'c!%%' ESCAPE '!'", "label = 'car'"),
        ("e.label IN ('car', 'dog') AND e.label LIKE 'c_r%'", "label = 'car'"),
        ("e.label IN ('car', 'dog') AND e.label LIKE 'c%r'", "label = 'car'"),
        # A list of floats is compared by bits.
        (
            "e.label = 'car' AND e.confidence IN (0.0, 1)",
            "label = 'car' AND confidence IN (0.0, 1.0)",
        ),
        (
            f"e.label IN ({TEXTS}) AND e.confidence IN ({NUMBERS})",
            "label IN ('0', '1', '10', '100', '101', … 295 more)",
        ),
    ],
)
def test_what_the_keys_do_not_answer_makes_a_superset(
    by_label: Indexed, predicate: str, search: str
) -> None:
    query = by_label.any_element(predicate)
    assert described(query) == search
    assert query is not None
    assert not query.exact


@pytest.mark.parametrize(
    ("predicate", "search"),
    [
        ("e.label IN ('car', NULL)", "label = 'car'"),
        (
            "e.label = 'car' AND e.confidence IS NOT NULL",
            "label = 'car' AND confidence IS NOT NULL",
        ),
        ("(e.label = 'car') IS TRUE", "label = 'car'"),
        ("(e.label = 'car' AND e.confidence > 2) IS TRUE", "label = 'car' AND confidence > 2.0"),
        ("(e.label IS NOT DISTINCT FROM 'car')", "label = 'car'"),
        ("(e.label IS NOT DISTINCT FROM NULL)", "label IS NULL"),
        ("FALSE", "label IN ()"),
        ("e.label = NULL", "label IN ()"),
    ],
)
def test_the_null_rows_are_not_determined(by_label: Indexed, predicate: str, search: str) -> None:
    query = by_label.any_element(predicate)
    assert described(query) == search
    assert query is not None
    assert query.exact
    assert not query.null_known


@pytest.mark.parametrize(
    ("predicate", "search"),
    [
        ("e.flag IS TRUE", "flag = TRUE"),
        ("e.flag IS FALSE", "flag = FALSE"),
        ("e.flag IS UNKNOWN", "flag IS NULL"),
        ("(e.flag IS NOT DISTINCT FROM TRUE)", "flag = TRUE"),
        ("(e.flag AND e.size = 3) IS TRUE", "flag = TRUE AND size = 3"),
        ("CASE WHEN e.flag THEN TRUE ELSE FALSE END", "flag = TRUE"),
    ],
)
def test_the_null_rows_of_a_tested_flag_are_not_determined(
    by_flag: Indexed, predicate: str, search: str
) -> None:
    query = by_flag.any_element(predicate)
    assert described(query) == search
    assert query is not None
    assert query.exact
    assert not query.null_known


def test_the_null_rows_are_not_enumerated_without_end(by_label: Indexed) -> None:
    many = ", ".join(f"'{n}'" for n in range(25_000))
    query = by_label.any_element(f"e.label IN ({many}) AND e.confidence = 1 AND e.size = 1")
    assert query is not None
    assert query.exact
    assert not query.null_known


@pytest.mark.parametrize(
    "predicate",
    [
        "TRUE",
        "e.confidence = 1",
        "e.label > 'car'",
        "e.label LIKE 'ca%'",
        "e.label <> 'car'",
        "e.label NOT IN ('car')",
        "e.label IS NOT NULL",
        "(e.label IS DISTINCT FROM 'car')",
        "(e.label = 'car') IS NOT TRUE",
        "(e.label = 'car') IS FALSE",
        "e.label = 'car' OR e.area = 1",
        "e.label = 'car' OR e.confidence > 1",
        "upper(e.label) = 'CAR'",
        "CAST(e.label AS INT) = 1",
        "TRY_CAST(e.label AS INT) = 1",
        "CASE WHEN e.label IS NOT NULL THEN e['label'] ELSE 'car' END = 'car'",
    ],
)
def test_a_predicate_that_fixes_no_first_key_is_noted(by_label: Indexed, predicate: str) -> None:
    query, notes = by_label.read(f"array_any_match(d, e -> {masked(predicate)})")
    assert query is None
    assert notes == [NOTHING_FIXED]


@pytest.mark.parametrize(
    "predicate",
    [
        "array_any_match([1, 2], e -> e = id)",
        "array_has(d, NULL)",
        "id = 1",
        "id IS NULL",
        "array_any_match(array_distinct(d), e -> e['label'] = 'car')",
    ],
)
def test_other_predicates_are_not_read(by_label: Indexed, predicate: str) -> None:
    assert by_label.read(predicate) == (None, [])


def test_a_null_list_is_a_null_row_of_a_search_that_is_never_unknown(by_flag: Indexed) -> None:
    query, _ = by_flag.read("d IS NULL")
    assert str(query) == ("any_element(d, flag IS NULL AND size IS NULL AND label IS NULL) IS NULL")


# -- lambdas that read under NULL elements -------------------------------------------------

NULLS = "label IS NULL AND confidence IS NULL AND size IS NULL AND flag IS NULL"


@pytest.mark.parametrize(
    ("predicate", "queries"),
    [
        ("e['label'] = 'car'", ["label = 'car'", NULLS]),
        ("e['label'] = 'car' AND e['area'] > 2", ["label = 'car'", NULLS]),
        ("e['label'] = 'car' AND e['flag'] AND NOT e['flag']", ["label = 'car'", NULLS]),
        ("e['label'] = 'car' AND id = 3", ["label = 'car'", NULLS]),
        ("e['label'] IN ('a', 'b') OR e['label'] = 'c'", ["label IN ('a', 'b', 'c')", NULLS]),
        ("e['label'] = 'car' OR e.label IS NULL", ["label = 'car'", "label IS NULL", NULLS]),
    ],
)
def test_what_lies_under_a_null_element_is_rechecked(
    by_label: Indexed, predicate: str, queries: list[str]
) -> None:
    query = by_label.any_element(predicate)
    assert isinstance(query, Superset)
    assert isinstance(query.child, Or)
    assert [described(child) for child in query.child.children] == queries


@pytest.mark.parametrize(
    ("predicate", "search", "exact", "null_known"),
    [
        ("e['label'] IS NULL", "label IS NULL", False, False),
        ("e IS NOT NULL AND e['label'] = 'car'", "label = 'car'", True, False),
        ("e IS NOT NULL AND e['label'] IS NULL", "label IS NULL", False, False),
        (
            "e['label'] = 'car' AND e.confidence > 2",
            "label = 'car' AND confidence > 2.0",
            True,
            False,
        ),
        ("CASE WHEN e IS NOT NULL THEN e['label'] = 'car' END", "label = 'car'", True, True),
        ("CASE WHEN e IS NULL THEN NULL ELSE e['label'] = 'car' END", "label = 'car'", True, True),
        ("CASE WHEN e IS NOT NULL THEN e['label'] IS NULL END", "label IS NULL", False, False),
    ],
)
def test_a_lambda_that_is_no_match_on_null_elements(
    by_label: Indexed, predicate: str, search: str, exact: bool, null_known: bool
) -> None:
    query = by_label.any_element(predicate)
    assert described(query) == search
    assert query is not None
    assert (query.exact, query.null_known) == (exact, null_known)


@pytest.mark.parametrize("predicate", ["e['label'] = 'car'", "e.label = 'car'"])
def test_where_no_element_can_be_null_nothing_lies_under_it(tmp_path: Path, predicate: str) -> None:
    table = Indexed(tmp_path, {"by_label": ["label"]}, null_elements=False)
    query = table.any_element(predicate)
    assert described(query) == "label = 'car'"
    assert query is not None
    assert query.null_known


# -- several indexes -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def by_several(tmp_path_factory: pytest.TempPathFactory) -> Indexed:
    indexes = {
        "a_label": ["label"],
        "b_label_confidence": ["label", "confidence"],
        "c_size_label": ["size", "label"],
    }
    return Indexed(tmp_path_factory.mktemp("by_several"), indexes)


@pytest.mark.parametrize(
    ("predicate", "indexes"),
    [
        ("e.label = 'car'", {"a_label"}),
        ("e.label = 'car' AND e.confidence = 1", {"b_label_confidence"}),
        ("e.label = 'car' AND e.confidence > 1", {"b_label_confidence"}),
        ("e.label = 'car' AND e.size = 1", {"c_size_label"}),
        ("e.label > 'car' AND e.size = 1 AND e.confidence = 1", {"c_size_label"}),
        ("e.label = 'car' OR e.size = 1", {"a_label", "c_size_label"}),
    ],
)
def test_the_index_that_serves_best_answers(
    by_several: Indexed, predicate: str, indexes: set[str]
) -> None:
    query = by_several.any_element(predicate)
    assert query is not None
    assert {index.name for index in query.indexes} == indexes


def test_every_index_that_is_of_no_use_is_noted(by_several: Indexed) -> None:
    query, notes = by_several.read(f"array_any_match(d, e -> {masked('e.confidence = 1')})")
    assert query is None
    assert [note.split(":")[0] for note in notes] == [
        "table t, index a_label",
        "table t, index b_label_confidence",
        "table t, index c_size_label",
    ]


# -- keys that change ----------------------------------------------------------------------


def test_a_key_goes_by_its_current_name(tmp_path: Path) -> None:
    table = Indexed(tmp_path, {"by_label": ["label"]})
    rename = cast("Any", table.dataset).alter_columns
    rename({"path": "d.item.label", "name": "kind"})
    rename({"path": "d.item.size", "name": "label"})
    table.show(lance.dataset(table.dataset.uri))
    assert described(table.any_element("e.kind = 'car'")) == "kind = 'car'"
    assert table.any_element("e.label = 1") is None


def test_an_index_whose_key_is_gone_is_noted(tmp_path: Path) -> None:
    table = Indexed(tmp_path, {"a_label": ["label", "area"], "b_label": ["label"]})
    table.dataset.drop_columns(["d.item.area"])
    table.show(lance.dataset(table.dataset.uri))
    query, notes = table.read(f"array_any_match(d, e -> {masked(CAR)})")
    assert query is not None
    assert [index.name for index in query.indexes] == ["b_label"]
    assert len(notes) == 1
    assert "a_label" in notes[0]


# -- functions that are not DataFusion's own -----------------------------------------------


def test_a_registered_get_field_reads_no_key(by_label: Indexed) -> None:
    context = analysing_context()
    context.register_udf(
        udf(
            lambda d, _: d.field("label"),
            [ELEMENT, pa.string()],
            pa.string(),
            "stable",
            "get_field",
        )
    )
    query, notes = by_label.read(
        "array_any_match(d, e -> get_field(e, 'label') = 'car')", context=context
    )
    assert query is None
    assert notes == [
        "table t, index by_label: get_field is a registered function, not DataFusion's own"
    ]


def test_a_registered_array_any_match_is_another_function(by_label: Indexed) -> None:
    context = analysing_context()
    context.register_udf(
        udf(
            lambda d, _: d.is_valid(),
            [by_label.schema.field("d").type, pa.string()],
            pa.bool_(),
            "stable",
            "array_any_match",
        )
    )
    query, _ = by_label.read("array_any_match(d, 'label')", context=context)
    assert query is None
