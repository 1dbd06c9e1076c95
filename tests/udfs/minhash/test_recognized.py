"""Calls in plans, told apart from those of functions that only have the name."""

from __future__ import annotations

import pyarrow as pa
import pytest
from datafusion import SessionContext, col, lit, udf

from datafusion_lance.indexes.minhash_lsh.parameters import MinHashParameters
from datafusion_lance.udfs import minhash_distance, minhash_signature, minhash_similarity
from datafusion_lance.udfs.minhash.recognized import distance_call, is_registered
from datafusion_lance.udfs.minhash.registration import register_minhash


def zeros(texts: pa.Array, *_: pa.Array) -> pa.Array:
    return pa.array([0.0] * len(texts))


@pytest.fixture
def context() -> SessionContext:
    context = SessionContext()
    register_minhash(context)
    context.from_pydict({"text": ["a"]}, "t")
    return context


def plan(context: SessionContext, expression: str) -> str:
    return repr(context.sql(f"SELECT {expression} FROM t").optimized_logical_plan())


def test_a_call_with_the_default_parameters(context: SessionContext) -> None:
    found = distance_call("minhash_distance", plan(context, "minhash_distance(text, 'q')"))
    assert found == MinHashParameters()


def test_a_call_with_parameters_of_its_own(context: SessionContext) -> None:
    call = minhash_distance(col("text"), "q", num_hashes=64, num_bands=8, shingle_size=2)
    dataframe = context.table("t").filter(call < lit(0.5))

    shown = repr(dataframe.optimized_logical_plan())

    assert distance_call("minhash_distance__64_8_2", shown) == MinHashParameters(64, 8, 2)
    assert distance_call("minhash_distance", shown) is None
    assert distance_call("minhash_distance__64_8", shown) is None


@pytest.mark.parametrize(
    "call", [minhash_similarity(col("text"), "q"), minhash_signature(col("text"))]
)
def test_other_functions_are_no_distance(context: SessionContext, call: object) -> None:
    shown = repr(context.table("t").select(call).logical_plan())  # pyright: ignore[reportArgumentType]
    for name in ("minhash_similarity", "minhash_signature", "minhash_distance", "lower"):
        assert distance_call(name, shown) is None


def test_a_user_s_function_of_the_name_is_none(context: SessionContext) -> None:
    for name in ("minhash_distance", "minhash_distance__64"):
        context.register_udf(udf(zeros, [pa.string()] * 2, pa.float64(), "immutable", name))
        assert distance_call(name, plan(context, f"{name}(text, 'q')")) is None


def test_a_literal_that_looks_like_a_call_makes_no_function_ours(context: SessionContext) -> None:
    ours = plan(context, "minhash_distance(text, 'q')")
    start = ours.index("PythonFunctionScalarUDF")
    claimed = ours[start : ours.index(")", start) + 1].replace("'", "''")
    assert "Py(0x" in claimed
    theirs = udf(zeros, [pa.string()] * 2, pa.float64(), "immutable", "minhash_distance")
    context.register_udf(theirs)

    shown = plan(context, f"minhash_distance(text, '{claimed}')")

    assert claimed in shown
    assert distance_call("minhash_distance", shown) is None


@pytest.mark.parametrize(
    "name",
    ["minhash_distance__100", "minhash_distance__0", "minhash_distance__1_1_1_1", "", "x__1"],
)
def test_names_that_no_function_has(name: str) -> None:
    assert distance_call(name, "") is None


def test_whose_function_is_registered(context: SessionContext) -> None:
    names = ("minhash_distance", "minhash_similarity", "minhash_signature")
    assert all(is_registered(context, name) for name in names)
    assert not any(is_registered(SessionContext(), name) for name in names)

    context.register_udf(udf(zeros, [pa.string()], pa.float64(), "immutable", "minhash_distance"))
    assert not is_registered(context, "minhash_distance")
    assert is_registered(context, "minhash_similarity")
