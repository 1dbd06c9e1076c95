"""Every element type that pylance builds a label list index over, with values of it."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa


def _floats(width: str, bits: list[int]) -> pa.Array:
    unsigned = np.array(bits, dtype=f"u{width}")
    return pa.array(unsigned.view(f"f{width}"))


def _counted(kind: pa.DataType, values: list[int]) -> pa.Array:
    width = pa.int64() if kind.bit_width == 64 else pa.int32()
    return pa.array(values, width).cast(kind)


def samples() -> dict[str, pa.Array]:
    """Distinct values without NULL, not in order, by a name for the type."""
    arrays = [
        *(pa.array([3, 1, 2], kind) for kind in (pa.uint8(), pa.uint16(), pa.uint32())),
        *(pa.array([3, -1, 2, -2], kind) for kind in (pa.int8(), pa.int16(), pa.int32())),
        pa.array([2**63 - 1, -(2**63), 0, -1], pa.int64()),
        pa.array([2**64 - 1, 2**63, 0], pa.uint64()),
        # 1.5, -0.0, 0.0, inf, -inf, -1.5, and NaNs of four bit patterns.
        _floats("2", [0x3E00, 0x8000, 0, 0x7C00, 0xFC00, 0xBE00, 0x7E00, 0x7E01, 0xFE00, 0x7C01]),
        _floats("4", [0x3FC00000, 1 << 31, 0, 0x7F800000, 0xFF800000, 0xBFC00000]),
        _floats("4", [0x7FC00000, 0x7FC00001, 0xFFC00000, 0x7F800001]),
        _floats("8", [0x3FF8 << 48, 1 << 63, 0, 0x7FF0 << 48, 0xFFF0 << 48, 0xBFF8 << 48]),
        _floats("8", [0x7FF8 << 48, (0x7FF8 << 48) + 1, 0xFFF8 << 48, (0x7FF0 << 48) + 1]),
        pa.array([True, False]),
        pa.array(["b", "a", "", "é", "ab", "a\0"], pa.string()),
        pa.array(["b", "a", ""], pa.large_string()),
        pa.array([b"b", b"\0", b"", b"\0\0", b"\xff"], pa.binary()),
        pa.array([b"b", b""], pa.large_binary()),
        pa.array([b"bbb", b"aa\0", b"\xff\0\0"], pa.binary(3)),
        _counted(pa.date32(), [3, -1, 1]),
        _counted(pa.date64(), [3 * 86_400_000, -86_400_000]),
        *(
            _counted(pa.timestamp(unit, zone), [3, -5, 1])
            for unit in ("s", "ms", "us", "ns")
            for zone in (None, "UTC", "Europe/Berlin")
        ),
        _counted(pa.time32("s"), [3, 1]),
        _counted(pa.time32("ms"), [3, 1]),
        _counted(pa.time64("us"), [3, 1]),
        _counted(pa.time64("ns"), [3, 1]),
        *(_counted(pa.duration(unit), [3, -1]) for unit in ("s", "ms", "us", "ns")),
        pa.array([Decimal("12.50"), Decimal("-3.00"), Decimal("1.25")], pa.decimal128(10, 2)),
        pa.array([Decimal("12.50"), Decimal("-3.00"), Decimal("1.25")], pa.decimal256(40, 2)),
        pa.array(["b", "a", "c"]).dictionary_encode(),
    ]
    return {f"{number:02}-{array.type}": array for number, array in enumerate(arrays)}
