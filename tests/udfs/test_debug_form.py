"""Types come back from a plan's `repr` as they were."""

from __future__ import annotations

import pyarrow as pa
import pytest

from datafusion_lance.engine import LanceSessionContext
from datafusion_lance.udfs.elements.calls import find_calls
from datafusion_lance.udfs.elements.list_types import probe, refused_element, shown_elements
from datafusion_lance.udfs.elements.planning import Readers

FIELDS = (
    pa.field("b", pa.bool_()),
    pa.field("i8", pa.int8()),
    pa.field("u64", pa.uint64()),
    pa.field("f16", pa.float16()),
    pa.field("f32", pa.float32()),
    pa.field("text", pa.string(), nullable=False),
    pa.field("large", pa.large_string()),
    pa.field("view", pa.string_view()),
    pa.field("bytes", pa.large_binary()),
    pa.field("fixed", pa.binary(3)),
    pa.field("day", pa.date32()),
    pa.field("time", pa.time64("ns")),
    pa.field("at", pa.timestamp("us")),
    pa.field("zoned", pa.timestamp("ms", "Europe/Berlin")),
    pa.field("span", pa.duration("s")),
    pa.field("price", pa.decimal128(10, 2)),
    pa.field("huge", pa.decimal256(50, -3)),
    pa.field("coded", pa.dictionary(pa.int8(), pa.string())),
    pa.field("map", pa.map_(pa.string(), pa.int32())),
    pa.field("list", pa.list_(pa.field("item", pa.int64(), nullable=False))),
    pa.field("vector", pa.list_(pa.float32(), 4)),
    pa.field("inner", pa.struct([pa.field("x", pa.struct([("y", pa.large_list(pa.int8()))]))])),
    pa.field("item", pa.int8()),
    pa.field("a.b", pa.int8()),
    pa.field("it's", pa.int8()),
    pa.field('q"q\\', pa.int8()),
    pa.field("é\n\t{}[](),:", pa.int8()),
    pa.field("", pa.int8()),
)  # fmt: skip


@pytest.mark.parametrize("field", FIELDS, ids=str)
def test_types(field: pa.Field) -> None:
    element = pa.struct([field])
    session = LanceSessionContext()
    lists = pa.array([], pa.list_(element))
    session.register_record_batches("t", [[pa.RecordBatch.from_arrays([lists], ["d"])]])
    readers = Readers(session.plain)
    plan = readers.lambdas.sql(f"SELECT {probe(0, 'd')} FROM t").logical_plan()
    assert shown_elements(repr(plan)) == {0: [element]}
    statement = find_calls("SELECT 1 WHERE EXISTS (SELECT any_element(d, 'p') FROM t)", {})
    assert statement is not None
    assert refused_element(statement, [0], readers.lambdas, "") == element
