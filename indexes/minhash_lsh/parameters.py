"""What a signature is made with, and how likely it makes two texts candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, overload

import numpy as np
import numpy.typing as npt

from ..errors import InvalidArgumentError
from .tokenizer import DEFAULT_TOKENIZER, Tokenizer

NUM_HASHES: Final = 128
NUM_BANDS: Final = 16
SHINGLE_SIZE: Final = 3

MOST_HASHES: Final = 4096
MOST_BANDS: Final = 256
LARGEST_SHINGLE: Final = 2**32 - 1


@dataclass(frozen=True, slots=True)
class MinHashParameters:
    """The parameters of the specification's section Index Details; the defaults are Lance's.

    Raises InvalidArgumentError, naming the parameter and its range.
    """

    num_hashes: int = NUM_HASHES
    num_bands: int = NUM_BANDS
    shingle_size: int = SHINGLE_SIZE
    tokenizer: Tokenizer = DEFAULT_TOKENIZER

    def __post_init__(self) -> None:
        _check_range("num_hashes", self.num_hashes, MOST_HASHES)
        _check_range("num_bands", self.num_bands, MOST_BANDS)
        _check_range("shingle_size", self.shingle_size, LARGEST_SHINGLE)
        if self.num_hashes % self.num_bands:
            raise InvalidArgumentError(
                "num_hashes", self.num_hashes, f"a multiple of num_bands, which is {self.num_bands}"
            )
        if not isinstance(self.tokenizer, Tokenizer):
            raise InvalidArgumentError("tokenizer", self.tokenizer, "a Tokenizer")

    @property
    def rows_per_band(self) -> int:
        """The number of signature values in a band."""
        return self.num_hashes // self.num_bands

    def signs_like(self, other: MinHashParameters) -> bool:
        """Whether both give the same signatures.

        Bands do not matter to them, nor to a distance.
        """
        return (
            self.num_hashes == other.num_hashes
            and self.shingle_size == other.shingle_size
            and self.tokenizer.shapes == other.tokenizer.shapes
        )


@overload
def candidate_probability(
    similarity: float, num_hashes: int = ..., num_bands: int = ...
) -> float: ...
@overload
def candidate_probability(
    similarity: npt.ArrayLike, num_hashes: int = ..., num_bands: int = ...
) -> float | npt.NDArray[np.float64]: ...
def candidate_probability(
    similarity: npt.ArrayLike, num_hashes: int = NUM_HASHES, num_bands: int = NUM_BANDS
) -> float | npt.NDArray[np.float64]:
    """How likely two texts of a true Jaccard similarity are candidates for each other.

    That is 1 - (1 - J^r)^b with b bands of r values each, the specification's reference points.
    `similarity` is a number from 0 to 1, or an array of them. Raises InvalidArgumentError for
    another one, and for parameters out of their ranges.

    Examples:
        >>> [round(candidate_probability(j), 3) for j in (0.5, 0.7, 0.8, 0.9)]
        [0.061, 0.613, 0.947, 1.0]
    """
    parameters = MinHashParameters(num_hashes, num_bands)
    jaccard = np.asarray(similarity, np.float64)
    if not bool(np.all((jaccard >= 0) & (jaccard <= 1))):
        raise InvalidArgumentError("similarity", similarity, "a number from 0 to 1")
    # As it would be written, but exact where the probability is tiny.
    with np.errstate(divide="ignore"):  # of the logarithm of 0, for equal texts
        miss = parameters.num_bands * np.log1p(-(jaccard**parameters.rows_per_band))
    found = -np.expm1(miss)
    return float(found) if found.ndim == 0 else found


def _check_range(argument: str, value: object, largest: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= largest:
        raise InvalidArgumentError(argument, value, f"a number from 1 to {largest}")
