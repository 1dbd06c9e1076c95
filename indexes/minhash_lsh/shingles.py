"""Shingles and their hashes: steps 1 to 3 of the specification's Signature Procedure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat
from operator import attrgetter
from typing import Final

import lance
import numpy as np
import numpy.typing as npt
import xxhash

SEED: Final = 42
"""Of every XXH64 in the procedure."""

_SEPARATOR: Final = b"\x1f"
_TOKENS_AT_ONCE: Final = 2**17

_text_of = attrgetter("text")


@dataclass(frozen=True, slots=True)
class ShingleHashes:
    """The hashes of the shingles of some consecutive texts.

    `hashes` are those of all shingles, uint64, text by text; `counts` says of each text how
    many it has: none where the text is NULL or has no tokens.
    """

    hashes: npt.NDArray[np.uint64]
    counts: npt.NDArray[np.int64]


def hash_shingles(
    texts: Iterable[str | None],
    tokens_of: Callable[[str], list[lance.FtsToken]],
    shingle_size: int,
    most_texts: int,
) -> Iterator[ShingleHashes]:
    """Hashes the texts in groups, in their order.

    A group has at most `most_texts` texts, and as few as it takes for a bounded number of
    tokens: a long text is a group of its own.
    """
    tokens: list[bytes] = []
    counts: list[int] = []
    for text in texts:
        before = len(tokens)
        if text is not None:
            tokens += [token.text.encode() for token in tokens_of(text)]
        counts.append(len(tokens) - before)
        if len(counts) == most_texts or len(tokens) >= _TOKENS_AT_ONCE:
            yield _hashed(tokens, counts, shingle_size)
            tokens, counts = [], []
    if counts:
        yield _hashed(tokens, counts, shingle_size)


def hash_shingles_of(
    text: str, tokens_of: Callable[[str], list[lance.FtsToken]], shingle_size: int
) -> npt.NDArray[np.uint64]:
    """The hashes of one text's shingles, shape (n,); what `hash_shingles` gives, without a group.

    That takes several times as long, where there is but one short text.
    """
    tokens = [token.text.encode() for token in tokens_of(text)]
    count = max(len(tokens) - shingle_size + 1, min(len(tokens), 1))
    shingles = (_SEPARATOR.join(tokens[at : at + shingle_size]) for at in range(count))
    hashes = map(xxhash.xxh64_intdigest, shingles, repeat(SEED))
    return np.fromiter(hashes, np.uint64, count)


def _hashed(tokens: list[bytes], counts_of_tokens: list[int], shingle_size: int) -> ShingleHashes:
    per_text = np.array(counts_of_tokens, np.int64)
    counts = np.where(per_text > 0, np.maximum(per_text - shingle_size + 1, 1), 0)
    text_begins = np.cumsum(per_text) - per_text
    shingle_begins = np.cumsum(counts) - counts
    total = int(counts.sum())
    first = np.arange(total) + np.repeat(text_begins - shingle_begins, counts)
    last = np.minimum(first + shingle_size, np.repeat(text_begins + per_text, counts)) - 1
    # A shingle is what stands from its first token to its last one in all tokens joined.
    ends = np.cumsum(np.fromiter(map(len, tokens), np.int64, len(tokens)) + 1) - 1
    begins = np.concatenate(([0], ends[:-1] + 1)) if len(ends) else ends
    joined = _SEPARATOR.join(tokens)
    shingles = map(joined.__getitem__, map(slice, begins[first].tolist(), ends[last].tolist()))
    hashes = map(xxhash.xxh64_intdigest, shingles, repeat(SEED))
    return ShingleHashes(np.fromiter(hashes, np.uint64, total), counts)
