"""Tables of near-duplicates, their MinHash index, and the same search without it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance.indices import IndexConfig
from lance.query import MinHashQuery

from datafusion_lance.indexes.cache import ReaderCache
from datafusion_lance.indexes.minhash_lsh.ranked import Ranked
from datafusion_lance.indexes.minhash_lsh.search import MinHashReader
from datafusion_lance.indexes.minhash_lsh.signature import SignatureProcedure
from datafusion_lance.indexes.search_stats import SearchStats
from datafusion_lance.indexes.snapshot import Snapshot

_WORDS = np.array([f"w{number}" for number in range(400)])


def corpus(rows: int, seed: int, words: int = 20) -> list[str | None]:
    """Texts of which a third are earlier ones with some words changed; some have no token."""
    random = np.random.default_rng(seed)
    texts: list[list[str]] = []
    for _ in range(rows):
        if texts and random.random() < 0.35:
            text = list(texts[random.integers(len(texts))])
            for _ in range(random.integers(0, 4)):
                if text:
                    text[random.integers(len(text))] = str(random.choice(_WORDS))
        else:
            text = random.choice(_WORDS, int(random.integers(0, words))).tolist()
        texts.append(text)
    return [None if random.random() < 0.03 else " ".join(text) for text in texts]


def index_text(dataset: lance.LanceDataset, **parameters: Any) -> None:
    """Let pylance index the column `text`."""
    dataset.create_scalar_index(
        "text", IndexConfig("minhashlsh", parameters=parameters), name="text_idx"
    )


def table_of(
    folder: Path | str, texts: Iterable[str | None], *, per_fragment: int, **options: Any
) -> lance.LanceDataset:
    """A table with the columns `id`, `x` and `text`, without index."""
    text = pa.array(texts, pa.string())
    count = len(text)
    rows = pa.table({"id": np.arange(count), "x": np.zeros(count, np.int64), "text": text})
    return lance.write_dataset(rows, folder, max_rows_per_file=per_fragment, **options)


@dataclass
class Searched:
    """The index of a table's version, and all its rows signed apart from it."""

    dataset: lance.LanceDataset
    cache_bytes: int = 1 << 26
    snapshot: Snapshot = field(init=False)
    reader: MinHashReader = field(init=False)
    covered: frozenset[int] = field(init=False)
    rows: Ranked = field(init=False)
    signatures: npt.NDArray[np.uint16] = field(init=False)

    def __post_init__(self) -> None:
        self.snapshot = Snapshot(self.dataset, ReaderCache(self.cache_bytes))
        (index,) = self.snapshot.indexes_on("text")
        self.reader = MinHashReader(index, self.snapshot)
        self.covered = self.reader.fragment_ids
        rows = self.dataset.to_table(columns=["text"], with_row_id=True, with_row_address=True)
        signed, self.signatures = self.procedure.sign(rows["text"])
        addresses, ids = (rows[name].to_numpy()[signed] for name in ("_rowaddr", "_rowid"))
        self.rows = Ranked(addresses, ids, np.zeros(len(self.signatures), np.uint16))
        self._only(np.isin(addresses >> np.uint64(32), np.array(sorted(self.covered), np.uint64)))

    def _only(self, which: npt.NDArray[np.bool_]) -> None:
        self.rows, self.signatures = self.rows[which], self.signatures[which]

    @property
    def procedure(self) -> SignatureProcedure:
        return SignatureProcedure.of(self.reader.parameters)

    def sign(self, text: str) -> npt.NDArray[np.uint16] | None:
        return self.procedure.sign_text(text)

    def expected_all(self, signature: npt.NDArray[np.uint16]) -> Ranked:
        """Every row that has a signature, by a comparison of all."""
        different = (self.signatures != signature).sum(axis=1).astype(np.uint16)
        return Ranked(self.rows.addresses, self.rows.row_ids, different).ordered()

    def expected_candidates(self, signature: npt.NDArray[np.uint16]) -> Ranked:
        """The rows with a band whose values are all equal."""
        equal = self.signatures == signature
        parameters = self.reader.parameters
        shape = (len(equal), parameters.num_bands, parameters.rows_per_band)
        bands = equal.reshape(shape).all(axis=2)
        different = (~equal).sum(axis=1).astype(np.uint16)
        every = Ranked(self.rows.addresses, self.rows.row_ids, different)
        return every[bands.any(axis=1)].ordered()

    def pylance(self, text: str, limit: int = 1 << 20) -> list[tuple[int, float]]:
        """Row ids and distances as pylance's own search of the index has them."""
        found = self.dataset.scanner(
            nearest=MinHashQuery(text, "text"),
            limit=limit,
            with_row_id=True,
            columns=["_distance"],
            fast_search=True,
        ).to_table()
        ids, distances = found["_rowid"].to_pylist(), found["_distance"].to_pylist()
        return list(zip(ids, distances, strict=True))

    def distances(self, ranked: Ranked) -> list[tuple[int, float]]:
        """Row ids and distances, in pylance's precision."""
        hashes = self.reader.parameters.num_hashes
        similarity = (hashes - ranked.different).astype(np.float32) / np.float32(hashes)
        distances = np.float32(1) - similarity
        return list(zip(ranked.row_ids.tolist(), distances.tolist(), strict=True))

    def candidates(self, text: str) -> Ranked:
        signature = self.sign(text)
        assert signature is not None
        return self.reader.candidates(signature, self.covered, SearchStats())


def listed(ranked: Ranked) -> list[tuple[int, int, int]]:
    """All that is known of the rows, in their order."""
    columns = (ranked.addresses, ranked.row_ids, ranked.different)
    return list(zip(*(column.tolist() for column in columns), strict=True))
