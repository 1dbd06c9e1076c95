"""The entries of an index: one for each element, and one for each row whose list is NULL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .btree_files import PAGE_DATA_SCHEMA
from .details import Key
from .key_encoding import encode_tuples

# Elements, and bytes of keys, encoded at once.
_ELEMENTS = 65_536
_BYTES = 16 << 20


def entries(lists: pa.Array, addresses: pa.Array, keys: Sequence[Key]) -> Iterator[pa.RecordBatch]:
    """The entries of some rows, as batches of `PAGE_DATA_SCHEMA`.

    `lists` are the rows' lists of structs, `addresses` their row addresses. An element's
    value is its encoded key tuple; a NULL element has a tuple of NULLs. A NULL list has one
    entry whose value is NULL, an empty one none.
    """
    if lists.null_count:
        ids = addresses.filter(lists.is_null())
        yield _batch(pa.nulls(len(ids), pa.binary()), ids)
    elements = lists.flatten()
    counts = lists.value_lengths().fill_null(0).to_numpy()
    ids = np.repeat(addresses.to_numpy(), counts)
    # The children as the struct's NULLs leave them: whatever lies under one does not count.
    children = elements.flatten()
    columns = [children[elements.type.get_field_index(key.name)] for key in keys]
    for start in range(0, len(elements), _ELEMENTS):
        part = [column.slice(start, _ELEMENTS) for column in columns]
        yield from _encoded(part, ids[start : start + _ELEMENTS], keys)


def _encoded(
    columns: Sequence[pa.Array], ids: npt.NDArray[np.uint64], keys: Sequence[Key]
) -> Iterator[pa.RecordBatch]:
    if len(ids) > 1 and sum(column.nbytes for column in columns) > _BYTES:
        half = len(ids) // 2
        yield from _encoded([c.slice(0, half) for c in columns], ids[:half], keys)
        yield from _encoded([c.slice(half) for c in columns], ids[half:], keys)
        return
    # Not a slice of an array: the sort would count the memory of all of it.
    yield _batch(encode_tuples([key.codec for key in keys], columns), pa.array(ids, pa.uint64()))


def _batch(values: pa.Array, ids: pa.Array) -> pa.RecordBatch:
    return pa.record_batch([values, ids], schema=PAGE_DATA_SCHEMA)
