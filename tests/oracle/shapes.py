"""Statements around predicates.

`{p}` and `{q}` are conditions on `t`, `{v}` is one on `u`; with a dot before them, as in `{l.p}`,
their columns are qualified. A chain is Python that gives a DataFrame of `ctx`.
Conditions are texts in it, which a DataFrame parses.
"""

from __future__ import annotations

from .near_shapes import NEAR_SHAPES
from .shape import Shape, shapes_of

SIMPLE = shapes_of(
    "filter",
    "SELECT key FROM t WHERE {p}",
    "SELECT * FROM t WHERE {p}",
    weight=6,
) + shapes_of("count", "SELECT count(*) AS rows FROM t WHERE {p}", weight=4)

ON_U = "v"
(SIMPLE_ON_U,) = shapes_of("filter", "SELECT key FROM u WHERE {v}")

_FILTERS = shapes_of(
    "filter",
    "SELECT key FROM t WHERE {p} AND {q}",
    "SELECT key, n, s FROM t WHERE {p}",
    "SELECT key, text, d FROM t WHERE {p}",
    "SELECT s, a FROM t WHERE {p}",
    "SELECT 1 AS one FROM t WHERE {p}",
    "SELECT text FROM t WHERE {p} AND n = 3",
    'SELECT "T"."Key" FROM (SELECT key AS "Key", * FROM t) AS "T" WHERE {p}',
    "SELECT key, {q} AS q FROM t WHERE {p}",
    "SELECT key, CASE WHEN {q} THEN 1 ELSE 0 END AS q FROM t WHERE {p}",
    "SELECT key FROM t WHERE CASE WHEN n > 2 THEN {p} ELSE {q} END",
    weight=2,
)

_ORDERED = shapes_of(
    "limit",
    "SELECT key FROM t WHERE {p} ORDER BY key DESC LIMIT 5 OFFSET 1",
    "SELECT key, s FROM t WHERE {p} ORDER BY s NULLS FIRST, key LIMIT 7",
    "SELECT key FROM t WHERE {p} ORDER BY n DESC NULLS LAST, key OFFSET 3",
    "SELECT key, x FROM t WHERE {p} ORDER BY key",
    "SELECT DISTINCT ON (n) n, key FROM t WHERE {p} ORDER BY n, key",
    "SELECT DISTINCT ON (s) s, key, day FROM t WHERE {p} ORDER BY s, n DESC, key",
    "SELECT key FROM (SELECT * FROM t ORDER BY key LIMIT 40) WHERE {p} ORDER BY key",
    ordered=True,
)

