"""The predicate of `any_element`: what it may say, what it means, and that it stays inside."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionContext, col, udf

from datafusion_lance.engine import InvalidArgumentError, LanceSessionContext
from datafusion_lance.udfs import any_element

BOX = pa.struct([("width", pa.int32()), ("in", pa.struct([("x", pa.int64())]))])
ELEMENT = pa.struct(
    [
        ("label", pa.string()),
        ("confidence", pa.float32()),
        ("k", pa.float64()),
        ("n", pa.int64()),
        ("ok", pa.bool_()),
        ("day", pa.date32()),
        ("date", pa.date32()),
        ("at", pa.timestamp("us")),
        ("price", pa.decimal128(10, 2)),
        ("box", BOX),
        ("sizes", pa.map_(pa.string(), pa.int32())),
        ("a.b", pa.int8()),
        ("it's", pa.int8()),
        ('q"q', pa.int8()),
        ("Label", pa.string()),
        ("null", pa.int8()),
    ]
)
CAR: dict[str, Any] = {
    "label": "car",
    "confidence": 0.9,
    "k": -0.0,
    "n": 7,
    "ok": True,
    "day": date(2024, 2, 29),
    "date": date(2024, 3, 1),
    "at": datetime(2024, 2, 29, 12),
    "price": Decimal("1.50"),
    "box": {"width": 4, "in": {"x": 5}},
    "sizes": [("s", 1)],
    "a.b": 1,
    "it's": 2,
    'q"q': 3,
    "Label": "CAR",
    "null": 4,
}


def answer(predicate: str, *elements: dict[str, Any] | None, element: Any = ELEMENT) -> Any:
    """What `any_element` is on one list of the given elements."""
    session = LanceSessionContext()
    rows = pa.RecordBatch.from_arrays([pa.array([list(elements)], pa.list_(element))], ["d"])
    session.register_record_batches("t", [[rows]])
    text = predicate.replace("'", "''")
    return session.sql(f"SELECT any_element(d, '{text}') AS a FROM t").to_pydict()["a"][0]


@pytest.mark.parametrize(
    "predicate",
    [
        "label = 'car' AND confidence > 0.85",
        "'car' = label AND 0.85 < confidence",
        "LABEL = 'car' AND \"label\" = 'car'",
        "\"Label\" = 'CAR'",
        "label LIKE 'c%' AND label ILIKE 'CA_' AND label NOT LIKE 'd%'",
        "label ~ '^c.r$' AND label !~ 'x' AND label SIMILAR TO 'c.*'",
        "n + 1 = 8 AND n % 2 = 1 AND -n < 0",
        "CAST(n AS VARCHAR) = '7' AND n::text || 'x' = '7x' AND TRY_CAST(label AS INT) IS NULL",
        "upper(label) = 'CAR' AND length(label) = 3 AND coalesce(label, 'x') <> 'x'",
        "CASE WHEN n > 5 THEN ok ELSE FALSE END",
        "CASE label WHEN 'car' THEN TRUE END",
        "ok",
        "NOT (NOT ok)",
        "ok IS TRUE AND (n > 100) IS FALSE AND (NULL = n) IS UNKNOWN AND ok IS NOT UNKNOWN",
        "(n IS DISTINCT FROM 8) AND (n IS NOT DISTINCT FROM 7)",
        "n BETWEEN 1 AND 7 AND n NOT BETWEEN 8 AND 9 AND n IN (1, 7) AND n NOT IN (2, 3)",
        'box.width > 3 AND box[\'width\'] = 4 AND "box"."width" < 5',
        "box.in.x = 5 AND box['in']['x'] = 5 AND \"box\".\"in\"['x'] = 5",
        "box IS NOT NULL AND box.in IS NOT NULL",
        "sizes['s'] = 1",
        '"a.b" = 1 AND "it\'s" = 2 AND "q""q" = 3',
        '"null" = 4 AND (NULL IS NULL)',
        "EXTRACT(day FROM day) = 29 AND date_part('month', day) = 2",
        "CAST('2024-03-01' AS date) = date AND day = DATE '2024-02-29' AND date > day",
        "at > TIMESTAMP '2024-02-29 11:59:59' AND at < day + INTERVAL '1 day'",
        "at = arrow_cast(at, 'Timestamp(Second, Some(\"UTC\"))') AND label <> '\"'",
        "price = 1.5 AND price > 1",
        "label = 'car' -- a comment",
        "label = /* one /* inside */ another */ 'car'",
        "position('a' in label) = 2",
        "substring(label from 1 for 1) = 'c' AND trim(both 'c' from label) = 'ar'",
        "label <> 'it''s' AND label <> '\"' AND label <> '--' AND label <> '/*'",
        "TRUE",
        "1 = 1",
    ],
)
def test_what_a_predicate_may_say(predicate: str) -> None:
    assert answer(predicate, CAR) is True
    assert answer(predicate, None, CAR) is True
    assert answer(f"NOT ({predicate}\n)", CAR) is False


def test_conditions_hold_on_the_same_element() -> None:
    elements = ({"label": "car", "n": 1}, {"label": "dog", "n": 2})
    assert answer("label = 'car' AND n = 1", *elements) is True
    assert answer("label = 'car' AND n = 2", *elements) is False


@pytest.mark.parametrize("predicate", ["NULL", "CAST(NULL AS BOOLEAN)", "NULL AND ok"])
def test_null_is_an_unknown_predicate(predicate: str) -> None:
    assert answer(predicate, CAR) is None
    assert answer(predicate) is False


def test_every_field_of_a_null_element_is_null() -> None:
    assert answer("label = ''", None) is None
    assert answer("label IS NULL AND box.width IS NULL AND box IS NULL", None) is True
    assert answer("TRUE", None) is True


def test_what_lies_under_a_null_struct_is_not_read() -> None:
    inner = pa.StructArray.from_arrays([pa.array([1])], ["x"], mask=pa.array([True]))
    outer = pa.StructArray.from_arrays([inner, pa.array([2])], ["box", "n"])
    nothing = pa.StructArray.from_arrays(
        [inner, pa.array([2])], ["box", "n"], mask=pa.array([True])
    )
    session = LanceSessionContext()
    for elements, unknown in ((outer, "box.x = 1"), (nothing, "n = 2 AND box.x = 1")):
        lists = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), elements)
        rows = session.read_batch(pa.RecordBatch.from_arrays([lists], ["d"]))
        frame = rows.select(any_element(col("d"), unknown, rows).alias("a"))
        assert frame.to_pydict()["a"] == [None]


# -- the two exceptions: where DataFusion's optimizer departs from SQL ---------------------


@pytest.mark.parametrize("items", ["0", "0, 1", "1, 0.0", "-1, 0, 1, 2, 3", "1, 2, 3, 4, -0.0, 5"])
@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize("field", ["k", "confidence"])
def test_in_on_floats_is_the_or_of_equalities(items: str, zero: float, field: str) -> None:
    element = {"k": zero, "confidence": zero}
    assert answer(f"{field} IN ({items})", element) is True
    assert answer(f"{field} NOT IN ({items})", element) is False
    assert answer(f"NOT {field} IN ({items}, NULL)", element) is False
    assert answer(" OR ".join(f"{field} = {n}" for n in items.split(",")), element) is True
    assert answer(f"{field} IN ({items})", {"k": 9.0, "confidence": 9.0}) is False


def test_in_on_floats_finds_nan_and_computed_items() -> None:
    nan = {"k": float("nan"), "n": 0}
    assert answer("k IN (0, CAST('NaN' AS DOUBLE))", nan) is True
    assert answer("k IN (1, 2, n)", {"k": -0.0, "n": 0}) is True
    assert answer("k + 0.0 IN (1, 2, 3, n * 1.0)", {"k": -0.0, "n": 0}) is True
    assert answer("n IN (1.5, -0.0, 2.5, 3.5)", {"n": 0}) is True
    assert answer("(k IN (0, 2)) IN (TRUE)", {"k": -0.0}) is True
    assert answer("k IN (0, 2) IN (FALSE)", {"k": -0.0}) is False


@pytest.mark.parametrize(
    "contradiction",
    [
        "n IN (0) AND n IN (1)",
        "n IN (0, 1) AND n IN (2, 3)",
        "n IN (0, 1, 2, 3) AND n NOT IN (0, 1, 2, 3)",
        "n = 1 AND n <> 1",
        "n = 0 AND n = 1",
        "n > 1 AND n < 0",
        "n BETWEEN 3 AND 1",
        "n <> n",
        "k IN (0, 5) AND k IN (6, 7)",
        "label IN ('a') AND label IN ('b') AND label IN ('c')",
        "ok AND NOT ok",
    ],
)
def test_a_contradiction_on_a_null_field_is_unknown(contradiction: str) -> None:
    assert answer(contradiction, {}) is None
    assert answer(f"NOT ({contradiction})", {}) is None
    assert answer(contradiction, None) is None
    assert answer(contradiction, CAR) is False
    assert answer(f"NOT ({contradiction})", CAR) is True


def test_a_tautology_on_a_null_field_is_unknown() -> None:
    for tautology in ("n NOT IN (0) OR n NOT IN (1)", "n = n", "ok OR NOT ok", "n < 1 OR n >= 1"):
        assert answer(tautology, {}) is None
        assert answer(tautology, CAR) is True


# -- floats and types, as DataFusion has them ----------------------------------------------


def test_a_float32_is_compared_as_the_float64_that_it_is() -> None:
    assert answer("confidence = 0.9", CAR) is False
    assert answer("confidence = CAST(0.9 AS REAL)", CAR) is True
    assert answer("confidence > 0.899999", CAR) is True


def test_nan_equals_itself_and_is_greatest() -> None:
    nan = {"k": float("nan")}
    assert answer("k = CAST('NaN' AS DOUBLE) AND k > CAST('inf' AS DOUBLE)", nan) is True


# -- refusals ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("predicate", "takes"),
    [
        ("label = ", "one boolean expression"),
        ("", "one boolean expression"),
        ("-- nothing", "one boolean expression"),
        ("label = 'car' label", "one boolean expression"),
        ("label = 'car', n = 1", "one boolean expression"),
        ("*", "one boolean expression"),
        ("nope = 1", r"the fields of the element: label, confidence, .*; nope is none of them"),
        ('"LABEL" = 1', 'fields of the element: label, .*; "LABEL" is none of them'),
        ("box.nope = 1", "the fields of box: width, in; nope is none of them$"),
        ("box['nope'] = 1", "the fields of box: width, in; nope is none of them$"),
        ("ok AND box.in.y = 1", "the fields of box.in: x; y is none of them$"),
        ("label", "a boolean expression; this one is string"),
        ("n + 1", "a boolean expression; this one is int64"),
        ("label = 'car' AS x", "without an alias"),
        ("count(*) > 1", "without aggregate functions"),
        ("max(n) > 1 OR ok", "without aggregate functions"),
        ("label = 'a\\' AND max(n) > 1 AND label = 'b'", "without aggregate functions"),
        ("label = '\"' AND max(n) > 1 AND label = '\"'", "without aggregate functions"),
        (
            "at = arrow_cast(at, 'Timestamp(Second, Some(\"UTC\"))') AND max(n) > 1",
            "without aggregate functions",
        ),
        ("row_number() OVER () = 1", "without window functions"),
        ("n > 1 AND sum(n) OVER () = 1", "without"),
        ("EXISTS (SELECT 1)", "without subqueries"),
        ("n = (SELECT 1)", "without subqueries"),
        ("n IN (SELECT 1)", "without subqueries"),
        ("n = $1", "without placeholders: give the whole predicate as the parameter"),
        ("n = $name", "without placeholders"),
        ("id = 1", "id is none of them"),
        ("t.id = 1", "t.id is none of them"),
        ("t.label = 'car'", "t.label is none of them"),
        ("get_field(box, 'width') = 1", "nested fields written as"),
    ],
)
def test_what_a_predicate_may_not_say(predicate: str, takes: str) -> None:
    with pytest.raises(InvalidArgumentError, match=takes) as refusal:
        answer(predicate, CAR)
    assert refusal.value.argument == "predicate"
    assert refusal.value.got == predicate


@pytest.mark.parametrize(
    ("predicate", "hint"),
    [
        ('label = "car"', "a text takes single quotes, 'car'"),
        ("label = Car", "a text takes single quotes, 'Car'"),
        ('label LIKE "that\'s"', "a text takes single quotes, 'that''s'"),
        ("label IN ('a', b)", "a text takes single quotes, 'b'"),
        ("nope = 'car'", ""),
        ("ok AND nope = 'car'", ""),
        ("t.nope = 'car'", ""),
        ("'a' = nope.b", ""),
    ],
)
def test_a_text_in_double_quotes_or_without_is_hinted_at(predicate: str, hint: str) -> None:
    with pytest.raises(InvalidArgumentError) as refusal:
        answer(predicate, CAR)
    assert refusal.value.takes.rpartition(" is none of them")[2] == (hint and f": {hint}")


@pytest.mark.parametrize(
    ("predicate", "hint"),
    [
        ("order = 1", 'order is none of them: did you mean "Order"? names without double quotes'),
        ("Order = 1", 'order is none of them: did you mean "Order"? names without double quotes'),
        ('"order" = 1', 'order is none of them: did you mean "Order"? names without double quotes'),
        ("k = 1 OR box.W = 1", 'the fields of box: W; w is none of them: did you mean "W"?'),
        ("S.x = 1", 's.x is none of them: did you mean "S"?'),
        ("a.b = 3", '; a name with a dot in it takes double quotes: "a.b"'),
        ("k.C = 3", '; a name with a dot in it takes double quotes: "k.c"'),
        ("box.w.d = 3", '; a name with a dot in it takes double quotes: "box.w.d"'),
        ("select = 3", 'names that are reserved words in double quotes: "select" = 3'),
        ("select", 'names that are reserved words in double quotes: "select"'),
        ("interval = 3 -- c", 'names that are reserved words in double quotes: "interval" = 3'),
        ("select = 3 AS x", "an expression without an alias"),
        ("select = 3) OR (k = 1", "an expression without subqueries"),
    ],
)
def test_a_name_that_needs_double_quotes_is_hinted_at(predicate: str, hint: str) -> None:
    names = ["Order", "a.b", "k", "k.c", "box.w.d", "select", "interval"]
    inner = pa.struct([("W", pa.int64())])
    structs = [("box", inner), ("S", inner)]
    element = pa.struct([*((name, pa.int64()) for name in names), *structs])
    with pytest.raises(InvalidArgumentError) as refusal:
        answer(predicate, None, element=element)
    assert refusal.value.argument == "predicate"
    assert hint in refusal.value.takes
    assert ("none of them" in refusal.value.takes) == ("none of them" in hint)


@pytest.mark.parametrize(
    "text",
    [
        ") OR (1=1",
        "label = 'dog') OR (1 = 1",
        "label = 'dog')) OR ((1 = 1",
        "label = 'dog'; DROP TABLE t",
        "label = 'dog'; --",
        "label = 'dog') --",
        "label = 'dog') /*",
        "label = 'dog' */",
        "label = 'dog",
        "label = 'dog' OR label = \"",
        "label = 'dog' /* not closed",
        "label = 'dog') IS NULL, (SELECT 1",
        "label = 'dog' }",
        "__element IS NULL",
        "label = 'dog', __element -> TRUE",
        "label = '\"' AND EXISTS (SELECT 1) AND label <> '\"'",
        "label = '\"' OR count(*) > 1 OR label = '\"'",
        "label = 'dog' UNION SELECT 1",
        "label = $$dog",
        "label = E'\\' OR TRUE",
    ],
)
def test_text_never_leaves_the_predicate(text: str) -> None:
    with pytest.raises(InvalidArgumentError) as refusal:
        answer(text, CAR)
    assert refusal.value.argument == "predicate"


@pytest.mark.parametrize(
    "text",
    [
        "label = 'dog' --",
        "label = 'dog' -- ) OR (1=1",
        "label = 'dog' /* ) OR TRUE */",
        "'--' = ''",
    ],
)
def test_comments_and_quotes_are_harmless(text: str) -> None:
    assert answer(text, CAR) is False


@pytest.mark.parametrize(
    "literal", ["a')", 'a"', "a\\", "a''", "--", "/*", "\n", ";", "$1", "é", "\0"]
)
def test_any_text_may_be_a_literal(literal: str) -> None:
    text = literal.replace("'", "''")
    assert answer(f"label = '{text}'", {"label": literal}) is True
    assert answer(f"label IN ('{text}', 'x')", {"label": literal}) is True


# -- options of the session ----------------------------------------------------------------


def test_identifiers_are_normalized_as_the_session_does() -> None:
    context = SessionContext()
    context.sql("SET datafusion.sql_parser.enable_ident_normalization = false")
    rows = context.read_batch(pa.RecordBatch.from_pylist([{"d": [{"Ab": 1, "ab": 2}]}]))
    for name, value in (("Ab", 1), ("ab", 2)):
        expression = any_element(col("d"), f"{name} = {value}", rows, context=context)
        assert rows.select(expression.alias("a")).to_pydict()["a"] == [True]
    with pytest.raises(InvalidArgumentError, match=r'"AB" is none of them$'):
        any_element(col("d"), "AB = 1", rows, context=context)


def test_the_session_s_functions_may_be_called() -> None:
    session = LanceSessionContext()
    session.register_udf(udf(lambda n: n, [pa.int64()], pa.int64(), "immutable", "same"))
    session.register_record_batches(
        "t", [[pa.RecordBatch.from_pylist([{"d": [{"same": 1}, {"same": 2}]}])]]
    )
    frame = session.sql("SELECT any_element(d, 'same(same) = 2') AS a FROM t")
    assert frame.to_pydict()["a"] == [True]


def test_ten_thousand_items_and_a_thousand_alternatives() -> None:
    many = ", ".join(map(str, range(10_000)))
    assert answer(f"n IN ({many})", {"n": 9_999}) is True
    assert answer(f"k IN ({many})", {"k": -0.0}) is True
    assert answer(f"n NOT IN ({many})", {"n": 10_000}) is True
    alternatives = " OR ".join(f"n = {n}" for n in range(1_000))
    assert answer(alternatives, {"n": 999}) is True


def test_fields_that_are_never_null_are_so_in_a_null_element() -> None:
    box = pa.struct([pa.field("w", pa.int32(), nullable=False)])
    element = pa.struct([pa.field("k", pa.int64(), nullable=False), pa.field("box", box)])
    here = {"k": 0, "box": {"w": 0}}
    for predicate in ("k = 0", "k IS NOT NULL AND k <> 1", "box.w = 0", "NOT box.w IN (1, 2)"):
        assert answer(predicate, here, element=element) is True
    for predicate in ("k = 0", "k <> 0", "k IN (0, 1)", "box.w = 0", "k = k", "box.w < 1"):
        assert answer(predicate, None, element=element) is None
        assert answer(f"NOT ({predicate})", None, element=element) is None
    for predicate in ("k IS NULL", "box.w IS NULL", "(k = 0) IS UNKNOWN"):
        assert answer(predicate, None, element=element) is True
        assert answer(predicate, here, element=element) is False
    assert answer("box.w IS NULL AND k = 0", {"k": 0, "box": None}, element=element) is True


def test_elements_that_are_never_null() -> None:
    session = LanceSessionContext()
    field = pa.field("item", pa.struct([pa.field("k", pa.int64())]), nullable=False)
    lists = pa.array([[{"k": 0}], [{"k": None}], [], None], pa.list_(field))
    session.register_record_batches("t", [[pa.RecordBatch.from_arrays([lists], ["d"])]])
    frame = session.sql("SELECT any_element(d, 'k = 0') AS a FROM t")
    assert frame.to_pydict()["a"] == [True, None, False, None]
