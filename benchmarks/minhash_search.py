"""The near duplicates of a text: datafusion-lance beside pylance's own search in the same index.

    python benchmarks/minhash_search.py [--rows N] [--runs N] [--tables FOLDER] [--json FILE]

Caches are warm, and every run looks for another text, the same ones for each contender: copies of
texts of the table with two words changed, or new texts, which are near nothing. Before anything is
timed all have to give the same distances. The exact statements have no peer but the same
statement without index, which signs all texts, and so runs a few times only: pylance ranks what
shares a band with the text, and nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import cycle
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
from lance.query import MinHashQuery

from datafusion_lance.engine import LanceSessionContext
from measure import Timing, command_line, interleaved, print_ratios, print_versions, write_report
from tables import FOLDER
from texts import VOCABULARY, WORDS_A_TEXT, text_table, texts

OURS, THEIRS, WITHOUT = "datafusion-lance", "pylance", "DataFusion, no index"
PACKAGES = ("datafusion", "pylance")
LIMIT = 10
QUERIES = 40
CHANGED = 2
SLOW_RUNS = 3
FILTERS = {"a quarter of the rows": "id % 4 = 0", "a thousandth": "id % 1000 = 0"}
NEAREST = f"""
    SELECT id, minhash_distance(text, '{{}}') AS _distance FROM texts
    ORDER BY _distance LIMIT {LIMIT}"""
WITHIN = """
    SELECT id, minhash_distance(text, '{}') AS _distance FROM texts
    WHERE minhash_distance(text, '{}') <= 0.1"""

Search = Callable[[str], pa.Table]


def ours(session: LanceSessionContext, condition: str | None) -> Search:
    """The nearest texts, by SQL."""
    more = "" if condition is None else f", '{condition}'"
    return statement(
        session, f"SELECT id, _distance FROM minhash_search('texts', 'text', '{{}}', {LIMIT}{more})"
    )


def theirs(dataset: lance.LanceDataset, condition: str | None) -> Search:
    """The nearest texts, by pylance."""
    return lambda text: dataset.to_table(
        columns=["id", "_distance"],
        nearest=MinHashQuery(text, "text"),
        filter=condition,
        prefilter=condition is not None,
        limit=LIMIT,
    )


def statement(session: LanceSessionContext, query: str) -> Search:
    """A query with `{}` in the places of the text."""
    places = query.count("{}")
    return lambda text: session.sql(query.format(*[text] * places)).to_arrow_table()


def over(path: Path, *, use_indexes: bool) -> LanceSessionContext:
    session = LanceSessionContext(use_indexes=use_indexes)
    session.register_lance("texts", path)
    return session


def queries(path: Path, rows: int) -> dict[str, list[str]]:
    """Copies of texts of the table with their last words changed, and new texts."""
    rng = np.random.default_rng(7)
    chosen = np.sort(rng.choice(rows, min(QUERIES, rows), replace=False)).tolist()
    stored = lance.dataset(path).take(chosen, columns=["text"])["text"].to_pylist()
    copies = [" ".join([*text.split()[:-CHANGED], *["other"] * CHANGED]) for text in stored]
    return {
        "a copy": copies,
        "a new text": texts(rng.integers(0, VOCABULARY, (QUERIES, WORDS_A_TEXT))),
    }


def in_turn(search: Search, asked: list[str]) -> Callable[[], pa.Table]:
    """A contender that looks for the next text each time."""
    rest = cycle(asked)
    return lambda: search(next(rest))


def found(result: pa.Table) -> tuple[list[float], set[int]]:
    """The distances, and the rows but for the farthest, which are some of those at its distance."""
    distances = result["_distance"].to_pylist()
    rows = zip(distances, result["id"].to_pylist(), strict=True)
    return sorted(distances), {row for distance, row in rows if distance < max(distances)}


def timed(search: Search, asked: list[str]) -> Timing:
    """One run for each text."""
    runs: list[float] = []
    for text in asked:
        began = time.perf_counter()
        search(text)
        runs.append((time.perf_counter() - began) * 1000)
    return Timing(tuple(runs))


def check(title: str, contenders: Mapping[str, Search], asked: list[str]) -> None:
    """Raises unless all find the same."""
    for text in asked:
        results = {name: found(search(text)) for name, search in contenders.items()}
        if any(result != results[OURS] for result in results.values()):
            raise AssertionError(f"{title}: {text!r}: {results}")


def approximate(path: Path, asked: dict[str, list[str]], runs: int) -> dict[str, dict[str, Timing]]:
    """Timings of the table function beside pylance."""
    dataset, session = lance.dataset(path), over(path, use_indexes=True)
    timings = {}
    for kind, some in asked.items():
        for words, condition in {"all rows": None, **FILTERS}.items():
            title = f"top {LIMIT} near {kind}, of {words}"
            contenders = {OURS: ours(session, condition), THEIRS: theirs(dataset, condition)}
            check(title, contenders, some)
            timings[title] = interleaved(
                {name: in_turn(search, some) for name, search in contenders.items()}, runs
            )
            print_ratios(title, timings[title], OURS)
    return timings


def exact(path: Path, asked: dict[str, list[str]], runs: int) -> dict[str, dict[str, Timing]]:
    """Timings of the exact statements with and without the index."""
    session, plain = (over(path, use_indexes=use) for use in (True, False))
    timings = {}
    for kind, some in asked.items():
        for words, query in (("the nearest", NEAREST), ("all within 0.1", WITHIN)):
            title = f"exact: {words} of {kind}"
            with_index, without = statement(session, query), statement(plain, query)
            check(title, {OURS: with_index, WITHOUT: without}, some[:1])
            timings[title] = {
                **interleaved({OURS: in_turn(with_index, some)}, runs),
                WITHOUT: timed(without, some[:SLOW_RUNS]),
            }
            print_ratios(title, timings[title], OURS)
    return timings


def main() -> None:
    arguments = command_line("near duplicates of a text", runs=80)
    arguments.add_argument("--rows", type=int, default=1_000_000)
    arguments.add_argument("--tables", type=Path, default=FOLDER, help="where tables are kept")
    given = arguments.parse_args()
    print_versions(PACKAGES)
    path = text_table(given.rows, given.tables)
    print(f"{given.rows:,} texts, {path}")
    asked = queries(path, given.rows)
    timings = approximate(path, asked, given.runs) | exact(path, asked, given.runs)
    write_report(given.json, timings, PACKAGES)


if __name__ == "__main__":
    main()