_JOINS = shapes_of(
    "join",
    "SELECT l.key, r.key AS other FROM (SELECT * FROM t WHERE {p}) l "
    "JOIN (SELECT * FROM u WHERE {v}) r ON l.m = r.key",
    "SELECT l.key, r.key AS other FROM t l JOIN u r ON l.n = r.n WHERE {l.p} AND {r.v}",
    "SELECT l.key, r.key AS other FROM t l LEFT JOIN u r ON l.n = r.n AND {r.v} WHERE {l.p}",
    "SELECT l.key, r.key AS other FROM t l LEFT JOIN u r ON l.m = r.key WHERE {r.v}",
    "SELECT l.key, r.key AS other FROM t l RIGHT JOIN u r ON l.m = r.key AND {l.p} WHERE {r.v}",
    "SELECT l.key, r.key AS other FROM u l LEFT JOIN t r ON l.m = r.key WHERE {r.p} IS NOT TRUE",
    "SELECT l.key, r.key AS other FROM (SELECT * FROM t WHERE {p}) l "
    "FULL JOIN (SELECT * FROM u WHERE {v}) r ON (l.s IS NOT DISTINCT FROM r.s) AND l.n = r.n",
    "SELECT l.key, r.key AS other FROM t l JOIN t r ON l.m = r.key WHERE {l.p} AND {r.q}",
    "SELECT l.key, r.key AS other FROM t l JOIN t r ON l.m = r.m WHERE {l.p}",
    "SELECT l.key, r.s FROM t l LEFT JOIN t r ON l.key = r.m AND l.n < r.n WHERE {l.p} AND {l.q}",
    "SELECT t.key, u.key AS other FROM t CROSS JOIN u WHERE {t.p} AND {u.v} AND t.n = 1",
    "SELECT l.key FROM t l LEFT SEMI JOIN u r ON l.n = r.n AND {r.v} WHERE {l.p}",
    "SELECT l.key FROM t l LEFT ANTI JOIN (SELECT * FROM u WHERE {v}) r ON l.n = r.n WHERE {l.p}",
    "SELECT r.key FROM (SELECT * FROM t WHERE {p}) l RIGHT SEMI JOIN u r ON l.n = r.n",
    "SELECT r.key FROM (SELECT * FROM t WHERE {p}) l RIGHT ANTI JOIN u r ON l.n = r.n",
    "SELECT l.key, x.key AS other FROM t l JOIN LATERAL "
    "(SELECT r.key FROM u r WHERE r.n = l.n AND {r.v}) x ON true WHERE {l.p}",
    "SELECT n, l.key, r.key AS other FROM t l JOIN u r USING (n) WHERE {l.p}",
    "SELECT l.key, r.key AS other FROM t l JOIN u r ON l.n = r.n "
    "WHERE ({l.p} AND {r.v}) OR l.key = 3",
)

_SUBQUERIES = shapes_of(
    "subquery",
    "SELECT key FROM t WHERE {p} AND n IN (SELECT n FROM u WHERE {v})",
    "SELECT key FROM t WHERE {p} AND n NOT IN (SELECT n FROM u WHERE {v} AND n IS NOT NULL)",
    "SELECT key FROM t WHERE {p} AND n NOT IN (SELECT n FROM t WHERE {q})",
    "SELECT key FROM t WHERE {p} AND (x > 0 OR n IN (SELECT n FROM u WHERE {v}))",
    "SELECT key FROM t WHERE {p} AND m NOT IN (SELECT m FROM t WHERE {q})",
    # A literal that reads as a scan of the plan.
    "SELECT key, 'TableScan: t' AS word FROM t WHERE {p} AND n NOT IN (SELECT n FROM t WHERE {q})",
    "SELECT l.key FROM t l WHERE {l.p} AND EXISTS (SELECT 1 FROM u r WHERE r.n = l.n AND {r.v})",
    "SELECT l.key FROM t l WHERE {l.p} AND NOT EXISTS "
    "(SELECT 1 FROM t r WHERE r.m = l.m AND r.key <> l.key AND {r.q})",
    "SELECT l.key FROM t l WHERE {l.p} AND (l.n = 1 OR EXISTS "
    "(SELECT 1 FROM u r WHERE r.n = l.n AND {r.v}))",
    "SELECT key FROM t WHERE {p} AND EXISTS (SELECT 1 FROM u WHERE {v} AND key > 3)",
    "SELECT key, n FROM t WHERE {p} AND n >= (SELECT min(n) FROM t WHERE {q})",
    "SELECT key, (SELECT count(*) FROM u WHERE {v}) AS c FROM t WHERE {p}",
    "SELECT l.key, (SELECT count(*) FROM u r WHERE r.n = l.n AND {r.v}) AS c FROM t l WHERE {l.p}",
    "SELECT l.key, (SELECT max(r.key) FROM u r WHERE r.s = l.s AND {r.v}) AS c "
    "FROM t l WHERE {l.p}",
    "SELECT key, n > (SELECT min(n) FROM t WHERE {q}) AS above FROM u WHERE {v}",
)

