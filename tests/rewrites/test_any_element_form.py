"""Field reads and connectives inside a lambda, as DataFusion's optimizer leaves them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from datafusion import SessionContext, col, lit
from datafusion import functions as f
from datafusion.expr import Expr

from datafusion_lance.rewrites.any_element_form import (
    All,
    Any,
    ElementPredicate,
    FieldRead,
    Part,
    Tree,
)

from .any_element_text import analysing_context, duckdb, masked, the_filter

FIELDS = {
    "text": pa.string(),
    "large": pa.large_string(),
    "view": pa.string_view(),
    "bytes": pa.binary(),
    "flag": pa.bool_(),
    "other": pa.bool_(),
    "i8": pa.int8(),
    "i64": pa.int64(),
    "u64": pa.uint64(),
    "f32": pa.float32(),
    "f64": pa.float64(),
    "d32": pa.date32(),
    "d64": pa.date64(),
    "us": pa.timestamp("us"),
    "utc": pa.timestamp("ms", "UTC"),
    "price": pa.decimal128(8, 2),
    "box": pa.struct([("width", pa.int32()), ("ok", pa.bool_())]),
}
ELEMENT = pa.struct(list(FIELDS.items()))


def table(element: pa.Field | pa.DataType = ELEMENT, *, large: bool = False) -> pa.Table:
    kind = pa.large_list(element) if large else pa.list_(element)
    return pa.schema([("id", pa.int64()), ("d", kind)]).empty_table()


def form_of(
    condition: str, rows: pa.Table | None = None, context: SessionContext | None = None
) -> ElementPredicate | None:
    context = analysing_context() if context is None else context
    plan = the_filter(context, "t", table() if rows is None else rows, condition)
    return ElementPredicate.of(Expr(plan.to_variant().predicate()))


def lambda_of(predicate: str, rows: pa.Table | None = None) -> ElementPredicate:
    form = form_of(f"array_any_match(d, e -> {masked(predicate)})", rows)
    assert form is not None
    return form


def leaf(form: ElementPredicate) -> Part:
    tree = form.tree()
    assert isinstance(tree, Part)
    return tree


def left_of(form: ElementPredicate) -> FieldRead | None:
    """The field on the left of a comparison, or under a test or a list."""
    part = leaf(form)
    return form.field(Part(part.expression.rex_call_operands()[0], part.guarded))


@pytest.mark.parametrize(
    ("predicate", "casts"),
    [
        ("e.text = 'a'", ()),
        ("e.text IN ('a', 'b', 'c', 'd', 'e')", ()),
        ("e.text IS NULL", ()),
        ("e.text IS NOT NULL", ()),
        ("e.text LIKE 'a%'", ()),
        ("e.large >= 'a'", ()),
        ("e.view < 'a'", ()),
        ("e.bytes = X'6162'", ()),
        ("e.i8 = 5", ()),
        ("e.i8 = 300", (pa.int64(),)),
        ("e.i8 = 2.5", (pa.float64(),)),
        ("e.i64 = 2.5", (pa.float64(),)),
        ("e.u64 = 5", ()),
        ("e.u64 > -1", (pa.decimal128(20, 0),)),
        ("e.f32 = 0.5", (pa.float64(),)),
        ("e.f32 = 1", ()),
        ("e.f64 IN (0.5, 1.5)", ()),
        ("CAST(CAST(e.f32 AS INT) AS DOUBLE) = 2.5", (pa.int32(), pa.float64())),
        ("e.d32 = DATE '2020-01-01'", ()),
        ("e.d32 > TIMESTAMP '2020-01-01T00:00:00'", (pa.timestamp("ns"),)),
        ("e.d64 = DATE '2020-01-01'", ()),
        ("e.us > TIMESTAMP '2020-01-01T00:00:00'", ()),
        ("CAST(e.us AS DATE) > DATE '2020-01-01'", (pa.date32(),)),
        ("e.utc > TIMESTAMP '2020-01-01T00:00:00Z'", ()),
        ("e.price = 1.5", ()),
        (
            "arrow_cast(e.us, 'Timestamp(Second, Some(\"Europe/Paris\"))') IS NULL",
            (pa.timestamp("s", "Europe/Paris"),),
        ),
    ],
)
def test_a_masked_field_is_read(predicate: str, casts: tuple[pa.DataType, ...]) -> None:
    name = predicate.split("e.", 1)[1].split(" ")[0].rstrip(",")
    assert left_of(lambda_of(predicate)) == FieldRead((name,), True, casts)


@pytest.mark.parametrize("large", [False, True])
def test_list_and_large_list_are_read_alike(large: bool) -> None:
    form = lambda_of("e.text = 'a'", table(large=large))
    assert (form.column, form.variable) == ("d", "e")
    assert left_of(form) == FieldRead(("text",), True)


@pytest.mark.parametrize(
    ("predicate", "read"),
    [
        ("e['text'] = 'a'", FieldRead(("text",), False)),
        ("e['f32'] = 0.5", FieldRead(("f32",), False, (pa.float64(),))),
        ("e['box']['width'] = 1", FieldRead(("box", "width"), False)),
        ("get_field(e, 'box', 'width') = 1", FieldRead(("box", "width"), False)),
        ("e IS NOT NULL", FieldRead((), True)),
        ("CASE WHEN e IS NOT NULL THEN e['text'] ELSE NULL END = 'a'", FieldRead(("text",), True)),
        ("CASE WHEN e IS NOT NULL THEN e['text'] ELSE 'b' END = 'a'", None),
        ("CASE WHEN e IS NULL THEN e['text'] END = 'a'", None),
        ("CASE WHEN e['box'] IS NOT NULL THEN e['text'] END = 'a'", None),
        ("CASE WHEN e['box'] IS NOT NULL THEN e['box']['width'] END = 1", None),
        ("TRY_CAST(e.text AS INT) = 1", None),
        ("upper(e.text) = 'A'", None),
        ("id = 1", None),
    ],
)
def test_other_reads(predicate: str, read: FieldRead | None) -> None:
    assert left_of(lambda_of(predicate)) == read


def test_a_nested_field_is_masked_level_by_level() -> None:
    box = "CASE WHEN e IS NOT NULL THEN e['box'] END"
    form = lambda_of(f"CASE WHEN ({box}) IS NOT NULL THEN ({box})['width'] END = 1")
    assert left_of(form) == FieldRead(("box", "width"), True)


def test_where_no_element_can_be_null_the_mask_is_gone() -> None:
    form = lambda_of("e.text = 'a'", table(pa.field("item", ELEMENT, nullable=False)))
    assert left_of(form) == FieldRead(("text",), False)


def test_a_field_of_another_lambda_is_none() -> None:
    rows = pa.schema([("d", pa.list_(pa.struct([("n", pa.list_(ELEMENT))])))]).empty_table()
    form = form_of("array_any_match(d, e -> array_any_match(e['n'], i -> i['text'] = 'a'))", rows)
    assert form is not None
    call = leaf(form).expression
    assert ElementPredicate.of(call) is None
    body = Expr(call.rex_call_operands()[1].to_variant().body())
    assert form.field(Part(body.rex_call_operands()[0])) is None


# -- connectives ---------------------------------------------------------------------------


def shown(form: ElementPredicate, tree: Tree) -> str:
    """A tree in words: boolean fields by name, other parts by the operator and the field."""
    if isinstance(tree, All | Any):
        word = " AND " if isinstance(tree, All) else " OR "
        return "(" + word.join(shown(form, part) for part in tree.parts) + ")"
    read, text = form.field(tree), ""
    if read is None:
        text = f"{tree.expression.rex_call_operator()} "
        read = form.field(Part(tree.expression.rex_call_operands()[0], tree.guarded))
    assert read is not None
    mask = "" if read.masked else "unmasked "
    name = ".".join(read.path) or "element"
    return f"{text}{mask}{name}{' tested' if tree.tested else ''}"


@pytest.mark.parametrize(
    ("predicate", "tree"),
    [
        ("e.flag", "flag"),
        ("e.flag = TRUE", "flag"),
        ("e.flag <> FALSE", "flag"),
        ("NOT e.flag", "not flag"),
        ("e.flag = FALSE", "not flag"),
        ("e.flag IS NULL", "is null flag"),
        ("e.flag IS TRUE", "flag tested"),
        ("(e.flag IS NOT DISTINCT FROM TRUE)", "flag tested"),
        ("e.flag IS NOT TRUE", "is not true flag"),
        ("e.flag AND e.other", "(flag AND other)"),
        ("e.flag OR e.other", "(flag OR other)"),
        ("NOT e.flag AND NOT e.other", "(not flag AND not other)"),
        ("NOT e.flag OR NOT e.other", "(not flag OR not other)"),
        ("e.flag AND NOT e.other", "(flag AND not other)"),
        ("e.flag OR NOT e.other", "(flag OR not other)"),
        ("NOT (e.flag AND e.other AND e.i8 = 1)", "(not flag OR not other OR != i8)"),
        ("e.flag AND (e.i8 = 1 OR NOT e.other)", "(flag AND (= i8 OR not other))"),
        ("e.flag AND e.i8 = 1 OR e.other AND e.i8 = 1", "(= i8 AND (flag OR other))"),
        ("NOT e.flag AND e.i8 = 1 OR e.flag AND e.i8 = 1", "(= i8 AND (not flag OR flag))"),
        ("(e.flag AND e.i8 = 1) IS TRUE", "(flag tested AND = i8 tested)"),
        ("CASE WHEN e.flag THEN TRUE ELSE FALSE END", "flag tested"),
        ("e['flag']", "unmasked flag"),
        ("NOT e['flag']", "not unmasked flag"),
        ("e IS NOT NULL AND e['flag']", "(is not null element AND flag)"),
        ("CASE WHEN e IS NOT NULL THEN e['flag'] AND e['i8'] = 1 END", "(flag AND = i8)"),
        ("CASE WHEN e IS NULL THEN NULL ELSE e['i8'] = 1 OR e['flag'] END", "(= i8 OR flag)"),
    ],
)
def test_the_connectives_of_a_boolean_field_are_taken_apart(predicate: str, tree: str) -> None:
    form = lambda_of(predicate)
    assert shown(form, form.tree()) == tree


@pytest.mark.parametrize("predicate", ["e.flag", "NOT e.flag", "e.flag AND NOT e.other"])
def test_a_session_that_eliminates_common_subexpressions_plans_the_same(predicate: str) -> None:
    condition = f"array_any_match(d, e -> {masked(predicate)})"
    own = form_of(condition, context=SessionContext(duckdb()))
    assert own is not None
    assert shown(own, own.tree()) == shown(own, lambda_of(predicate).tree())


# -- the call ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "condition",
    [
        "id = 1",
        "array_has([1], id)",
        "array_any_match([1], e -> e = id)",
        "array_any_match(array_distinct(d), e -> e['i8'] = 1)",
        "NOT array_any_match(d, e -> e['i8'] = 1)",
    ],
)
def test_what_is_no_such_call(condition: str) -> None:
    assert form_of(condition) is None


def test_a_call_of_the_dataframe_api() -> None:
    call = f.array_any_match(col("d"), lambda element: element["text"] == lit("a"))
    context = SessionContext()
    plan = context.from_arrow(table(), name="t").filter(call).optimized_logical_plan()
    form = ElementPredicate.of(Expr(plan.to_variant().predicate()))
    assert form is not None
    assert left_of(form) == FieldRead(("text",), False)
