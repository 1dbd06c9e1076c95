"""All element types, List and LargeList: the index against DataFusion over the same rows."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from datafusion import SessionContext, col, lit
from datafusion import functions as f

from datafusion_lance.indexes.query import HasAny

from ..answers import covered, only_index, snapshot_of, three_values
from .element_types import samples

_SAMPLES = samples()


def _lists(values: pa.Array, large: bool) -> pa.Array:
    """Each value alone; none; all and a NULL; a NULL alone; the first twice; a NULL list."""
    count = len(values)
    items = pa.concat_arrays([values, values, pa.nulls(2, values.type), values[:1], values[:1]])
    ends = [*range(1, count + 1), count, 2 * count + 1, 2 * count + 2, 2 * count + 4]
    offsets = pa.array([0, *ends], pa.int64() if large else pa.int32())
    made = (pa.LargeListArray if large else pa.ListArray).from_arrays(offsets, items)
    return pa.concat_arrays([made, pa.nulls(1, made.type)])


def _datafusion(lists: pa.Array, needle: pa.Array) -> list[bool | None]:
    """DataFusion's `array_has_any(list, [needle])` of every list."""
    context = SessionContext()
    batch = pa.record_batch({"n": pa.array(range(len(lists))), "tags": lists})
    context.register_record_batches("t", [[batch]])
    one = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), needle)
    needles = context.from_arrow(pa.table({"needle": one}))
    joined = context.table("t").join_on(needles, lit(True))
    answers = joined.select(col("n"), f.array_has_any(col("tags"), col("needle")).alias("a"))
    table = answers.sort(col("n")).to_arrow_table()
    return table.column("a").to_pylist()


@pytest.mark.parametrize("large", [False, True], ids=["List", "LargeList"])
@pytest.mark.parametrize("values", _SAMPLES.values(), ids=_SAMPLES.keys())
def test_each_label_is_found_as_datafusion_finds_it(
    values: pa.Array, large: bool, tmp_path: Path
) -> None:
    lists = _lists(values, large)
    dataset = lance.write_dataset(pa.table({"tags": lists}), tmp_path / "table.lance")
    dataset.create_scalar_index("tags", "LABEL_LIST")
    snapshot = snapshot_of(dataset)
    index = only_index(snapshot)
    for at in range(len(values)):
        needle = values[at : at + 1]
        query = HasAny(index, "tags", needle, match_null=False)
        assert covered(snapshot, query) == {0}
        assert three_values(snapshot, query) == dict(enumerate(_datafusion(lists, needle)))