_CTES = shapes_of(
    "cte",
    "WITH c AS (SELECT * FROM t WHERE {p}) SELECT l.key, r.key AS other "
    "FROM c l JOIN c r ON l.m = r.key",
    "WITH c AS (SELECT key, n FROM t WHERE {p}), e AS (SELECT n, count(*) AS rows FROM u "
    "WHERE {v} GROUP BY n) SELECT c.key, e.rows FROM c LEFT JOIN e ON c.n = e.n",
    "WITH RECURSIVE c AS (SELECT key, m FROM t WHERE {p} AND key < 9 UNION ALL "
    "SELECT t.key, t.m FROM c JOIN t ON t.key = c.key + 11 WHERE {t.q}) SELECT * FROM c",
    "WITH RECURSIVE c AS (SELECT 0 AS i UNION ALL SELECT i + 3 FROM c WHERE i < 60) "
    "SELECT c.i, t.s FROM c JOIN t ON t.key = c.i WHERE {t.p}",
)

_SETS = shapes_of(
    "set",
    "SELECT n FROM t WHERE {p} EXCEPT SELECT n FROM u WHERE {v}",
    "SELECT n, s FROM t WHERE {p} EXCEPT ALL SELECT n, s FROM t WHERE {q}",
    "SELECT n, s FROM t WHERE {p} INTERSECT SELECT n, s FROM t WHERE {q}",
    "SELECT n FROM t WHERE {p} INTERSECT ALL SELECT n FROM u WHERE {v}",
    "SELECT key FROM t WHERE {p} UNION ALL SELECT key FROM t WHERE {q}",
    "SELECT s FROM t WHERE {p} UNION SELECT s FROM u WHERE {v}",
    "SELECT s, count(*) AS rows FROM (SELECT s FROM t WHERE {p} UNION ALL "
    "SELECT s FROM u WHERE {v}) GROUP BY s",
)

_GROUPS = shapes_of(
    "aggregate",
    "SELECT n, count(*) AS rows, min(key) AS low, max(s) AS high FROM t WHERE {p} GROUP BY n",
    "SELECT count(*) FILTER (WHERE {q}) AS yes, count(*) AS rows FROM t WHERE {p}",
    "SELECT n, count(*) FILTER (WHERE {p}) AS yes FROM t GROUP BY n",
    "SELECT s, count(DISTINCT n) AS ns FROM t WHERE {p} GROUP BY s HAVING count(*) > 1",
    "SELECT {q} AS q, count(*) AS rows FROM t WHERE {p} GROUP BY 1",
    "SELECT n, array_agg(key ORDER BY key) AS keys FROM t WHERE {p} GROUP BY n",
    "SELECT sum(key) AS k, sum(n) AS n, bool_or({q}) AS q FROM t WHERE {p}",
    "SELECT DISTINCT s, n FROM t WHERE {p}",
    "SELECT DISTINCT a FROM t WHERE {p} AND cardinality(a) = 1 AND n < 4",
) + shapes_of(
    "grouping sets",
    "SELECT s, n, count(*) AS rows FROM t WHERE {p} GROUP BY ROLLUP (s, n)",
    "SELECT s, n, count(*) AS rows FROM t WHERE {p} GROUP BY CUBE (s, n)",
    "SELECT s, n, count(*) AS rows, grouping(s) AS g FROM t WHERE {p} AND n < 4 "
    "GROUP BY GROUPING SETS ((s, n), (s), ())",
)

_WINDOWS = shapes_of(
    "window",
    "SELECT key, row_number() OVER (PARTITION BY n ORDER BY key) AS r FROM t WHERE {p}",
    "SELECT key, r FROM (SELECT *, row_number() OVER (ORDER BY key) AS r FROM t) WHERE {p}",
    "SELECT key, lag(s) OVER (ORDER BY key) AS before FROM t WHERE {p}",
    "SELECT n, key FROM t WHERE {p} QUALIFY rank() OVER (PARTITION BY n ORDER BY key) <= 2",
    "SELECT key, count(*) OVER (PARTITION BY s) AS c FROM t WHERE {p} AND {q}",
)

