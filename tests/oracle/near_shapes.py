"""Statements around distances of texts: the nearest rows, and the table functions.

`{o}` is a distance of texts of `t` to order by, with its direction, and `{d}` one without.

`{f}` is one by the parameters of the column's index, as the table functions have it. They take
its column as `{column}`, its text as `{text}`, and a condition as the text `{'p'}`. Of texts that
share no band of their signatures as many positions differ as there are bands, `{bands}` of all;
`{below}` is the next distance below. What plain DataFusion is asked in their place is `memory`,
where `{function}` is called with two texts and `{given}`.
"""

from __future__ import annotations

from typing import Final

from .shape import Shape, shapes_of

_NEAREST: Final = shapes_of(
    "nearest",
    "SELECT key FROM t WHERE {p} ORDER BY {o}, key LIMIT 5",
    "SELECT key, s FROM t ORDER BY {o}, key LIMIT 3 OFFSET 2",
    "SELECT * FROM t WHERE {p} AND {q} ORDER BY {o}, key LIMIT 4",
    "SELECT key, near FROM (SELECT key, {d} AS near FROM t WHERE {p}) ORDER BY near, key LIMIT 7",
    "SELECT key, {d} AS near FROM t ORDER BY near NULLS FIRST, n, key LIMIT 6",
    "SELECT {d} AS near FROM t WHERE {p} ORDER BY near LIMIT 9",
    "SELECT key FROM (SELECT * FROM t ORDER BY {o}, key LIMIT 30) WHERE {p} ORDER BY key",
    "SELECT key, r FROM (SELECT key, rank() OVER (ORDER BY {o}, key) AS r FROM t WHERE {p}) "
    "WHERE r <= 5 ORDER BY r",
    ordered=True,
    weight=2,
) + shapes_of(
    "nearest",
    "SELECT {d} AS near FROM t ORDER BY near LIMIT 9 OFFSET 30",
    "WITH c AS (SELECT key, n, {d} AS near FROM t) SELECT n, key FROM c WHERE n < 4 "
    "ORDER BY near DESC, n DESC, key LIMIT 12",
    "SELECT key FROM t WHERE {p} ORDER BY {o}, key LIMIT 1000000",
    "SELECT key FROM t WHERE {p} ORDER BY {o}, s, key LIMIT 1",
    "SELECT key FROM t WHERE {p} AND n NOT IN (SELECT n FROM u WHERE {v} AND n IS NOT NULL) "
    "ORDER BY {o}, key LIMIT 10",
    "SELECT key FROM t WHERE {p} AND n >= (SELECT min(n) FROM u WHERE {v}) "
    "ORDER BY {o}, key LIMIT 10",
    "SELECT l.key, r.key AS other FROM t l JOIN u r ON l.n = r.n WHERE {l.p} AND {r.v} "
    "ORDER BY {l.o}, l.key, r.key LIMIT 10",
    # A row that passes once need not pass again.
    "SELECT key FROM t WHERE {p} AND random() < 2 ORDER BY {o}, key LIMIT 10",
    ordered=True,
)

_INSIDE: Final = shapes_of(
    "nearest",
    "SELECT s, count(*) AS rows FROM (SELECT s FROM t WHERE {p} ORDER BY {o}, key LIMIT 20) "
    "GROUP BY s",
    "SELECT l.key, r.key AS other FROM (SELECT * FROM t WHERE {p} ORDER BY {o}, key LIMIT 6) l "
    "LEFT JOIN u r ON l.n = r.n AND {r.v}",
    "(SELECT key FROM t ORDER BY {o}, key LIMIT 4) UNION ALL SELECT key FROM t WHERE {q}",
    "SELECT key FROM u WHERE {v} AND n IN (SELECT n FROM t WHERE {p} ORDER BY {o}, key LIMIT 3)",
    "SELECT r.key, l.key AS other FROM u r LEFT JOIN (SELECT key, n FROM t "
    "ORDER BY {o}, key LIMIT 15) l ON l.n = r.n",
    "SELECT key FROM t WHERE key IN (SELECT key FROM t ORDER BY {o}, key LIMIT 25) AND {p}",
    "SELECT key FROM t WHERE key NOT IN (SELECT key FROM t WHERE {q} ORDER BY {o}, key LIMIT 25) "
    "AND {p}",
    "(SELECT n FROM t WHERE {p} ORDER BY {o}, key LIMIT 9) EXCEPT (SELECT n FROM u WHERE {v})",
    "SELECT count(*) AS rows, sum(key) AS k FROM (SELECT key FROM t ORDER BY {o}, key LIMIT 20)",
    "SELECT key, (SELECT key FROM t WHERE {p} ORDER BY {o}, key LIMIT 1) AS k FROM u WHERE {v}",
    "SELECT n, min({d}) AS low, max({d}) AS high FROM t WHERE {p} GROUP BY n",
    "SELECT DISTINCT {d} AS d FROM t WHERE {p}",
)

