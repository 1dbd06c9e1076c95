"""The functions for DataFrames."""

from __future__ import annotations

from datafusion import lit
from datafusion.expr import Expr

from ...indexes.errors import InvalidArgumentError
from ...indexes.minhash_lsh.parameters import NUM_BANDS, NUM_HASHES, SHINGLE_SIZE
from .definitions import DISTANCE, SIGNATURE, SIMILARITY, function_of


def minhash_distance(
    text: Expr,
    query: Expr | str | None,
    *,
    num_hashes: int = NUM_HASHES,
    num_bands: int = NUM_BANDS,
    shingle_size: int = SHINGLE_SIZE,
) -> Expr:
    """How far two texts are apart, as SQL's `minhash_distance`: float64 from 0.0 to 1.0.

    It is the share of positions in which their MinHash signatures differ, an estimate of the
    Jaccard distance of their sets of shingles (section Signature Generation); the texts are
    tokenized by Lance's default tokenizer. NULL where a text is NULL or has no token.

    An index with the same `num_hashes` and `shingle_size` answers it. `num_bands` changes no
    distance. Raises InvalidArgumentError for a parameter out of its range, as
    `MinHashParameters` does.

    >>> from datafusion import SessionContext, col
    >>> rows = SessionContext().from_pydict({"text": ["one two three", "four", " ", None]})
    >>> rows.select(minhash_distance(col("text"), "One, two, three!").alias("far")).to_pydict()
    {'far': [0.0, 1.0, None, None]}
    """
    return _call(DISTANCE, (text, query), (num_hashes, num_bands, shingle_size))


def minhash_similarity(
    text: Expr,
    query: Expr | str | None,
    *,
    num_hashes: int = NUM_HASHES,
    num_bands: int = NUM_BANDS,
    shingle_size: int = SHINGLE_SIZE,
) -> Expr:
    """How near two texts are to each other, as SQL's `minhash_similarity`.

    The share of positions in which their signatures are equal; the rest is as in
    `minhash_distance`.
    """
    return _call(SIMILARITY, (text, query), (num_hashes, num_bands, shingle_size))


def minhash_signature(
    text: Expr,
    *,
    num_hashes: int = NUM_HASHES,
    num_bands: int = NUM_BANDS,
    shingle_size: int = SHINGLE_SIZE,
) -> Expr:
    """The MinHash signature of a text, as SQL's `minhash_signature`.

    A FixedSizeList of `num_hashes` values, uint16; the rest is as in `minhash_distance`.
    """
    return _call(SIGNATURE, (text,), (num_hashes, num_bands, shingle_size))


def _call(base: str, texts: tuple[Expr | str | None, ...], given: tuple[int, ...]) -> Expr:
    first, *others = texts
    if not isinstance(first, Expr):
        raise InvalidArgumentError("text", first, 'an expression, such as col("text")')
    for query in others:
        if not isinstance(query, Expr | str | None):
            raise InvalidArgumentError("query", query, "a text, or an expression of one")
    numbers = () if given == (NUM_HASHES, NUM_BANDS, SHINGLE_SIZE) else given
    operands = [other if isinstance(other, Expr) else lit(other) for other in others]
    return function_of(base, numbers).udf(first, *operands, *map(lit, numbers))
