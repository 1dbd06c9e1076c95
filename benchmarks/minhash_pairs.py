"""All near-duplicate pairs of a table: datafusion-lance beside datasketch and rensa.

    python benchmarks/minhash_pairs.py [--rows N] [--runs N] [--tables FOLDER] [--json FILE]

All sign with 128 hashes over the same shingles, look for candidates in 16 bands, and keep those
whose signatures are at most 0.3 apart. `from signatures` begins with what each has signed: an
index, or a list of its objects. `from texts` signs as well; of an index that is building it, from
the table to the files. The recall is the part of the pairs with a true Jaccard similarity of 0.8
that are found: the more distant ones that are found, too, are not counted.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import datasketch
import lance
import numpy as np

from datafusion_lance.indexes.cache import ReaderCache
from datafusion_lance.indexes.minhash_lsh.table_duplicates import clusters, pairs
from datafusion_lance.indexes.snapshot import Snapshot
from measure import Timing, command_line, print_ratios, print_versions, write_report
from memory import most_memory
from tables import FOLDER
from texts import build_index, near_duplicates, shingles, text_table

OURS, CLUSTERS = "datafusion-lance", "datafusion-lance, clusters"
DATASKETCH, RENSA = "datasketch", "rensa"
# It says what it has in a compiled module only.
rensa: Any = importlib.import_module("rensa")

PACKAGES = ("pylance", "datasketch", "rensa")
HASHES, BANDS = 128, 16
DISTANCE = 0.3
SIMILARITY = 0.8

Pairs = np.ndarray


def opened(path: Path) -> tuple[Any, Snapshot]:
    snapshot = Snapshot(lance.dataset(path), ReaderCache(1 << 28))
    (index,) = snapshot.indexes_on("text")
    return index, snapshot


def our_pairs(path: Path) -> Pairs:
    batches = list(pairs(*opened(path), DISTANCE).batches)
    columns = [np.concatenate([batch.column(i).to_numpy() for batch in batches]) for i in (0, 1)]
    return np.stack(columns, axis=1).astype(np.int64)


def our_clusters(path: Path) -> int:
    return sum(len(batch) for batch in clusters(*opened(path), DISTANCE).batches)


def read_shingles(path: Path) -> list[set[str]]:
    return [shingles(text) for text in lance.dataset(path).to_table()["text"].to_pylist()]


def datasketch_signed(path: Path) -> list[datasketch.MinHash]:
    encoded = ([s.encode() for s in text] for text in read_shingles(path))
    return datasketch.MinHash.bulk(encoded, num_perm=HASHES)


def datasketch_pairs(signed: list[datasketch.MinHash]) -> Pairs:
    index = datasketch.MinHashLSH(num_perm=HASHES, params=(BANDS, HASHES // BANDS))
    found = []
    for number, minhash in enumerate(signed):
        found += [
            (other, number)
            for other in cast("list[int]", index.query(minhash))
            if minhash.jaccard(signed[other]) >= 1 - DISTANCE
        ]
        index.insert(number, minhash, check_duplication=False)
    return np.array(found, dtype=np.int64).reshape(-1, 2)


def rensa_signed(path: Path) -> list[Any]:
    return rensa.RMinHash.from_token_sets(read_shingles(path), HASHES, 42)


def rensa_pairs(signed: list[Any]) -> Pairs:
    index = rensa.RMinHashLSH(1 - DISTANCE, HASHES, BANDS)
    index.insert_many(signed)
    found = [
        (number, other)
        for number, others in enumerate(index.query_all(signed))
        for other in others
        if number < other and signed[number].jaccard(signed[other]) >= 1 - DISTANCE
    ]
    return np.array(found, dtype=np.int64).reshape(-1, 2)


def from_signatures(path: Path, name: str) -> Callable[[], Any]:
    """What gives the pairs (of clusters, the number of rows) of what is signed already."""
    if name == OURS:
        return lambda: our_pairs(path)
    if name == CLUSTERS:
        return lambda: our_clusters(path)
    if name == DATASKETCH:
        sketched = datasketch_signed(path)
        return lambda: datasketch_pairs(sketched)
    signed = rensa_signed(path)
    return lambda: rensa_pairs(signed)


def from_texts(path: Path, name: str) -> Callable[[], Any]:
    """What reads the texts, signs them, and gives the pairs."""

    def ours() -> Pairs:
        build_index(lance.dataset(path))
        return our_pairs(path)

    return {
        OURS: ours,
        DATASKETCH: lambda: datasketch_pairs(datasketch_signed(path)),
        RENSA: lambda: rensa_pairs(rensa_signed(path)),
    }[name]


def recall(found: Pairs, expected: Pairs, rows: int) -> float:
    """The part of the expected pairs that are found."""
    codes = [pair[:, 0] * rows + pair[:, 1] for pair in (found, expected)]
    return float(np.isin(codes[1], codes[0]).mean())


def run(path: Path, rows: int, runs: int) -> dict[str, dict[str, Timing]]:
    """Timings by case and contender; prints memory, pairs and recall."""
    expected = near_duplicates(rows, SIMILARITY)
    print(f"{rows:,} texts, {len(expected):,} pairs with a similarity of {SIMILARITY}, {path}")
    timings = {}
    for title, prepare, names in (
        ("pairs from signatures", from_signatures, (OURS, CLUSTERS, DATASKETCH, RENSA)),
        ("pairs from texts", from_texts, (OURS, DATASKETCH, RENSA)),
    ):
        contenders = {name: prepare(path, name) for name in names}
        results = {name: contender() for name, contender in contenders.items()}
        times: dict[str, list[float]] = {name: [] for name in names}
        for _ in range(runs):
            for name, contender in contenders.items():
                began = time.perf_counter()
                contender()
                times[name].append((time.perf_counter() - began) * 1000)
        timings[title] = {name: Timing(tuple(measured)) for name, measured in times.items()}
        print_ratios(title, timings[title], OURS)
        for name in names:
            line = f"  {name}: {most_memory(prepare, path, name) / 2**20:,.0f} MiB at most"
            if name != CLUSTERS:
                found = results[name]
                line += f", {len(found):,} pairs, recall {recall(found, expected, rows):.4f}"
            print(line)
    return timings


def main() -> None:
    arguments = command_line("near-duplicate pairs of a table of texts", runs=3)
    arguments.add_argument("--rows", type=int, default=200_000)
    arguments.add_argument("--tables", type=Path, default=FOLDER, help="where tables are kept")
    given = arguments.parse_args()
    print_versions(PACKAGES)
    timings = run(text_table(given.rows, given.tables), given.rows, given.runs)
    write_report(given.json, timings, PACKAGES)


if __name__ == "__main__":
    main()
