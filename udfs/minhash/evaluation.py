"""What the functions give for arrays of texts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...indexes.minhash_lsh.signature import SignatureProcedure

_VALUES_AT_ONCE: Final = 2**22
"""Of the signatures of one side: 8 MiB."""


def distances(procedure: SignatureProcedure, texts: pa.Array, queries: pa.Array) -> pa.Array:
    """The share of positions in which the signatures differ, float64; NULL where one is missing."""
    return _compared(procedure, texts, queries, similar=False)


def similarities(procedure: SignatureProcedure, texts: pa.Array, queries: pa.Array) -> pa.Array:
    """The share of positions in which the signatures agree, float64; NULL where one is missing."""
    return _compared(procedure, texts, queries, similar=True)


def signatures(procedure: SignatureProcedure, texts: pa.Array) -> pa.Array:
    """The signatures as FixedSizeList<uint16>; NULL where a text has none."""
    kind = signature_type(procedure.parameters.num_hashes)
    parts = [
        _signature_array(_Signed.of(procedure, part), kind) for part in _parts(procedure, texts)
    ]
    return pa.concat_arrays(parts) if parts else pa.array([], kind)


def signature_type(num_hashes: int) -> pa.DataType:
    """The type of a column of signatures."""
    return pa.list_(pa.field("item", pa.uint16()), num_hashes)


@dataclass(frozen=True, slots=True)
class _Signed:
    """The signatures of n texts, each different text signed once.

    `positions` says for each text which of the `signatures` is its own, -1 where it has none.
    """

    positions: npt.NDArray[np.int64]
    signatures: npt.NDArray[np.uint16]

    @classmethod
    def of(cls, procedure: SignatureProcedure, texts: pa.Array) -> _Signed:
        encoded = texts.dictionary_encode()
        has_signature, signatures = procedure.sign(encoded.dictionary)
        # The last one is for NULL, whose index is -1.
        of_different = np.full(len(has_signature) + 1, -1, np.int64)
        of_different[:-1][has_signature] = np.arange(len(signatures))
        indices = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return cls(of_different[indices], signatures)

    def rows(self, some: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint16]:
        """The signatures of some texts; one alone where all of them have the same."""
        if len(self.signatures) == 1:
            return self.signatures
        return self.signatures[self.positions[some]]


def _compared(
    procedure: SignatureProcedure, texts: pa.Array, queries: pa.Array, *, similar: bool
) -> pa.Array:
    num_hashes = procedure.parameters.num_hashes
    parts: list[pa.Array] = []
    for left, right in zip(_parts(procedure, texts), _parts(procedure, queries), strict=True):
        one, other = _Signed.of(procedure, left), _Signed.of(procedure, right)
        known = (one.positions >= 0) & (other.positions >= 0)
        differ = one.rows(known) != other.rows(known)
        shares = np.zeros(len(known), np.float64)
        counts = np.count_nonzero(differ, axis=1)
        # Both are one division of two whole numbers, so that bounds mean what they say.
        shares[known] = (num_hashes - counts if similar else counts) / num_hashes
        parts.append(pa.array(shares, mask=~known))
    return pa.concat_arrays(parts) if parts else pa.array([], pa.float64())


def _parts(procedure: SignatureProcedure, texts: pa.Array) -> Iterator[pa.Array]:
    size = max(1, _VALUES_AT_ONCE // procedure.parameters.num_hashes)
    for begin in range(0, len(texts), size):
        yield texts.slice(begin, size)


def _signature_array(signed: _Signed, kind: pa.DataType) -> pa.Array:
    known = signed.positions >= 0
    values = np.zeros((len(known), kind.list_size), np.uint16)
    values[known] = signed.rows(known)
    return pa.FixedSizeListArray.from_arrays(
        pa.array(values.ravel()), type=kind, mask=pa.array(~known)
    )