_STORED: Final = (
    Shape(
        "nearest",
        "EXECUTE near({text})",
        ordered=True,
        setup=(
            "PREPARE near AS SELECT key FROM t WHERE {p} ORDER BY "
            "minhash_distance({column}, $1), key LIMIT 10",
        ),
        teardown=("DEALLOCATE near",),
    ),
    Shape(
        "nearest",
        "SELECT key FROM seen WHERE {q} ORDER BY far, key LIMIT 11",
        ordered=True,
        setup=("CREATE OR REPLACE VIEW seen AS SELECT *, {d} AS far FROM t WHERE {p}",),
        teardown=("DROP VIEW seen",),
    ),
)

NEAR_SHAPES: Final = (*_NEAREST, *_INSIDE, *_STORED)
"""Of a table with a column of texts."""


# -- table functions --------------------------------------------------------------------------


def _calling(
    kind: str, text: str, memory: str, *, ordered: bool = False, weight: float = 1.0
) -> Shape:
    return Shape(kind, text, ordered, memory=memory, weight=weight)


_FOUND: Final = "SELECT *, CAST({f} AS FLOAT) AS _distance FROM t WHERE {f} IS NOT NULL"

SEARCHES: Final = (
    _calling(
        "search",
        "SELECT key, _distance FROM minhash_search('t', '{column}', {text}, 1000000, {'p'}, "
        "'exhaustive')",
        f"SELECT key, _distance FROM ({_FOUND}) WHERE {{p}}",
    ),
    _calling(
        "search",
        "SELECT _distance FROM minhash_search('t', '{column}', {text}, 7, {'p'}, 'exhaustive')",
        f"SELECT _distance FROM ({_FOUND}) WHERE {{p}} ORDER BY _distance LIMIT 7",
    ),
    _calling(
        "search",
        "SELECT * FROM minhash_search('t', '{column}', {text}, 1000000, NULL, 'exhaustive') "
        "WHERE {p}",
        f"SELECT * FROM ({_FOUND}) WHERE {{p}}",
    ),
    _calling(
        "search",
        "SELECT key, _distance FROM minhash_search('t', '{column}', {text}, 1000000, {'p'}) "
        "WHERE _distance < {bands}",
        f"SELECT key, _distance FROM ({_FOUND}) WHERE {{p}} AND _distance < {{bands}}",
    ),
    _calling(
        "search",
        "SELECT s.key, r.key AS other FROM minhash_search('t', '{column}', {text}, 1000000, "
        "NULL, 'exhaustive') s JOIN u r ON s.n = r.n WHERE {r.v} AND s._distance <= 0.5",
        f"SELECT s.key, r.key AS other FROM ({_FOUND}) s JOIN u r ON s.n = r.n "
        "WHERE {r.v} AND s._distance <= 0.5",
    ),
)
"""Of a column that has no more than one index."""

_PAIRS: Final = (
    "SELECT l.key AS k, r.key AS other, CAST({function}(l.{column}, r.{column}{given}) AS FLOAT) "
    "AS _distance FROM t l JOIN t r ON l.key < r.key "
    "WHERE {function}(l.{column}, r.{column}{given}) <= {below}"
)

DUPLICATES: Final = (
    _calling(
        "duplicates",
        "SELECT least(l.key, r.key) AS k, greatest(l.key, r.key) AS other, _distance "
        "FROM minhash_pairs('r', '{column}', {below}) "
        "JOIN r AS l ON l._rowid = left_rowid JOIN r ON r._rowid = right_rowid",
        _PAIRS,
        weight=4,
    ),
    _calling(
        "duplicates",
        "SELECT r.key, min(r.key) OVER (PARTITION BY cluster_id) AS first "
        "FROM minhash_clusters('r', '{column}', {below}) JOIN r ON r._rowid = row_id",
        f"WITH RECURSIVE pairs AS ({_PAIRS}), near AS (SELECT k, other FROM pairs "
        "UNION ALL SELECT other, k FROM pairs), reached AS (SELECT k, other FROM near "
        "UNION SELECT a.k, b.other FROM reached a JOIN near b ON a.other = b.k) "
        "SELECT k AS key, min(other) AS first FROM reached GROUP BY k",
        weight=3,
    ),
)
"""Also of few rows only: plain DataFusion compares each with each."""

MOST_COMPARED: Final = 150