_UNNESTS = shapes_of(
    "unnest",
    "SELECT key, unnest(a) AS label FROM t WHERE {p}",
    "SELECT label, count(*) AS rows FROM (SELECT unnest(a) AS label, n FROM t WHERE {p}) "
    "WHERE n < 4 GROUP BY label HAVING count(*) > 1",
    "SELECT t.key, w.i FROM t CROSS JOIN (SELECT unnest([1, 2]) AS i) AS w "
    "WHERE {t.p} AND t.n = w.i",
    "SELECT key, unnest(d) AS element FROM t WHERE {p} AND n = 2",
)

_STORED = (
    Shape(
        "view",
        "SELECT key, n FROM seen WHERE {q}",
        setup=("CREATE OR REPLACE VIEW seen AS SELECT * FROM t WHERE {p}",),
        teardown=("DROP VIEW seen",),
        weight=2,
    ),
    Shape(
        "prepared",
        "EXECUTE asked(2)",
        setup=("PREPARE asked AS SELECT key FROM t WHERE {p} AND n = $1",),
        teardown=("DEALLOCATE asked",),
        weight=2,
    ),
    Shape(
        "prepared",
        "EXECUTE asked({needle})",
        setup=("PREPARE asked AS SELECT key FROM t WHERE array_has(a, $1) AND {p}",),
        teardown=("DEALLOCATE asked",),
    ),
    Shape(
        "created",
        "SELECT count(*) AS rows, min(key) AS low FROM made",
        setup=("CREATE OR REPLACE TABLE made AS SELECT key, a FROM t WHERE {p}",),
        teardown=("DROP TABLE made",),
        weight=0.5,
    ),
)


def _chain(kind: str, text: str, ordered: bool = False) -> Shape:
    return Shape(kind, text, ordered, is_chain=True)


_CHAINS = (
    _chain("chain", "ctx.table('t').filter({p}).select('key', 's')"),
    _chain("chain", "ctx.table('t').filter({p}).filter({q}).select('key')"),
    _chain("chain", "ctx.table('t').filter({p}).aggregate([col('n')], [f.count(col('key'))])"),
    _chain("chain", "ctx.table('t').filter({p}).select('key').sort(col('key')).limit(6, 2)", True),
    _chain("chain", "ctx.table('t').filter({p}).select('s').distinct()"),
    _chain(
        "chain",
        "ctx.table('t').filter({p}).select('key', 'n').join(ctx.table('u').filter({v})"
        ".select(col('key').alias('other'), col('n').alias('n2')), left_on='n', right_on='n2')",
    ),
    _chain("chain", "ctx.table('t').filter({p}).select('key', 'a').unnest_columns('a')"),
    _chain(
        "chain",
        "ctx.sql('SELECT key, n FROM t').union(ctx.table('t').filter({p}).select('key', 'n'))",
    ),
    _chain(
        "chain",
        "ctx.table('t').filter({p}).with_column('c', col('n') + lit(1)).select('key', 'c')",
    ),
)

_CACHED = tuple(
    Shape("cached", text, cached=True)
    for text in (
        "SELECT key, s FROM t WHERE {p}",
        # No plan is rebuilt around these; one scan of the table has no predicate in the first.
        "SELECT key FROM t WHERE {p} AND n NOT IN (SELECT n FROM t WHERE n > 3)",
        "SELECT key FROM t WHERE {p} AND n NOT IN (SELECT n FROM t WHERE {q})",
    )
)

SHAPES: tuple[Shape, ...] = (
    *SIMPLE,
    *_FILTERS,
    *_ORDERED,
    *NEAR_SHAPES,
    *_JOINS,
    *_SUBQUERIES,
    *_CTES,
    *_SETS,
    *_GROUPS,
    *_WINDOWS,
    *_UNNESTS,
    *_STORED,
    *_CHAINS,
    *_CACHED,
)
