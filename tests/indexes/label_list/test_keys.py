"""Posting keys are found by value, floats by their bits, in whatever order they stand."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datafusion_lance.indexes.label_list.keys import PostingKeys, bit_patterns, same_family

from .element_types import samples

_SAMPLES = samples()


def _shuffled(values: pa.Array, seed: int) -> pa.Array:
    order = list(range(len(values)))
    random.Random(seed).shuffle(order)
    return values.take(pa.array(order))


@pytest.mark.parametrize("values", _SAMPLES.values(), ids=_SAMPLES.keys())
@pytest.mark.parametrize("with_null", [False, True])
def test_every_value_is_found_where_it_stands(values: pa.Array, with_null: bool) -> None:
    for seed in range(4):
        keys = values
        if with_null:
            keys = pa.concat_arrays([values, pa.nulls(1, values.type)])
        keys = _shuffled(keys, seed)
        found = PostingKeys(keys)
        for position, key in enumerate(keys):
            if key.is_valid:
                assert found.positions(keys[position : position + 1]).tolist() == [position]
            else:
                assert found.null_position == position
        assert found.size == len(keys)
        if not with_null:
            assert found.null_position is None


@pytest.mark.parametrize("values", _SAMPLES.values(), ids=_SAMPLES.keys())
def test_a_value_that_is_no_key_is_not_found(values: pa.Array) -> None:
    keys = PostingKeys(values[1:])
    assert keys.positions(values[:1]).tolist() == [-1]
    assert PostingKeys(values[:0]).positions(values).tolist() == [-1] * len(values)
    assert keys.positions(values[:0]).tolist() == []


@pytest.mark.parametrize("values", _SAMPLES.values(), ids=_SAMPLES.keys())
def test_a_key_that_stands_twice_is_refused(values: pa.Array) -> None:
    with pytest.raises(ValueError, match="twice"):
        PostingKeys(pa.concat_arrays([values, values[1:2]]))
    with pytest.raises(ValueError, match="NULL stands twice"):
        PostingKeys(pa.concat_arrays([values, pa.nulls(2, values.type)]))


@pytest.mark.parametrize("values", _SAMPLES.values(), ids=_SAMPLES.keys())
def test_bit_patterns_tell_values_apart(values: pa.Array) -> None:
    assert len(set(bit_patterns(values))) == len(values)
    doubled = pa.concat_arrays([values, values])
    assert bit_patterns(doubled[len(values) :]) == bit_patterns(values)


@given(st.sets(st.text(max_size=3), max_size=400), st.sets(st.text(max_size=3), max_size=400))
def test_many_needles_are_found_as_few_are(keys: set[str], needles: set[str]) -> None:
    stored, asked = sorted(keys), sorted(needles)
    found = PostingKeys(pa.array(stored, pa.string()))
    positions = found.positions(pa.array(asked, pa.string())).tolist()
    assert positions == [stored.index(n) if n in keys else -1 for n in asked]
    one_by_one = [found.positions(pa.array([n], pa.string())).tolist()[0] for n in asked]
    assert positions == one_by_one


def test_more_needles_than_are_searched_one_by_one() -> None:
    keys = PostingKeys(pa.array([f"{i:04}" for i in range(0, 2000, 2)]))
    asked = [f"{i:04}" for i in reversed(range(2000))]
    expected = [-1 if int(n) % 2 else int(n) // 2 for n in asked]
    assert keys.positions(pa.array(asked)).tolist() == expected


def test_a_needle_that_is_asked_for_again_is_found_again() -> None:
    keys = PostingKeys(pa.array([f"k{n:03}" for n in range(300)]))
    asked = [n % 300 for n in range(1000)]
    assert keys.positions(pa.array([f"k{n:03}" for n in asked])).tolist() == asked


def test_zeros_and_nans_are_told_apart_by_their_bits() -> None:
    keys = PostingKeys(pa.array([0.0, 1.0]))
    assert keys.positions(pa.array([-0.0])).tolist() == [-1]
    other = np.array([0x7FF8000000000001], dtype=np.uint64).view(np.float64)
    keys = PostingKeys(pa.array([float("nan")]))
    assert keys.positions(pa.array([float("nan")])).tolist() == [0]
    assert keys.positions(pa.array(other)).tolist() == [-1]


def test_text_and_binary_of_any_width_are_one_family() -> None:
    keys = PostingKeys(pa.array(["a", "b"], pa.string()))
    for kind in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        assert keys.positions(pa.array(["b"], pa.string()).cast(kind)).tolist() == [1]
    binary = PostingKeys(pa.array([b"a"], pa.large_binary()))
    assert binary.positions(pa.array([b"a"], pa.binary_view())).tolist() == [0]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.int32(), pa.int64()),
        (pa.string(), pa.binary()),
        (pa.timestamp("us"), pa.timestamp("ms")),
        (pa.decimal128(10, 2), pa.decimal128(10, 3)),
    ],
)
def test_other_types_are_refused(left: pa.DataType, right: pa.DataType) -> None:
    assert not same_family(left, right)
    with pytest.raises(TypeError, match="labels of type"):
        PostingKeys(pa.array([], left)).positions(pa.array([], right))


def test_a_list_of_nulls_has_only_the_key_null() -> None:
    keys = PostingKeys(pa.nulls(1))
    assert keys.null_position == 0
    assert keys.positions(pa.nulls(0)).tolist() == []


def test_nested_types_are_refused() -> None:
    with pytest.raises(TypeError, match="no type of labels"):
        PostingKeys(pa.array([[1]]))
