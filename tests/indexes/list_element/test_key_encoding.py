"""The specification's section Key Encoding."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datafusion_lance.indexes.list_element.key_encoding import (
    AFTER,
    LOGICAL_TYPES,
    KeyCodec,
    decode_tuple,
    encode_tuples,
    key_codec,
)

from . import reference

CASES = json.loads((Path(__file__).parent / "key_vectors.json").read_text())["cases"]

INTEGERS = {
    "int8": 7,
    "int16": 15,
    "int32": 31,
    "int64": 63,
    "date32:day": 31,
    "date64:ms": 63,
    "timestamp:us:-": 63,
}
UNSIGNED = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}
TEXT = ("string", "large_string")
BINARY = ("binary", "large_binary")
KINDS = ("bool", *INTEGERS, *UNSIGNED, "float", "double", *TEXT, *BINARY)

BOUNDARIES = (0, 1, 7, 8, 9, 31, 32, 33, 63, 64, 65, 10_000)


def codec_of(kind: str) -> KeyCodec:
    codec = key_codec(kind)
    assert codec is not None
    return codec


def array_of(kind: str, values: list[Any]) -> pa.Array:
    """Values given as the vectors give them: dates and timestamps as their stored integers."""
    target = codec_of(kind).arrow_type
    if pa.types.is_temporal(target):
        return pa.array(values, pa.int32() if target.bit_width == 32 else pa.int64()).view(target)
    return pa.array(values, target)


def plain(kind: str, scalar: pa.Scalar) -> Any:
    return scalar.value if pa.types.is_temporal(scalar.type) else scalar.as_py()


def from_json(kind: str, value: Any) -> Any:
    if value is None:
        return None
    if kind in ("float", "double"):
        return float(value)
    return bytes.fromhex(value.removeprefix("hex:")) if kind in BINARY else value


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c['types']}={str(c['values'])[:40]}")
def test_known_answers(case: dict[str, Any]) -> None:
    codecs = [codec_of(kind) for kind in case["types"]]
    values = [from_json(k, v) for k, v in zip(case["types"], case["values"], strict=True)]
    columns = [array_of(k, [v]) for k, v in zip(case["types"], values, strict=True)]
    encoded = encode_tuples(codecs, columns)[0].as_py()
    assert encoded.hex() == case["key"]
    decoded = decode_tuple(codecs, encoded)
    back = [array_of(k, [plain(k, v)]) for k, v in zip(case["types"], decoded, strict=True)]
    assert encode_tuples(codecs, back)[0].as_py() == encoded


def test_the_specification_s_example() -> None:
    columns = [pa.array(["car"]), pa.array([0.5], pa.float32())]
    encoded = encode_tuples([codec_of("string"), codec_of("float")], columns)
    assert encoded[0].as_py() == bytes.fromhex("02 63 61 72 00 00 00 00 00 03 01 BF 00 00 00")


@pytest.mark.parametrize("length", BOUNDARIES)
@pytest.mark.parametrize("filler", [b"\0", b"x", b"\xff"], ids=["zeros", "letters", "ones"])
def test_blocks_end_where_the_specification_says(length: int, filler: bytes) -> None:
    value = filler * length
    for kind, values in (("binary", pa.array([b"before", None, value, b"after"])),):
        encoded = codec_of(kind).encode(values)[2].as_py()
        assert encoded == reference.encode(kind, value)
        assert decode_tuple([codec_of(kind)], encoded)[0].as_py() == value


@pytest.mark.parametrize("length", BOUNDARIES)
def test_a_type_and_its_large_and_view_variants_give_the_same_bytes(length: int) -> None:
    text = pa.array(["é" * (length // 2) + "x" * (length % 2), None, ""])
    expected = codec_of("string").encode(text)
    for variant in (pa.large_string(), pa.string_view()):
        assert codec_of("string").encode(text.cast(variant)).equals(expected)
        assert codec_of("large_string").encode(text.cast(variant)).equals(expected)
    data = text.cast(pa.binary())
    for variant in (pa.binary(), pa.large_binary(), pa.binary_view()):
        assert codec_of("binary").encode(data.cast(variant)).equals(expected)
        assert codec_of("large_binary").encode(data.cast(variant)).equals(expected)


def test_columns_of_many_and_of_few_different_strings_are_encoded_alike() -> None:
    few = [None if i % 7 == 0 else f"label {i % 50}" for i in range(10_000)]
    many = [None if i % 7 == 0 else "v" * (i % 70) + str(i) for i in range(10_000)]
    for values in (few, many):
        encoded = codec_of("string").encode(pa.array(values)).to_pylist()
        assert encoded == [reference.encode("string", value) for value in values]


@pytest.mark.parametrize(
    "kind",
    [
        "struct",
        "list",
        "decimal:128:10:2",
        "time64:us",
        "halffloat",
        "dict:string:int32:false",
        "fixed_size_binary:4",
        "timestamp:us",
        "timestamp:h:-",
        "null",
        "",
    ],
)
def test_other_types_have_no_encoding(kind: str) -> None:
    assert key_codec(kind) is None


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", ["-", "UTC", "Europe/Berlin", "+02:00"])
def test_unit_and_zone_of_a_timestamp_do_not_change_the_bytes(unit: str, zone: str) -> None:
    codec = codec_of(f"timestamp:{unit}:{zone}")
    stored = pa.array([-1, 0, 1 << 62, None], pa.int64())
    assert codec.arrow_type == pa.timestamp(unit, None if zone == "-" else zone)
    assert codec.encode(stored.view(codec.arrow_type)).equals(codec_of("int64").encode(stored))


def test_values_of_another_type_are_refused() -> None:
    with pytest.raises(TypeError, match="values of type int32 for a int64 key"):
        codec_of("int64").encode(pa.array([1], pa.int32()))
    with pytest.raises(TypeError, match="values of type binary for a string key"):
        codec_of("string").encode(pa.array([b"a"]))


def test_every_bit_pattern_of_a_float_keeps_its_place() -> None:
    patterns = np.array(
        [0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7FC00001, 0xFFC00000, 0xFFFFFFFF, 1],
        dtype=np.uint32,
    )
    encoded = codec_of("float").encode(pa.array(patterns.view(np.float32))).to_pylist()
    for pattern, got in zip(patterns.tolist(), encoded, strict=True):
        flipped = pattern ^ 0xFFFFFFFF if pattern >> 31 else pattern ^ 0x80000000
        assert got == b"\1" + struct.pack(">I", flipped)


def test_slices_are_encoded_from_where_they_start() -> None:
    values = ["zero", None, "two", "a value of more than thirty-two bytes altogether", ""] * 3
    numbers = [1, None, 3, 4, None] * 3
    for start, length in ((0, 15), (1, 3), (3, 9), (14, 1), (15, 0)):
        columns = [
            pa.array(values).slice(start, length),
            pa.array(numbers, pa.int16()).slice(start, length),
            pa.array([n is None for n in numbers]).slice(start, length),
        ]
        kinds = ["string", "int16", "bool"]
        encoded = encode_tuples([codec_of(kind) for kind in kinds], columns).to_pylist()
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        assert encoded == [reference.encode_tuple(kinds, row) for row in rows]


@pytest.mark.parametrize(
    ("kind", "damaged"),
    [
        ("int32", "01000000"),
        ("int32", "0200000000"),
        ("int32", "0000000001"),
        ("bool", "0102"),
        ("string", ""),
        ("string", "03"),
        ("string", "026100000000000000"),
        ("string", "02610000000000000000"),
        ("string", "02610000000000000109"),
        ("string", "02616161616161616109"),
        ("string", "0101"),
    ],
)
def test_bytes_that_are_no_encoding_are_refused(kind: str, damaged: str) -> None:
    with pytest.raises(ValueError, match=r"byte|bytes"):
        decode_tuple([codec_of(kind)], bytes.fromhex(damaged))


def values_of(kind: str) -> st.SearchStrategy[Any]:
    if kind == "bool":
        return st.booleans()
    if kind in INTEGERS:
        limit = 1 << INTEGERS[kind]
        return st.integers(-limit, limit - 1)
    if kind in UNSIGNED:
        return st.integers(0, (1 << UNSIGNED[kind]) - 1)
    if kind == "float":
        return st.floats(width=32, allow_nan=False)
    if kind == "double":
        return st.floats(allow_nan=False)
    if kind in TEXT:
        return st.text(alphabet="\0aé\U0010ffff", max_size=40) | st.text(max_size=80)
    return st.binary(max_size=20) | st.builds(
        lambda head, n: head + b"\0" * n, st.binary(max_size=2), st.integers(0, 70)
    )


@st.composite
def tuples(draw: st.DrawFn) -> tuple[list[str], list[tuple[Any, ...]]]:
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4))
    row = st.tuples(*(st.none() | values_of(kind) for kind in kinds))
    return kinds, draw(st.lists(row, min_size=1, max_size=12))


def in_order(kind: str, value: Any) -> Any:
    """A value as what Python compares like the type: text by its bytes, -0.0 before 0.0."""
    if value is None:
        return (0,)
    if kind in ("float", "double"):
        return (1, value, 0 if str(value).startswith("-") else 1)
    return (1, value.encode() if isinstance(value, str) else value)


@given(tuples())
def test_byte_order_is_tuple_order(drawn: tuple[list[str], list[tuple[Any, ...]]]) -> None:
    kinds, rows = drawn
    columns = [array_of(kind, [row[i] for row in rows]) for i, kind in enumerate(kinds)]
    codecs = [codec_of(kind) for kind in kinds]
    encoded = encode_tuples(codecs, columns).to_pylist()
    assert encoded == [reference.encode_tuple(kinds, row) for row in rows]

    def order(at: int) -> list[Any]:
        return [in_order(kind, value) for kind, value in zip(kinds, rows[at], strict=True)]

    places = range(len(rows))
    assert sorted(places, key=encoded.__getitem__) == sorted(places, key=order)
    for row, key in zip(rows, encoded, strict=True):
        decoded = decode_tuple(codecs, key)
        assert [plain(kind, v) for kind, v in zip(kinds, decoded, strict=True)] == list(row)


@given(tuples(), st.integers(0, 3))
def test_tuples_with_the_same_first_keys_stand_together(
    drawn: tuple[list[str], list[tuple[Any, ...]]], length: int
) -> None:
    kinds, rows = drawn
    keys = [reference.encode_tuple(kinds, row) for row in rows]
    prefix = reference.encode_tuple(kinds[:length], rows[0][:length])
    for row, key in zip(rows, keys, strict=True):
        same = reference.encode_tuple(kinds[:length], row[:length]) == prefix
        assert (prefix <= key < prefix + AFTER) == same


def test_the_table_of_logical_types_is_whole() -> None:
    assert {*KINDS, "timestamp of any unit and zone"} - {"timestamp:us:-"} == set(LOGICAL_TYPES)
