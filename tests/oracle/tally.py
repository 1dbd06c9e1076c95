"""What a run of the oracle hit: rules, refusals, ways to fetch, shapes; and what it must hit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from datafusion_lance.engine.execution import Execution
from datafusion_lance.indexes import query as queries
from datafusion_lance.indexes.query import Query

from .asking import Asked, Failed, Statement, serves

LEAST_SERVED = 0.6
LEAST_SELECTIVE = 0.5

RULES = (
    *("HasAny", "HasAll", "AnyElement", "WithinDistance", "Nearest"),
    *("And", "Or", "Not", "Is", "Superset"),
)
"""Nodes of query trees."""

FUNCTIONS = ("minhash_search", "minhash_pairs", "minhash_clusters")
"""Table functions that an index served."""

WAYS = ("rebuilt plan", "bound leaf", "beside a scan", "exact", "superset", "two tables")
"""How index scans stand in plans."""

FETCHES = ("take", "scan", "cache", "count", "none")
"""How rows are fetched; `scan+take` and the like count as each of them."""

REFUSALS = {
    "a registered function": "is a registered function",
    "a needle that is no literal": "the needle is not a literal",
    "a NULL needle": "a NULL needle makes it NULL",
    "compared in another type": "which may make different elements equal",
    "no condition on the first key": "no condition fixes its first key",
    "an OR with another side": "no index answers every side of the OR",
    "NOT over what is not known": "the index does not know on which rows it is FALSE",
    "no common fragment": "no fragment is covered by all of the indexes",
    "covers nothing": "covers no fragment of this version",
    "a key that is gone": "is not in the table any more",
    "a newer version": "is the newest that is read",
    "signed in another way": "its signatures are not made with the parameters of",
    "a distance to no literal": "the other text is not a literal",
    "no comparison with a literal": "no comparison of a distance with a literal",
    "no order of a distance": "the order is not that of a distance to a literal",
    "the farthest first": "the order does not begin with the nearest",
    "a bound of another type": "the bound is no literal of its type",
    "items of another type": "not every item is a literal of its type",
    "too many bounds": "more than 8 searches",
    "a filter that may change": "a function that may not always give the same",
    "a column without an index": "has no MinHash index",
    "no filter over the table": "as it is no filter over the table holds the predicate",
    "above a LIMIT": "it is above a LIMIT",
    "beside another aggregate": "another aggregate beside it takes other rows",
    "above a window": "it is above a window that is not partitioned by its column",
    "groups that stay": "groups in which an aggregate's FILTER finds no row stay in the answer",
    "on a missing row": "it is TRUE where an outer join finds no row of the table",
    "a subquery among the filters": "the rows are filtered by more than their own values",
    "hidden in a subquery": "a scan inside a subquery expression",
    "scanned without a predicate, too": "it scans the table without such a predicate, too",
}
"""Reasons in `index_notes`, by a part of their words."""


@dataclass(slots=True)
class Tally:
    """Counts of cases, each of which is a statement in one situation."""

    cases: int = 0
    served: int = 0
    selective: int = 0
    failing: int = 0
    rules: Counter[str] = field(default_factory=Counter)
    ways: Counter[str] = field(default_factory=Counter)
    functions: Counter[str] = field(default_factory=Counter)
    fetches: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    unknown_refusals: Counter[str] = field(default_factory=Counter)
    shapes: Counter[str] = field(default_factory=Counter)
    served_shapes: Counter[str] = field(default_factory=Counter)

    def count(self, statement: Statement, asked: Asked, *, selects: bool) -> None:
        """One case; `selects`: its condition is TRUE on some rows, but not on all."""
        self.cases += 1
        self.failing += isinstance(asked.expected, Failed)
        rows = 0 if isinstance(asked.expected, Failed) else asked.expected.num_rows
        self.selective += selects and rows > 0
        self.shapes[statement.shape.text] += 1
        execution = asked.execution
        if execution is None:
            return
        for note in execution.notes + sum((scan.notes for scan in execution.called), ()):
            self._refused(note)
        if serves(execution):
            self.served += 1
            self.served_shapes[statement.shape.text] += 1
            self._served(execution)

    def _served(self, execution: Execution) -> None:
        searches = execution.searches
        for scan in execution.called:
            if scan.entries is not None:
                name, *_ = dict(scan.entries)["query"].split("(")
                self.functions[name] += 1
        if not searches:
            return
        self.ways["bound leaf" if execution.bound else "rebuilt plan"] += 1
        self.ways["two tables"] += len({id(scan.table) for scan in searches}) > 1
        for scan in searches:
            self.ways["exact" if scan.query.exact else "superset"] += 1
            self.ways["beside a scan"] += bool(scan.table.shown_fragments - scan.covered)
            self.rules.update({type(node).__name__ for node in nodes(scan.query)})
            self.fetches.update(scan.stats.fetch.split("+"))

    def _refused(self, note: str) -> None:
        for name, words in REFUSALS.items():
            if words in note:
                self.refusals[name] += 1
                return
        self.unknown_refusals[re.sub(r"\d+", "9", note)[:100]] += 1

    def never_hit(self) -> list[str]:
        """What a long run must hit and did not."""
        asked = (
            ("rule", RULES, self.rules),
            ("way", WAYS, self.ways),
            ("function", FUNCTIONS, self.functions),
            ("fetch", FETCHES, self.fetches),
            ("refusal", tuple(REFUSALS), self.refusals),
        )
        return [f"{what}: {one}" for what, all_, hit in asked for one in all_ if not hit[one]]

    def shortfalls(self) -> list[str]:
        """What a long run must show and did not."""
        low = []
        if self.served < LEAST_SERVED * self.cases:
            low.append(f"{self.served} of {self.cases} cases used an index")
        if self.selective < LEAST_SELECTIVE * self.cases:
            low.append(f"{self.selective} of {self.cases} cases gave some rows but not all")
        return low + self.never_hit()

    def report(self) -> str:
        share = [f"{count / max(1, self.cases):.1%}" for count in (self.served, self.selective)]
        lines = [
            f"{self.cases} cases, {share[0]} served by an index, {share[1]} give some rows but "
            f"not all, {self.failing} fail in DataFusion, too"
        ]
        for name, counter in (
            ("rules", self.rules),
            ("ways", self.ways),
            ("functions", self.functions),
            ("fetches", self.fetches),
            ("refusals", self.refusals),
            ("other refusals", self.unknown_refusals),
        ):
            counts = ", ".join(f"{one} {count}" for one, count in counter.most_common() if count)
            lines.append(f"{name}: {counts or '-'}")
        lines.append("shapes, and how often an index served them:")
        for text, count in self.shapes.most_common():
            lines.append(f"{count:7} {self.served_shapes[text]:7}  {text[:110]}")
        return "\n".join(lines)


def nodes(query: Query) -> Iterator[Query]:
    """A query and all that is inside."""
    yield query
    match query:
        case queries.And(parts) | queries.Or(parts):
            for part in parts:
                yield from nodes(part)
        case queries.Not(part) | queries.Superset(part):
            yield from nodes(part)
        case queries.Is(part, _):
            yield from nodes(part)
        case queries.Nearest(condition=part) if part is not None:
            yield from nodes(part)
        case _:
            return
