"""How wide a column's values are."""

from __future__ import annotations

import pyarrow as pa


def fixed_width(kind: pa.DataType) -> int | None:
    """Bytes of a value, rounded up; None where values differ in length."""
    if pa.types.is_fixed_size_list(kind):
        width = fixed_width(kind.value_type)
        return None if width is None else width * kind.list_size
    if pa.types.is_struct(kind):
        widths = [fixed_width(field.type) for field in kind.fields]
        return None if None in widths else sum(w for w in widths if w is not None)
    if pa.types.is_dictionary(kind):
        return fixed_width(kind.index_type)
    if isinstance(kind, pa.BaseExtensionType):
        return fixed_width(kind.storage_type)
    if pa.types.is_null(kind):
        return 0
    try:
        return (kind.bit_width + 7) // 8
    except ValueError:
        return None
