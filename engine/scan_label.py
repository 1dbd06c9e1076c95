"""How an index scan calls itself in EXPLAIN."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from ..indexes.query import AnyElement, leaves
from .function_scan import FunctionScan
from .index_scan import IndexScan

_SHOWN_CHARACTERS: Final = 60


@dataclass(frozen=True, slots=True)
class ScanLabel:
    """What is printed of one index scan: its table, then `entries` as `key=value`.

    `measures` are what it did, known after a run (EXPLAIN ANALYZE).
    """

    table: str
    entries: tuple[tuple[str, str], ...]
    measures: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        """One line.

        >>> ScanLabel("images", (("index", "tags_idx"), ("kind", "LabelList"))).text
        'IndexScan: table=images, index=tags_idx, kind=LabelList'
        """
        parts = [f"table={self.table}", *(f"{key}={value}" for key, value in self.entries)]
        return "IndexScan: " + ", ".join(parts)

    def rechecked(self, removed: Callable[[int], str | None]) -> ScanLabel:
        """The label with the rows that a recheck of a superset removed.

        `removed` tells them from the number of rows that the scan returned; None for none.
        """
        returned = dict(self.measures).get("rows_returned")
        if returned is None or ("answer", "superset") not in self.entries:
            return self
        rows = removed(int(returned))
        if rows is None:
            return self
        measures = (*self.measures, ("rows_removed_by_recheck", rows))
        return dataclasses.replace(self, measures=measures)

    def quoted(self) -> ScanLabel:
        """The label for use between double quotes."""
        return ScanLabel(
            _quoted(self.table),
            tuple((key, _quoted(value)) for key, value in self.entries),
            tuple((key, _quoted(value)) for key, value in self.measures),
        )


def label_of(scan: IndexScan, *, ran: bool) -> ScanLabel:
    """The label of a scan; where it `ran`, with what it did."""
    indexes = sorted(scan.query.indexes, key=lambda index: index.name)
    entries = {
        "index": "+".join(dict.fromkeys(index.name for index in indexes)),
        "kind": "+".join(dict.fromkeys(index.kind for index in indexes)),
        "query": one_line(str(scan.query)),
        "answer": "exact" if scan.query.exact else "superset",
    }
    ranges = sum(leaf.search.range_count for leaf in leaves(scan.query, AnyElement))
    if ranges:
        entries["ranges"] = f"{ranges}"
    uncovered = scan.table.shown_fragments - scan.covered
    if uncovered:
        entries["uncovered_fragments"] = fragments_in(uncovered)
    measures = tuple(_measures(scan.stats)) if ran else ()
    return ScanLabel(scan.table.name, tuple(entries.items()), measures)


def function_label(scan: FunctionScan, *, ran: bool) -> ScanLabel | None:
    """The label of what a table function gives; None where no index takes part in it."""
    if scan.entries is None:
        return None
    measures = (*scan.measures, *_measures(scan.stats)) if ran else ()
    return ScanLabel(scan.table.name, scan.entries, measures)


def one_line(text: str) -> str:
    """The text without line breaks: a label must not break its plan's line."""
    return "\\n".join(text.splitlines())


def shortened(text: str) -> str:
    """The beginning of a text that somebody else wrote, in one line.

    >>> shortened("two\\nlines"), len(shortened("a" * 1000))
    ('two\\\\nlines', 61)
    """
    shown = text[:_SHOWN_CHARACTERS]
    return one_line(shown) + ("…" if shown != text else "")


def fragments_in(fragment_ids: Iterable[int]) -> str:
    """Numbers of fragments, ascending."""
    return f"[{', '.join(map(str, sorted(fragment_ids)))}]"


def _measures(stats: Any) -> Iterator[tuple[str, str]]:
    for field in dataclasses.fields(stats):
        value = getattr(stats, field.name)
        if field.name.endswith("_seconds"):
            yield f"{field.name.removesuffix('_seconds')}_time", f"{value * 1e3:.3f}ms"
        else:
            yield field.name, str(value)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
