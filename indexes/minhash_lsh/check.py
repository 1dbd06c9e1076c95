"""Proves a MinHash LSH index against its table, row by row."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..check_report import MOST_DIFFERENCES, Difference, IndexCheck
from ..errors import CorruptIndexError, UnusableIndexError
from ..manifest import LanceIndex
from ..progress import Progress
from ..row_digests import Hashes, RowDigests, mixed
from ..snapshot import Snapshot
from .details import parameters_of
from .parameters import MinHashParameters
from .segment_proof import Addresses, SegmentProof, Signatures
from .signature import SignatureProcedure

_TEXTS_AT_ONCE: Final = 4096
_TEXT_BYTES: Final = 16 << 20
_WORD: Final = 4


def check_minhash_lsh(
    index: LanceIndex, snapshot: Snapshot, *, progress: bool = True
) -> IndexCheck:
    """Compares the signature and the buckets of every live row that the index answers for.

    Signatures are made again from the texts, by this package's own procedure, and band keys from
    the stored signatures. All of both files is read: their sizes, schemas, metadata and details
    must be as the table says and the specification asks, row ids of rows that there can be, and
    the bands in order and as the page table says. Never raises for what is wrong with the index:
    that is what the report tells.

    It takes 16 bytes of memory for each row of the table, and 8 for each document, which from
    64 MiB on are in a temporary file.
    """
    try:
        parameters = parameters_of(index)
        covered = snapshot.covered_by_segment(index)
        texts = _Texts(_column(index, snapshot), snapshot, parameters)
    except (UnusableIndexError, CorruptIndexError) as error:
        return IndexCheck(index.name, index.kind, 0, 0, 0, (Difference(str(error)),))
    differences: list[Difference] = []
    proofs: list[SegmentProof] = []
    for segment, fragments in covered.items():
        try:
            proofs.append(SegmentProof(segment, snapshot, fragments, parameters))
        except (UnusableIndexError, CorruptIndexError) as error:
            differences.append(Difference(str(error)))
    physical = {f: snapshot.physical_rows(f) for proof in proofs for f in proof.fragments}
    held, wanted = RowDigests(physical), RowDigests(physical)
    read: list[SegmentProof] = []
    entries = 0
    with Progress(f"checking {index.name}", None, "rows", progress) as bar:
        bar.expect(sum(proof.steps for proof in proofs) + len(snapshot.live_rows(physical)))
        for proof in proofs:
            try:
                for documents, addresses, signatures in proof.rows():
                    held.add(addresses, _digests(signatures))
                    bar.update(documents)
                for count in proof.entries():
                    entries += count
                    bar.update(count)
                differences += proof.told_astray(MOST_DIFFERENCES)
            except CorruptIndexError as error:
                differences.append(Difference(str(error)))
            else:
                read.append(proof)
        fragments = frozenset[int]().union(*(proof.fragments for proof in read))
        for scanned, addresses, signatures in texts.signed(fragments):
            wanted.add(addresses, _digests(signatures))
            bar.update(scanned)
    live = snapshot.live_rows(fragments).addresses()
    differing = held.differing(wanted, live)
    differences += _explained(differing[:MOST_DIFFERENCES], read, texts)
    return IndexCheck(
        index=index.name,
        kind=index.kind,
        rows=len(live),
        entries=entries,
        different_rows=len(differing) + sum(len(proof.astray) for proof in read),
        differences=tuple(differences[:MOST_DIFFERENCES]),
    )


def _column(index: LanceIndex, snapshot: Snapshot) -> str:
    """The name of the indexed column, which has to be one of texts."""
    (field_id,) = index.field_ids
    name, field = snapshot.column_name(field_id), snapshot.field(field_id)
    if name is None or field is None:
        raise UnusableIndexError(index.name, "its column is gone")
    if not (pa.types.is_string(field.type) or pa.types.is_large_string(field.type)):
        raise UnusableIndexError(index.name, f"its column {name} is of {field.type}, not of texts")
    return name


class _Texts:
    """The texts of the table, signed."""

    def __init__(self, column: str, snapshot: Snapshot, parameters: MinHashParameters) -> None:
        self._column = column
        self._dataset = snapshot.dataset
        self._procedure = SignatureProcedure.of(parameters)

    def signed(self, fragments: Collection[int]) -> Iterator[tuple[int, Addresses, Signatures]]:
        """Live rows in blocks: their number, and of those with a signature address and it."""
        read = [f for f in self._dataset.get_fragments() if f.fragment_id in fragments]
        if not read:
            return
        scanner = self._dataset.scanner(
            columns=[self._column],
            fragments=read,
            with_row_address=True,
            batch_size=_TEXTS_AT_ONCE,
            batch_size_bytes=_TEXT_BYTES,
            batch_readahead=1,
            fragment_readahead=1,
        )
        for batch in scanner.to_batches():
            signed, signatures = self._procedure.sign_one_by_one(batch.column(0))
            yield len(batch), batch.column("_rowaddr").to_numpy()[signed], signatures


def _digests(signatures: Signatures) -> Hashes:
    """64 bits for each signature."""
    count, hashes = signatures.shape
    padded = np.zeros((count, -(-hashes // _WORD) * _WORD), dtype="<u2")
    padded[:, :hashes] = signatures
    out = np.full(count, hashes, dtype=np.uint64)
    for word in padded.view("<u8").T:
        out = mixed(out ^ word)
    return out


def _explained(
    rows: Addresses, proofs: Sequence[SegmentProof], texts: _Texts
) -> Iterator[Difference]:
    """How the stored signatures of some rows differ from those that they should have."""
    have: dict[int, list[Signatures]] = {row: [] for row in rows.tolist()}
    should: dict[int, Signatures] = {}
    if not have:
        return
    for proof in proofs:
        for row, signature in proof.signatures_of(rows):
            have[row].append(signature)
    for _, addresses, signatures in texts.signed({row >> 32 for row in have}):
        for at in np.flatnonzero(np.isin(addresses, rows)).tolist():
            should[int(addresses[at])] = signatures[at]
    for row, stored in have.items():
        yield Difference(_told(stored, should.get(row)), row)


def _told(stored: Sequence[Signatures], right: npt.NDArray[np.uint16] | None) -> str:
    if not stored:
        return "the index lacks its signature"
    if right is None:
        return "the index has a signature of it, and its text has none"
    wrong = [int((signature != right).sum()) for signature in stored]
    told = f"its signature in the index is wrong in {max(wrong)} of {len(right)} values"
    if len(stored) == 1:
        return told
    return f"the index has {len(stored)} signatures of it" + (f"; {told}" if any(wrong) else "")
