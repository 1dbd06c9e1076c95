"""The benchmarks: datafusion-lance beside other readers of the same files, in one run.

Tables are generated once and kept. Then every case runs each contender in turns with the others,
after all of them gave the same answer; tables of the ratios, of where time goes, of growth,
memory and fetching follow, and everything, every single run, goes into one JSON file, from which
plots.py draws.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fetch_sweep
import growth
import label_list
import list_element
import list_element_build
import minhash_pairs
import minhash_search
import packages
import statement_memory
import where_time_goes
from ffi_process import FFI, FfiProcess
from measure import Timing, print_ratios, versions
from report import Case, Goal, machine, print_summary
from statements import element_statements, label_statements
from tables import FOLDER, images, many_labels, wide_images
from texts import text_table

PACKAGES = ("datafusion", "pylance", "pyarrow", "duckdb", "polars", "datasketch", "rensa")
DESCRIPTION = """\
Times datafusion-lance beside other readers of the same tables, checks their answers first.

Parts, for --only: labels, elements, builds, minhash, pairs, packages, phases, memory, growth,
fetch. With several numbers of rows the first is the table that all is timed on; the same hits
are looked for in the others, too.

Caches are warm, or "cold": the first statement of a fresh process, its modules imported, files in
the system's page cache or not, as the runs before have left them.
"""


@dataclass(frozen=True, slots=True)
class Options:
    """How much is run."""

    rows: tuple[int, ...]
    tables: Path
    runs: int
    cold_runs: int
    texts: int
    pairs: int
    ffi: Path | None

    @property
    def images(self) -> Path:
        return images(self.rows[0], self.tables)

    @property
    def indexed(self) -> Path:
        return list_element.indexed(self.rows[0], self.tables)


@dataclass(frozen=True, slots=True)
class Findings:
    """What there is to report, besides the cases."""

    cases: list[Case] = field(default_factory=list)
    sections: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)


def compared(findings: Findings, cases: Iterator[Case]) -> None:
    """Runs the cases and prints each as it is done."""
    for case in cases:
        title = f"{case.group}: {case.title}, caches {case.caches}"
        print_ratios(title, case.timings, case.ours)
        findings.cases.append(case)


def labels(options: Options, findings: Findings) -> None:
    rows, folder = options.rows[0], options.tables
    wide, many = wide_images(rows, folder), many_labels(rows, folder)
    _label_cases(options, findings, options.images, label_list.NARROW, label_list.GROUP)
    _label_cases(options, findings, wide, label_list.WIDE, label_list.GROUP)
    _label_cases(options, findings, many, label_list.MANY, label_list.MANY_GROUP)


def packaged(options: Options, findings: Findings) -> None:
    path = packages.catalogue(options.tables)
    if path is None:
        print("\nno Debian package catalogue here: left out")
        return
    _label_cases(options, findings, path, {("name", 118): None, ("*", 118): None}, "packages")


def _label_cases(
    options: Options,
    findings: Findings,
    path: Path,
    shares: Mapping[tuple[str, int], Goal | None],
    group: str,
) -> None:
    with ExitStack() as stack:
        ffi = None
        if options.ffi is not None:
            ffi = stack.enter_context(FfiProcess(options.ffi, path))
            theirs = ffi.ask("versions")
            findings.versions.update({f"{name} of {FFI}": theirs[name] for name in theirs})
        compared(
            findings,
            label_list.cases(path, shares, options.runs, options.cold_runs, ffi, group),
        )


def elements(options: Options, findings: Findings) -> None:
    compared(findings, list_element.cases(options.indexed, options.runs, options.cold_runs))
    for rows in options.rows[1:]:
        large = list_element.indexed(rows, options.tables)
        compared(findings, list_element.growth_cases(options.indexed, large, options.runs))


def builds(options: Options, findings: Findings) -> None:
    timings = list_element_build.run(options.images, min(options.runs, 8))
    findings.cases.extend(_named("build", timings, list_element_build.OURS, lambda _: Goal(1.5)))


def minhash(options: Options, findings: Findings) -> None:
    path = text_table(options.texts, options.tables)
    asked = minhash_search.queries(path, options.texts)
    ours = minhash_search.OURS

    def goal(title: str) -> Goal | None:
        return Goal(1.2) if title.endswith("all rows") else Goal(0.5)

    timings = minhash_search.approximate(path, asked, options.runs)
    findings.cases.extend(_named("MinHash", timings, ours, goal))
    exact = minhash_search.exact(path, asked, options.runs)
    findings.cases.extend(_named("MinHash", exact, ours, lambda _: None))


def pairs(options: Options, findings: Findings) -> None:
    path = text_table(options.pairs, options.tables)
    timings = minhash_pairs.run(path, options.pairs, 1)
    peers = {
        title: {name: timing for name, timing in case.items() if name != minhash_pairs.CLUSTERS}
        for title, case in timings.items()
    }
    findings.cases.extend(_named("MinHash", peers, minhash_pairs.OURS, lambda _: None))


def _named(
    group: str,
    timings: Mapping[str, Mapping[str, Timing]],
    ours: str,
    goal: Callable[[str], Goal | None],
) -> Iterator[Case]:
    for title, case in timings.items():
        yield Case(group, title, case, ours, goal(title))


def phases(options: Options, findings: Findings) -> None:
    path = options.indexed
    statements = label_statements(path) | element_statements(path)
    found = where_time_goes.medians(path, statements, options.runs)
    where_time_goes.print_phases(found)
    findings.sections["where_time_goes"] = {name: asdict(one) for name, one in found.items()}


def memory(options: Options, findings: Findings) -> None:
    path = options.indexed
    statements = label_statements(path) | element_statements(path)
    found = statement_memory.beyond_results(path, statements)
    statement_memory.print_memory(found)
    findings.sections["memory_mib"] = {name: asdict(one) for name, one in found.items()}


def growths(options: Options, findings: Findings) -> None:
    paths = [list_element.indexed(rows, options.tables) for rows in options.rows]
    runs = options.runs
    found = [
        growth.over_labels(paths[0], runs),
        growth.over_ranges(paths[0], runs),
        growth.over_segments(options.tables, options.rows[0], runs),
    ]
    if len(paths) > 1:
        found += growth.over_rows(paths, tuple(list_element.GOALS), runs)
    growth.print_growth(found)
    findings.sections["growth"] = [
        {
            "title": one.title,
            "grows": one.grows,
            "slope": one.slope,
            "milliseconds": {x: timing.runs for x, timing in one.timings.items()},
        }
        for one in found
    ]


def fetch(options: Options, findings: Findings) -> None:
    path = wide_images(options.rows[0], options.tables)
    points = list(fetch_sweep.sweep(path, min(options.runs, 5)))
    fetch_sweep.print_worst(points)
    findings.sections["fetch"] = [
        {name: None if value != value else value for name, value in asdict(point).items()}
        for point in points
    ]


PARTS: dict[str, Callable[[Options, Findings], None]] = {
    "labels": labels,
    "elements": elements,
    "builds": builds,
    "minhash": minhash,
    "pairs": pairs,
    "packages": packaged,
    "phases": phases,
    "memory": memory,
    "growth": growths,
    "fetch": fetch,
}


def command_line() -> argparse.ArgumentParser:
    arguments = argparse.ArgumentParser(
        description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = arguments.add_argument
    add("--rows", type=int, nargs="+", default=[1_000_000], help="of the tables of images")
    add("--texts", type=int, help="texts of the MinHash searches (the first of --rows)")
    add("--pairs", type=int, default=100_000, help="texts whose pairs are looked for")
    add("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART")
    add("--runs", type=int, default=41, help="of each contender, fewer where it takes seconds")
    add("--cold-runs", type=int, default=5, help="in fresh processes; 0 leaves them out")
    add("--quick", action="store_true", help="8 runs, 1 cold one, 100,000 rows, 20,000 texts")
    add("--tables", type=Path, default=FOLDER, help="where tables are kept")
    add("--ffi", type=Path, help="the Python that has DataFusion 54 and pylance, for one peer")
    add("--json", type=Path, help="write everything, every single run, to this file")
    return arguments


def options_of(given: argparse.Namespace) -> Options:
    """What the command line asks for."""
    if given.quick:
        return Options((100_000,), given.tables, 8, 1, 20_000, 20_000, given.ffi)
    rows = tuple(given.rows)
    texts = given.texts or rows[0]
    return Options(rows, given.tables, given.runs, given.cold_runs, texts, given.pairs, given.ffi)


def main() -> None:
    given = command_line().parse_args()
    options = options_of(given)
    findings = Findings(versions=versions(PACKAGES))
    began = datetime.now(UTC)
    here = machine()
    print(", ".join(f"{name} {value}" for name, value in here.items()))
    print(", ".join(f"{name} {value}" for name, value in findings.versions.items()))
    if options.ffi is None:
        print(f"{FFI}: left out, --ffi names no Python for it")
    for part in given.only:
        PARTS[part](options, findings)
    print_summary(findings.cases)
    seconds = (datetime.now(UTC) - began).total_seconds()
    print(f"\n{seconds:,.0f} seconds")
    if given.json is not None:
        report = {
            "date": began.isoformat(timespec="seconds"),
            "seconds": seconds,
            "machine": here,
            "versions": findings.versions,
            "cases": [case.as_json() for case in findings.cases],
            **findings.sections,
        }
        given.json.write_text(json.dumps(report), encoding="utf-8")


if __name__ == "__main__":
    main()
