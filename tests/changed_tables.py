"""A table of few lists and texts, what is asked of it, and the answers from its rows alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from datafusion import DataFrame

from datafusion_lance.engine import LanceSessionContext
from datafusion_lance.indexes.minhash_lsh.parameters import MinHashParameters
from datafusion_lance.indexes.minhash_lsh.signature import SignatureProcedure

from .oracle_rows import index_scans

ELEMENT = pa.struct([("label", pa.string()), ("n", pa.int32())])
SCHEMA = pa.schema(
    [
        pa.field("key", pa.int64(), nullable=False),
        pa.field("x", pa.int32()),
        pa.field("other", pa.string()),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("d", pa.list_(ELEMENT)),
        pa.field("text", pa.string()),
    ]
)
TAGS: tuple[list[str | None] | None, ...] = (["a"], ["a", "b"], None, [], ["c", None], ["b"])
LABELS: tuple[list[str | None] | None, ...] = (["a"], ["b", "a"], None, [], [None], ["c"], ["b"])
QUERY = "ant bee cat dog elk fox gnu hen"
TEXTS = (
    *(QUERY, f"{QUERY} owl", "ant bee cat dog pig fox gnu hen", None, " . ", "owl owl"),
    *("yak emu koi ape cow jay", "yak emu koi ape cow", f"owl {QUERY} pig owl"),
)

Signing: TypeAlias = tuple[int, int, int]
"""The number of hashes, that of bands, and the size of shingles."""

SIGNING: Signing = (16, 4, 2)
"""Of the index of `text`."""


def rows(keys: range, shift: int = 0) -> pa.Table:
    """Rows of few lists and texts, in another order for another `shift`."""

    def elements(key: int) -> list[dict[str, Any] | None] | None:
        labels = LABELS[(key + shift) % len(LABELS)]
        return None if labels is None else [{"label": one, "n": key % 3} for one in labels]

    columns = {
        "key": list(keys),
        "x": [key % 5 for key in keys],
        "other": ["o"] * len(keys),
        "tags": [TAGS[(key + shift) % len(TAGS)] for key in keys],
        "d": [elements(key) for key in keys],
        "text": [TEXTS[(key + shift) % len(TEXTS)] for key in keys],
    }
    return pa.Table.from_pydict(columns, schema=SCHEMA)


Row: TypeAlias = Mapping[str, Any]
Truth: TypeAlias = Callable[[Row], bool | None]
Names: TypeAlias = Mapping[str, str]
"""What columns and fields are called now, by their first names; empty for one that is gone."""


# -- lists ----------------------------------------------------------------------------------


def has(label: str) -> Truth:
    return lambda row: None if row["tags"] is None else label in row["tags"]


def any_label(label: str) -> Truth:
    """Of `any_element(d, 'label = …')`."""

    def truth(row: Row) -> bool | None:
        if row["d"] is None:
            return None
        labels = [element and element["label"] for element in row["d"]]
        return label in labels or (None if None in labels else False)

    return truth


# -- texts ----------------------------------------------------------------------------------


@cache
def signature(text: str | None, signing: Signing) -> npt.NDArray[np.uint16] | None:
    return SignatureProcedure.of(MinHashParameters(*signing)).sign_text(text)


def different(one: str | None, other: str | None, signing: Signing) -> npt.NDArray[np.bool_] | None:
    """At which positions the signatures of two texts differ; None where one has none."""
    left, right = signature(one, signing), signature(other, signing)
    return None if left is None or right is None else left != right


@cache
def distance(one: str | None, other: str | None, signing: Signing = SIGNING) -> float | None:
    differs = different(one, other, signing)
    return None if differs is None else float(differs.mean())


def share_a_band(one: str | None, other: str | None) -> bool:
    differs = different(one, other, SIGNING)
    return differs is not None and not differs.reshape(SIGNING[1], -1).any(axis=1).all()


def within(bound: float) -> Truth:
    def truth(row: Row) -> bool | None:
        away = distance(row["text"], QUERY)
        return None if away is None else away <= bound

    return truth


NEAR = f"minhash_distance({{text}}, '{QUERY}', {', '.join(map(str, SIGNING))})"


# -- what is asked --------------------------------------------------------------------------

PREDICATES: Mapping[str, tuple[tuple[str, Truth], ...]] = {
    "LabelList": (
        ("array_has({tags}, 'a')", has("a")),
        ("NOT array_has({tags}, 'b')", lambda row: _negated(has("b")(row))),
        ("array_has({tags}, 'a') IS NULL", lambda row: has("a")(row) is None),
        (
            "array_has_any({tags}, ['b', 'c']) AND x < 3",
            lambda row: bool(has("b")(row) or has("c")(row)) and row["x"] < 3,
        ),
    ),
    "ListElement": (
        ("any_element(d, '{label} = ''a''')", any_label("a")),
        ("NOT any_element(d, '{label} = ''b''')", lambda row: _negated(any_label("b")(row))),
        ("any_element(d, '{label} = ''a''') IS NULL", lambda row: any_label("a")(row) is None),
        (
            "any_element(d, '{label} = ''b'' AND {n} > 0') AND x < 3",
            lambda row: bool(any_label("b")(row)) and row["key"] % 3 > 0 and row["x"] < 3,
        ),
    ),
    # The first bound is answered from the buckets, the others from all signatures.
    "MinHashLsh": (
        (f"{NEAR} <= 0.2", within(0.2)),
        (f"NOT ({NEAR} <= 0.5)", lambda row: _negated(within(0.5)(row))),
        (f"{NEAR} IS NULL", lambda row: within(1)(row) is None),
        (f"{NEAR} <= 0.6 AND x < 3", lambda row: bool(within(0.6)(row)) and row["x"] < 3),
    ),
}


def _negated(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def check(session: LanceSessionContext, held: pa.Table, kind: str, names: Names) -> bool:
    """All that is asked of the kind gets its answer; returns whether an index serves the first.

    `session` has the table as `t`, with row ids. What texts are asked beside predicates has to
    be served where these are.
    """
    as_first = {now: first for first, now in names.items() if first in SCHEMA.names}
    held_rows = [
        {as_first.get(str(name), str(name)): value for name, value in row.items()}
        for row in held.to_pylist()
    ]
    for predicate, truth in PREDICATES[kind]:
        if any(f"{{{name}}}" in predicate for name, now in names.items() if not now):
            continue
        where = predicate.format(**names)
        frame = session.sql(f"SELECT key FROM t WHERE {where}")
        expected = sorted(row["key"] for row in held_rows if truth(row) is True)
        assert sorted(frame.to_pydict()["key"]) == expected, where
    predicate, truth = PREDICATES[kind][0]
    where = predicate.format(**names)
    count = session.sql(f"SELECT count(*) AS n FROM t WHERE {where}").to_pydict()
    assert count == {"n": [sum(truth(row) is True for row in held_rows)]}
    served = bool(index_scans(session.sql(f"SELECT key FROM t WHERE {where}")))
    if kind == "MinHashLsh":
        near = NEAR.format(**names)
        # Without an index on the column a call signs as the defaults say.
        listed = session.lance_indexes("t").to_pylist()
        signing = (128, 16, 3)
        if names["text"] in [one["column"] for one in listed]:
            signing = SIGNING
        frames = [
            _check_order(session, held_rows, near),
            _check_searches(session, held_rows, names["text"], signing),
            _check_pairs(session, held_rows, names["text"], signing),
        ]
        assert not served or all(map(index_scans, frames))
    return served


_SEARCHES = (("NULL", "exhaustive"), ("'x < 3'", "exhaustive"), ("NULL", "approximate"))


def _check_order(session: LanceSessionContext, held: list[dict[str, Any]], near: str) -> DataFrame:
    """The nearest rows of those that pass a filter, by an order that is total."""
    frame = session.sql(f"SELECT key, {near} AS d FROM t WHERE x < 4 ORDER BY d, key LIMIT 9")
    away = [(row["key"], distance(row["text"], QUERY)) for row in held if row["x"] < 4]
    away.sort(key=lambda one: (one[1] is None, one[1], one[0]))
    assert [(row["key"], row["d"]) for row in frame.to_pylist()] == away[:9]
    return frame


def _check_searches(
    session: LanceSessionContext, held: list[dict[str, Any]], column: str, signing: Signing
) -> DataFrame:
    """`minhash_search`, which leaves nothing to chance but which of equally near rows are last."""
    frames: list[DataFrame] = []
    for passing, mode in _SEARCHES:
        call = f"minhash_search('t', '{column}', '{QUERY}', 7, {passing}, '{mode}')"
        frame = session.sql(f"SELECT key, _distance FROM {call}")
        frames.append(frame)
        away = Counter(
            (row["key"], far)
            for row in held
            if (far := distance(row["text"], QUERY, signing)) is not None
            and (passing == "NULL" or row["x"] < 3)
            and (mode == "exhaustive" or signing != SIGNING or share_a_band(row["text"], QUERY))
        )
        found = [(row["key"], row["_distance"]) for row in frame.to_pylist()]
        assert [far for _, far in found] == sorted(far for _, far in away.elements())[:7], call
        assert Counter(found) <= away, call
    return frames[-1]


def _check_pairs(
    session: LanceSessionContext, held: list[dict[str, Any]], column: str, signing: Signing
) -> DataFrame:
    """`minhash_pairs` at the largest bound up to which it finds them all."""
    num_hashes, num_bands, _ = signing
    bound = (num_bands - 1) / num_hashes
    frame = session.sql(
        "SELECT a.key AS one, b.key AS other, _distance AS d "
        f"FROM minhash_pairs('t', '{column}', {bound}) "
        "JOIN t a ON a._rowid = left_rowid JOIN t b ON b._rowid = right_rowid"
    )
    expected = [
        (*sorted((one["key"], other["key"])), far)
        for one, other in combinations(held, 2)
        if (far := distance(one["text"], other["text"], signing)) is not None and far <= bound
    ]
    found = [(*sorted((row["one"], row["other"])), row["d"]) for row in frame.to_pylist()]
    assert sorted(found) == sorted(expected)
    return frame
