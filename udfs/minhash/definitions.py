"""The functions by their names in SQL, with and without parameters of their own."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import pyarrow as pa
from datafusion import udf
from datafusion.user_defined import ScalarUDF

from ...indexes.minhash_lsh.parameters import MinHashParameters
from ...indexes.minhash_lsh.signature import SignatureProcedure
from .evaluation import distances, signature_type, signatures, similarities

PARAMETERS: Final = ("num_hashes", "num_bands", "shingle_size")
"""What may be given after the texts, in this order."""

_KEPT_FUNCTIONS: Final = 1024
_NAME: Final = re.compile(r"(?P<base>[a-z_]+?)(?:__(?P<given>\d+(?:_\d+){0,2}))?")


@dataclass(frozen=True, slots=True)
class Definition:
    """A function of one text or two."""

    texts: int
    evaluate: Callable[..., pa.Array]
    returns: Callable[[MinHashParameters], pa.DataType]


DISTANCE: Final = "minhash_distance"
SIMILARITY: Final = "minhash_similarity"
SIGNATURE: Final = "minhash_signature"

DEFINITIONS: Final[Mapping[str, Definition]] = {
    DISTANCE: Definition(2, distances, lambda _: pa.float64()),
    SIMILARITY: Definition(2, similarities, lambda _: pa.float64()),
    SIGNATURE: Definition(1, signatures, lambda given: signature_type(given.num_hashes)),
}


class MinHashFunction:
    """A function as DataFusion calls it, with the parameters that are given: the first so many.

    A Python function has one exact signature there, and is handed the values of parameters only
    when it runs. So the parameters are in its `name`, too: `minhash_distance__64_8` takes the
    texts and two numbers, 64 and 8.

    Raises InvalidArgumentError for a parameter out of its range.
    """

    def __init__(self, base: str, given: tuple[int, ...] = ()) -> None:
        self.base = base
        self.name = base if not given else f"{base}__{'_'.join(map(str, given))}"
        self.parameters = MinHashParameters(**dict(zip(PARAMETERS, given, strict=False)))
        definition = DEFINITIONS[base]
        self._definition = definition
        self.udf: ScalarUDF = udf(
            self,
            [pa.string()] * definition.texts + [pa.int64()] * len(given),
            definition.returns(self.parameters),
            "immutable",
            self.name,
        )

    def __call__(self, *arguments: pa.Array) -> pa.Array:
        """The function's value for each row; threads may call it at once."""
        procedure = SignatureProcedure.of(self.parameters)
        return self._definition.evaluate(procedure, *arguments[: self._definition.texts])


def function_of(base: str, given: tuple[int, ...] = ()) -> MinHashFunction:
    """The function of that name and with the given parameters; the same ones share it."""
    return _with_parameters(base, given) if given else _WITHOUT_PARAMETERS[base]


def function_named(name: str) -> MinHashFunction | None:
    """The function that has a `MinHashFunction.name`."""
    match = _NAME.fullmatch(name)
    if match is None or match["base"] not in DEFINITIONS:
        return None
    given = tuple(map(int, match["given"].split("_"))) if match["given"] else ()
    return function_of(match["base"], given)


_WITHOUT_PARAMETERS: Final = {base: MinHashFunction(base) for base in DEFINITIONS}


@lru_cache(maxsize=_KEPT_FUNCTIONS)
def _with_parameters(base: str, given: tuple[int, ...]) -> MinHashFunction:
    return MinHashFunction(base, given)
