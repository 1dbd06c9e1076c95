"""A corpus of statements: each gives the answer of plain DataFusion, index or not.

Every statement runs three times: on a plain `SessionContext` over the rows in memory, in a
session that uses the indexes, and in one with `use_indexes=False`. The tables have NULL keys in
the joined columns, NULL lists, NULL elements, empty lists, duplicates, deleted rows and
fragments that no index covers. At the end the run prints which statements used an index.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from datafusion import DataFrame, SessionContext, col, lit
from datafusion import functions as f

from datafusion_lance.engine import LanceSessionContext

from .missing_postings import all_but, copy_without, no_postings
from .oracle_rows import (
    Comparison,
    TwiceStored,
    index_scans,
    memory_context,
    rows_of,
    store_twice,
)

IMAGES = pa.schema(
    [
        pa.field("shot", pa.int64(), nullable=False),
        pa.field("id", pa.int64()),
        pa.field("camera_id", pa.int64()),
        pa.field("place", pa.string()),
        pa.field("score", pa.float64()),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("codes", pa.large_list(pa.int16())),
    ]
)
CAMERAS = pa.schema(
    [
        pa.field("serial", pa.int64(), nullable=False),
        pa.field("id", pa.int64()),
        pa.field("owner", pa.string()),
        pa.field("year", pa.int32()),
        pa.field("features", pa.list_(pa.string())),
    ]
)
REVIEWS = pa.schema(
    [
        pa.field("review", pa.int64(), nullable=False),
        pa.field("image_id", pa.int64()),
        pa.field("author", pa.string()),
        pa.field("stars", pa.int32()),
        pa.field("words", pa.list_(pa.string())),
    ]
)

TAGS = ("night", "rain", "indoor", "car", "dog", "snow", "tree", "sea")
FEATURES = ("flash", "zoom", "gps", "raw", "wifi")
WORDS = ("sharp", "dark", "blurred", "warm", "flat", "grainy")
PLACES = ("Oslo", "Bergen", "Kyoto", "Lima", None)
OWNERS = ("ada", "bo", "cy", None)


def draw_list(draw: random.Random, labels: tuple[object, ...], longest: int) -> list[object] | None:
    """A list of up to `longest` labels: sometimes NULL, empty, with NULLs and duplicates."""
    if draw.random() < 0.08:
        return None
    return [
        None if draw.random() < 0.07 else draw.choice(labels)
        for _ in range(draw.randrange(longest + 1))
    ]


def images(draw: random.Random, shots: range) -> pa.Table:
    """Images: about 1 id in 12 is NULL, and some ids come twice."""
    n = len(shots)
    return rows_of(
        {
            "shot": shots,
            "id": [None if draw.random() < 0.08 else draw.randrange(200) for _ in shots],
            "camera_id": [None if draw.random() < 0.1 else draw.randrange(30) for _ in shots],
            "place": [draw.choice(PLACES) for _ in shots],
            "score": [None if draw.random() < 0.1 else draw.randrange(64) / 64 for _ in shots],
            "tags": [draw_list(draw, TAGS, 4) for _ in range(n)],
            "codes": [draw_list(draw, (-1, 0, 1, 7, 300, 32767), 3) for _ in range(n)],
        },
        IMAGES,
    )


def cameras(draw: random.Random, serials: range) -> pa.Table:
    """Cameras: ids are distinct, but for three that are NULL."""
    return rows_of(
        {
            "serial": serials,
            "id": [None if serial % 9 == 4 else serial for serial in serials],
            "owner": [draw.choice(OWNERS) for _ in serials],
            "year": [draw.choice((2001, 2010, 2015, 2020, None)) for _ in serials],
            "features": [draw_list(draw, FEATURES, 3) for _ in serials],
        },
        CAMERAS,
    )


def reviews(draw: random.Random, numbers: range) -> pa.Table:
    """Reviews of images, some of no image and some of images that are not there."""
    return rows_of(
        {
            "review": numbers,
            "image_id": [None if draw.random() < 0.08 else draw.randrange(240) for _ in numbers],
            "author": [draw.choice(OWNERS) for _ in numbers],
            "stars": [draw.choice((1, 2, 3, 4, 5, None)) for _ in numbers],
            "words": [draw_list(draw, WORDS, 3) for _ in numbers],
        },
        REVIEWS,
    )


def store_corpus_tables(folder: Path) -> tuple[TwiceStored, ...]:
    """The three tables of the corpus, written to `folder` and held in memory."""
    draw = random.Random(20)
    return (
        store_twice(
            folder,
            "images",
            images(draw, range(240)),
            key="shot",
            rows_per_fragment=50,
            indexed=("tags", "codes"),
            deleted_before=range(5, 240, 31),
            deleted_after=range(2, 240, 23),
            appended=images(draw, range(240, 300)),
        ),
        store_twice(
            folder,
            "cameras",
            cameras(draw, range(26)),
            key="serial",
            rows_per_fragment=10,
            indexed=("features",),
            deleted_after=(3, 17),
            appended=cameras(draw, range(26, 32)),
        ),
        store_twice(
            folder,
            "reviews",
            reviews(draw, range(200)),
            key="review",
            rows_per_fragment=64,
            indexed=("words",),
            deleted_before=range(0, 200, 17),
            appended=reviews(draw, range(200, 220)),
        ),
    )


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of the corpus.

    `run` is SQL, or builds a DataFrame on a context. `setup` runs before it. `ordered`: the
    statement orders totally. `rounded`: it aggregates floats inexactly. `within`: an unordered
    LIMIT may give any rows of this statement, so many as it gives.
    """

    name: str
    run: str | Callable[[SessionContext], DataFrame]
    setup: tuple[str, ...] = ()
    ordered: bool = False
    rounded: bool = False
    within: str | None = None

    def frame(self, context: SessionContext) -> DataFrame:
        for text in self.setup:
            context.sql(text).collect()
        return context.sql(self.run) if isinstance(self.run, str) else self.run(context)

    @property
    def comparison(self) -> Comparison:
        return Comparison(ordered=self.ordered, rounded=self.rounded)


STATEMENTS: tuple[Statement, ...] = (
    # Filters of one table.
    Statement("has", "SELECT id, place FROM images WHERE array_has(tags, 'night')"),
    Statement("any of two", "SELECT * FROM images WHERE array_has_any(tags, ['night', 'rain'])"),
    Statement(
        "all of two", "SELECT shot, tags FROM images WHERE array_has_all(tags, ['car', 'dog'])"
    ),
    Statement("not", "SELECT shot, tags FROM images WHERE NOT array_has(tags, 'indoor')"),
    Statement("is null", "SELECT shot FROM images WHERE array_has(tags, 'car') IS NULL"),
    Statement("is not true", "SELECT shot FROM images WHERE array_has(tags, 'car') IS NOT TRUE"),
    Statement(
        "the first query",
        "SELECT id FROM images WHERE array_has_any(tags, ['night', 'rain']) "
        "AND NOT array_has(tags, 'indoor') AND score > 0.5",
    ),
    Statement(
        "or of two columns",
        "SELECT shot FROM images WHERE array_has(tags, 'sea') OR array_has(codes, 300)",
    ),
    Statement(
        "or with a plain filter",
        "SELECT shot FROM images WHERE array_has(tags, 'sea') OR score < 0.125",
    ),
    Statement(
        "and under or",
        "SELECT shot, place FROM images WHERE (array_has(tags, 'car') AND place = 'Oslo') "
        "OR (array_has(tags, 'dog') AND place = 'Lima')",
    ),
    Statement(
        "not over and and or",
        "SELECT shot FROM images WHERE NOT (array_has(tags, 'car') AND "
        "(array_has(tags, 'dog') OR NOT array_has_any(codes, [0, 7])))",
    ),
    Statement(
        "case in where",
        "SELECT shot FROM images WHERE "
        "CASE WHEN array_has(tags, 'car') THEN score > 0.5 ELSE array_has(tags, 'dog') END",
    ),
    Statement("operator @>", "SELECT shot FROM images WHERE tags @> ['rain', 'snow']"),
    Statement("operator <@", "SELECT shot FROM images WHERE ['rain'] <@ tags AND id IS NOT NULL"),
    Statement("= ANY", "SELECT shot FROM images WHERE 'tree' = ANY(tags) AND place IS NULL"),
    Statement(
        "large list",
        "SELECT shot, codes FROM images WHERE array_has_all(codes, [0, 7])",
    ),
    Statement("count", "SELECT count(*) FROM images WHERE array_has(tags, 'rain')", ordered=True),
    Statement(
        "a constant for each row",
        "SELECT 1 AS one, 'x' AS x FROM images WHERE array_has(tags, 'rain')",
    ),
    Statement(
        "predicate as a column beside the filter",
        "SELECT shot, array_has(tags, 'dog') AS dog FROM images WHERE array_has(tags, 'car')",
    ),
    Statement(
        "in and between beside",
        "SELECT shot FROM images WHERE array_has(tags, 'tree') "
        "AND place IN ('Oslo', 'Kyoto') AND id BETWEEN 20 AND 150",
    ),
    Statement(
        "like and function beside",
        "SELECT upper(place) AS p, shot FROM images WHERE array_has(tags, 'tree') "
        "AND place LIKE '%o' AND abs(score - 0.5) < 0.4",
    ),
    Statement(
        "alias with a dot",
        'SELECT "a.b".place, sum("a.b".shot) AS s FROM images AS "a.b" '
        """WHERE array_has("a.b".tags, 'sea') GROUP BY "a.b".place""",
    ),
    Statement(
        "mixed case and quoted names",
        'SELECT "Shot" AS "My Shot" FROM (SELECT shot AS "Shot", tags AS "The Tags" FROM images) '
        """AS "T" WHERE array_has("T"."The Tags", 'sea') ORDER BY "Shot" """,
        ordered=True,
    ),
    Statement(
        "two columns of one name",
        "SELECT i.id, c.id FROM images i JOIN cameras c ON i.camera_id = c.id "
        "WHERE array_has(i.tags, 'sea')",
    ),
    # Order and limit.
    Statement(
        "top k",
        "SELECT shot, score FROM images WHERE array_has(tags, 'night') "
        "ORDER BY score DESC NULLS LAST, shot LIMIT 7",
        ordered=True,
    ),
    Statement(
        "limit and offset",
        "SELECT shot FROM images WHERE array_has(tags, 'night') ORDER BY shot LIMIT 10 OFFSET 5",
        ordered=True,
    ),
    Statement(
        "offset alone",
        "SELECT shot FROM images WHERE array_has(tags, 'night') ORDER BY shot OFFSET 20",
        ordered=True,
    ),
    Statement(
        "limit without order",
        "SELECT shot, tags FROM images WHERE array_has(tags, 'night') LIMIT 9",
        within="SELECT shot, tags FROM images WHERE array_has(tags, 'night')",
    ),
    Statement(
        "filter above limit",
        "SELECT shot FROM (SELECT * FROM images ORDER BY shot LIMIT 120) "
        "WHERE array_has(tags, 'night')",
    ),
    Statement(
        "distinct",
        "SELECT DISTINCT place FROM images WHERE array_has(tags, 'snow') AND score > 0.8",
    ),
    Statement(
        "distinct on",
        "SELECT DISTINCT ON (place) place, shot, score FROM images WHERE array_has(tags, 'car') "
        "ORDER BY place, score DESC, shot",
        ordered=True,
    ),
    # Joins.
    Statement(
        "inner join",
        "SELECT i.shot, c.owner FROM images i JOIN cameras c ON i.camera_id = c.id "
        "WHERE array_has(i.tags, 'night') AND array_has(c.features, 'gps')",
    ),
    Statement(
        "join using",
        "SELECT id, i.place, c.year FROM images i JOIN cameras c USING (id) "
        "WHERE array_has_any(c.features, ['gps', 'zoom'])",
    ),
    Statement(
        "left join",
        "SELECT i.shot, c.owner FROM images i LEFT JOIN cameras c ON i.camera_id = c.id "
        "WHERE array_has(i.tags, 'sea')",
    ),
    Statement(
        "left join, predicate in on",
        "SELECT i.shot, c.owner, c.features FROM images i LEFT JOIN cameras c "
        "ON i.camera_id = c.id AND array_has(c.features, 'raw')",
    ),
    Statement(
        "left join, predicate on the right in where",
        "SELECT i.shot, r.review FROM images i LEFT JOIN reviews r ON i.id = r.image_id "
        "WHERE array_has(r.words, 'sharp')",
    ),
    Statement(
        "left join, negated predicate on the right",
        "SELECT i.shot, r.review FROM images i LEFT JOIN reviews r ON i.id = r.image_id "
        "WHERE array_has(r.words, 'sharp') IS NOT TRUE AND i.score > 0.75",
    ),
    Statement(
        "right join",
        "SELECT i.shot, c.serial FROM images i RIGHT JOIN cameras c ON i.camera_id = c.id "
        "WHERE array_has(c.features, 'zoom')",
    ),
    Statement(
        "full join",
        "SELECT i.shot, c.serial FROM (SELECT * FROM images WHERE array_has(tags, 'sea')) i "
        "FULL JOIN (SELECT * FROM cameras WHERE array_has(features, 'wifi')) c "
        "ON i.camera_id = c.id",
    ),
    Statement(
        "cross join",
        "SELECT i.shot, c.serial FROM images i CROSS JOIN cameras c "
        "WHERE array_has_all(i.tags, ['sea', 'car']) AND array_has(c.features, 'flash')",
    ),
    Statement(
        "join on inequality",
        "SELECT i.shot, r.review FROM images i JOIN reviews r ON i.id < r.image_id AND "
        "i.id + 20 > r.image_id WHERE array_has(i.tags, 'snow') AND array_has(r.words, 'flat')",
    ),
    Statement(
        "join with a condition over both sides",
        "SELECT i.shot, r.review FROM images i LEFT JOIN reviews r ON i.id = r.image_id "
        "AND i.score * 5 > r.stars WHERE array_has(i.tags, 'tree')",
    ),
    Statement(
        "null-equal join",
        "SELECT i.shot, r.review FROM images i JOIN reviews r "
        "ON i.id IS NOT DISTINCT FROM r.image_id WHERE array_has(i.tags, 'sea')",
    ),
    Statement(
        "null-equal left join",
        "SELECT i.shot, r.review FROM images i LEFT JOIN reviews r "
        "ON (i.id IS NOT DISTINCT FROM r.image_id) AND array_has(r.words, 'warm') "
        "WHERE array_has(i.tags, 'sea')",
    ),
    Statement(
        "semi join",
        "SELECT i.shot FROM images i LEFT SEMI JOIN reviews r ON i.id = r.image_id "
        "WHERE array_has(i.tags, 'rain')",
    ),
    Statement(
        "anti join",
        "SELECT i.shot, i.id FROM images i LEFT ANTI JOIN reviews r ON i.id = r.image_id "
        "WHERE array_has(i.tags, 'rain')",
    ),
    Statement(
        "right semi join",
        "SELECT r.review FROM (SELECT * FROM images WHERE array_has(tags, 'rain')) i "
        "RIGHT SEMI JOIN reviews r ON i.id = r.image_id",
    ),
    Statement(
        "right anti join",
        "SELECT r.review FROM (SELECT * FROM images WHERE array_has(tags, 'rain')) i "
        "RIGHT ANTI JOIN reviews r ON i.id = r.image_id",
    ),
    Statement(
        "natural join",
        "SELECT id, owner, place FROM images NATURAL JOIN cameras WHERE array_has(features, 'gps')",
    ),
    Statement(
        "self-join with different predicates",
        "SELECT a.shot AS x, b.shot AS y FROM images a JOIN images b ON a.id = b.id "
        "WHERE array_has(a.tags, 'car') AND array_has(b.tags, 'dog')",
    ),
    Statement(
        "self-join with a predicate on one side",
        "SELECT a.shot AS x, b.shot AS y FROM images a JOIN images b ON a.camera_id = b.id "
        "WHERE array_has(a.tags, 'car')",
    ),
    Statement(
        "self-join on NULL keys",
        "SELECT a.shot AS x, b.shot AS y FROM images a JOIN images b "
        "ON a.id IS NOT DISTINCT FROM b.camera_id "
        "WHERE array_has(a.tags, 'car') AND NOT array_has(b.tags, 'dog') AND b.score > 0.5",
    ),
    Statement(
        "three tables",
        "SELECT i.shot, c.owner, r.author FROM images i JOIN cameras c ON i.camera_id = c.id "
        "JOIN reviews r ON r.image_id = i.id WHERE array_has_any(i.tags, ['night', 'rain']) "
        "AND array_has(c.features, 'gps') AND NOT array_has(r.words, 'blurred')",
    ),
    # Subqueries.
    Statement(
        "in",
        "SELECT shot FROM images WHERE id IN "
        "(SELECT image_id FROM reviews WHERE array_has(words, 'sharp'))",
    ),
    Statement(
        "not in",
        "SELECT shot FROM images WHERE array_has(tags, 'night') AND camera_id NOT IN "
        "(SELECT id FROM cameras WHERE id IS NOT NULL AND array_has(features, 'gps'))",
    ),
    Statement(
        "not in with NULL in the list",
        "SELECT count(*) AS n FROM images WHERE array_has(tags, 'night') AND camera_id NOT IN "
        "(SELECT id FROM cameras WHERE NOT array_has(features, 'gps'))",
    ),
    Statement(
        "not in under or",
        "SELECT shot FROM images WHERE array_has(tags, 'night') AND (score > 0.75 OR camera_id "
        "NOT IN (SELECT id FROM cameras WHERE array_has(features, 'gps') AND year < 2020))",
    ),
    Statement(
        "exists",
        "SELECT i.shot FROM images i WHERE array_has(i.tags, 'tree') AND EXISTS "
        "(SELECT 1 FROM reviews r WHERE r.image_id = i.id AND array_has(r.words, 'dark'))",
    ),
    Statement(
        "not exists",
        "SELECT i.shot FROM images i WHERE array_has(i.tags, 'tree') AND NOT EXISTS "
        "(SELECT 1 FROM reviews r WHERE r.image_id = i.id AND array_has(r.words, 'dark'))",
    ),
    Statement(
        "exists without correlation",
        "SELECT shot FROM images WHERE array_has(tags, 'tree') AND EXISTS "
        "(SELECT 1 FROM reviews WHERE array_has(words, 'dark') AND stars > 4)",
    ),
    Statement(
        "not exists without correlation",
        "SELECT shot FROM images WHERE array_has(tags, 'tree') AND NOT EXISTS "
        "(SELECT 1 FROM reviews WHERE array_has_all(words, ['dark', 'no such word']))",
    ),
    Statement(
        "exists under or",
        "SELECT i.shot FROM images i WHERE array_has(i.tags, 'tree') AND (i.score > 0.9 OR EXISTS "
        "(SELECT 1 FROM reviews r WHERE r.image_id = i.id AND r.stars > 3))",
    ),
    Statement(
        "scalar subquery in where",
        "SELECT shot, score FROM images WHERE array_has(tags, 'car') AND score > "
        "(SELECT avg(score) FROM images WHERE array_has(tags, 'car'))",
    ),
    Statement(
        "scalar subquery in select",
        "SELECT shot, (SELECT count(*) FROM reviews WHERE array_has(words, 'flat')) AS flat "
        "FROM images WHERE array_has(tags, 'snow')",
    ),
    Statement(
        "correlated scalar subquery",
        "SELECT i.shot, (SELECT max(r.stars) FROM reviews r WHERE r.image_id = i.id "
        "AND array_has(r.words, 'sharp')) AS best FROM images i WHERE array_has(i.tags, 'dog')",
    ),
    Statement(
        "correlated subquery in where",
        "SELECT i.shot FROM images i WHERE array_has(i.tags, 'dog') AND i.score > "
        "(SELECT avg(j.score) FROM images j WHERE j.place = i.place AND array_has(j.tags, 'dog'))",
    ),
    Statement(
        "derived table",
        "SELECT place, n FROM (SELECT place, count(*) AS n FROM images "
        "WHERE array_has(tags, 'dog') GROUP BY place) WHERE n > 8",
    ),
    Statement(
        "cte used twice",
        "WITH dogs AS (SELECT * FROM images WHERE array_has(tags, 'dog')) "
        "SELECT a.shot AS x, b.shot AS y FROM dogs a JOIN dogs b ON a.camera_id = b.camera_id "
        "WHERE a.shot < b.shot",
    ),
    Statement(
        "cte used with different predicates",
        "WITH shots AS (SELECT shot, id, tags FROM images WHERE score > 0.25) "
        "SELECT 'sea' AS w, shot FROM shots WHERE array_has(tags, 'sea') UNION ALL "
        "SELECT 'dog', shot FROM shots WHERE array_has_all(tags, ['dog', 'night'])",
    ),
    Statement(
        "recursive cte",
        "WITH RECURSIVE steps AS (SELECT 0 AS n UNION ALL SELECT n + 3 FROM steps WHERE n < 60) "
        "SELECT steps.n, images.shot FROM steps JOIN images ON images.id = steps.n "
        "WHERE array_has_any(images.tags, ['night', 'sea', 'dog'])",
    ),
    Statement(
        "predicate inside a recursive cte",
        "WITH RECURSIVE chain AS (SELECT shot, id FROM images WHERE array_has(tags, 'sea') "
        "AND shot < 40 UNION ALL SELECT i.shot, i.id FROM chain JOIN images i "
        "ON i.shot = chain.shot + 25 WHERE i.shot < 120) SELECT * FROM chain",
    ),
    Statement(
        "lateral join",
        "SELECT c.serial, x.shot FROM cameras c JOIN LATERAL (SELECT i.shot FROM images i "
        "WHERE i.camera_id = c.id AND array_has(i.tags, 'night')) x ON true "
        "WHERE array_has(c.features, 'gps')",
    ),
    # Aggregates.
    Statement(
        "group by",
        "SELECT place, count(*) AS n, min(shot) AS s, max(score) AS m FROM images "
        "WHERE array_has(tags, 'rain') GROUP BY place",
    ),
    Statement(
        "float aggregates",
        "SELECT place, avg(score) AS a, stddev(score) AS d, sum(score) AS s FROM images "
        "WHERE NOT array_has(tags, 'rain') GROUP BY place",
        rounded=True,
    ),
    Statement(
        "aggregate with filter",
        "SELECT place, count(*) FILTER (WHERE score > 0.5) AS high, count(DISTINCT camera_id) AS c "
        "FROM images WHERE array_has_any(tags, ['car', 'dog']) GROUP BY place",
    ),
    Statement(
        "aggregate whose filter is the predicate",
        "SELECT place, count(*) FILTER (WHERE array_has(tags, 'car')) AS cars FROM images "
        "GROUP BY place",
    ),
    Statement(
        "aggregate with order by",
        "SELECT place, array_agg(shot ORDER BY score DESC NULLS LAST, shot) AS shots "
        "FROM images WHERE array_has(tags, 'car') GROUP BY place",
    ),
    Statement(
        "aggregate with filter and order by",
        "SELECT place, array_agg(shot ORDER BY shot DESC) FILTER (WHERE id > 50) AS shots, "
        "first_value(shot ORDER BY score, shot) AS low FROM images "
        "WHERE array_has(tags, 'car') GROUP BY place",
    ),
    Statement(
        "string_agg with order by",
        "SELECT string_agg(owner, '+' ORDER BY serial) AS owners FROM cameras "
        "WHERE array_has(features, 'gps')",
        ordered=True,
    ),
    Statement(
        "having",
        "SELECT camera_id, count(*) AS n FROM images WHERE array_has_any(tags, ['night', 'sea']) "
        "GROUP BY camera_id HAVING count(*) > 4",
    ),
    Statement(
        "grouping sets",
        "SELECT place, camera_id, count(*) AS n, grouping(place) AS g FROM images "
        "WHERE array_has(tags, 'dog') AND camera_id < 6 "
        "GROUP BY GROUPING SETS ((place, camera_id), (place), ())",
    ),
    Statement(
        "rollup",
        "SELECT place, count(*) AS n FROM images WHERE array_has(tags, 'dog') "
        "GROUP BY ROLLUP (place)",
    ),
    Statement(
        "cube",
        "SELECT place, score > 0.5 AS high, count(*) AS n FROM images "
        "WHERE array_has(tags, 'dog') GROUP BY CUBE (place, score > 0.5)",
    ),
    Statement(
        "group by the predicate",
        "SELECT array_has(tags, 'dog') AS dog, count(*) AS n FROM images "
        "WHERE array_has_any(tags, ['dog', 'car']) GROUP BY 1",
    ),
    # Windows.
    Statement(
        "window",
        "SELECT shot, row_number() OVER (PARTITION BY place ORDER BY score, shot) AS r, "
        "lag(shot) OVER (ORDER BY shot) AS before FROM images WHERE array_has(tags, 'rain')",
    ),
    Statement(
        "window frame",
        "SELECT shot, sum(score) OVER (ORDER BY shot ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) "
        "AS s FROM images WHERE array_has(tags, 'rain') ORDER BY shot",
        ordered=True,
        rounded=True,
    ),
    Statement(
        "predicate above a window",
        "SELECT shot, r FROM (SELECT shot, tags, row_number() OVER (ORDER BY shot) AS r "
        "FROM images) WHERE array_has(tags, 'rain')",
    ),
    Statement(
        "predicate on the partition key above a window",
        "SELECT shot, r FROM (SELECT shot, tags, row_number() OVER (PARTITION BY tags "
        "ORDER BY shot) AS r FROM images) WHERE array_has(tags, 'rain')",
    ),
    Statement(
        "qualify",
        "SELECT place, shot, score FROM images WHERE array_has(tags, 'rain') "
        "QUALIFY rank() OVER (PARTITION BY place ORDER BY score DESC) <= 2",
    ),
    # Set operations.
    Statement(
        "union",
        "SELECT id FROM images WHERE array_has(tags, 'sea') UNION "
        "SELECT image_id FROM reviews WHERE array_has(words, 'dark')",
    ),
    Statement(
        "union all",
        "SELECT id, place FROM images WHERE array_has(tags, 'sea') UNION ALL "
        "SELECT image_id, author FROM reviews WHERE array_has(words, 'dark')",
    ),
    Statement(
        "union of two answers of one table",
        "SELECT shot FROM images WHERE array_has(tags, 'sea') UNION ALL "
        "SELECT shot FROM images WHERE array_has(codes, 7)",
    ),
    Statement(
        "except",
        "SELECT id FROM images WHERE array_has_any(tags, ['night', 'car']) EXCEPT "
        "SELECT image_id FROM reviews WHERE array_has(words, 'sharp')",
    ),
    Statement(
        "except all",
        "SELECT camera_id FROM images WHERE array_has(tags, 'night') EXCEPT ALL "
        "SELECT id FROM cameras WHERE array_has(features, 'zoom')",
    ),
    Statement(
        "except with NULLs on the left only",
        "SELECT id FROM images WHERE array_has(tags, 'car') EXCEPT "
        "SELECT id FROM images WHERE array_has(tags, 'dog') AND id IS NOT NULL",
    ),
    Statement(
        "intersect",
        "SELECT id FROM images WHERE array_has_any(tags, ['night', 'car']) INTERSECT "
        "SELECT image_id FROM reviews WHERE array_has_any(words, ['sharp', 'flat'])",
    ),
    Statement(
        "intersect all",
        "SELECT camera_id FROM images WHERE array_has(tags, 'rain') INTERSECT ALL "
        "SELECT id FROM cameras WHERE array_has_any(features, ['gps', 'zoom'])",
    ),
    Statement(
        "union under an aggregate",
        "SELECT k, count(*) AS n FROM (SELECT id AS k FROM images WHERE array_has(tags, 'sea') "
        "UNION ALL SELECT image_id FROM reviews WHERE array_has(words, 'flat')) GROUP BY k",
    ),
    # Unnest.
    Statement(
        "unnest the indexed column",
        "SELECT shot, unnest(tags) AS tag FROM images WHERE array_has(tags, 'sea')",
    ),
    Statement(
        "unnest, then group",
        "SELECT tag, count(*) AS n FROM (SELECT unnest(tags) AS tag FROM images "
        "WHERE array_has(tags, 'night')) GROUP BY tag",
    ),
    Statement(
        "unnest in from",
        "SELECT i.shot, u.tag FROM images i CROSS JOIN unnest(['dog', 'sea']) AS u(tag) "
        "WHERE array_has(i.tags, 'night') AND i.score > 0.5",
    ),
    Statement(
        "needle from another column",
        "SELECT i.shot, u.tag FROM images i JOIN unnest(['dog', 'sea']) AS u(tag) "
        "ON array_has(i.tags, u.tag) WHERE array_has(i.tags, 'night')",
    ),
    # Views and prepared statements.
    Statement(
        "view",
        "SELECT shot, owner FROM night_shots WHERE array_has(tags, 'rain')",
        setup=(
            "CREATE OR REPLACE VIEW night_shots AS SELECT i.shot, i.tags, c.owner FROM images i "
            "LEFT JOIN cameras c ON i.camera_id = c.id WHERE array_has(i.tags, 'night')",
        ),
    ),
    Statement(
        "predicate on a renamed column of a view",
        "SELECT s, count(*) AS n FROM renamed WHERE array_has_any(labels, ['sea', 'snow']) "
        "GROUP BY s",
        setup=(
            "CREATE OR REPLACE VIEW renamed AS "
            "SELECT place AS s, tags AS labels, score AS p FROM images",
        ),
    ),
    Statement(
        "view over a view",
        "SELECT * FROM outer_view WHERE n > 1",
        setup=(
            "CREATE OR REPLACE VIEW inner_view AS SELECT camera_id, tags FROM images "
            "WHERE array_has(tags, 'car')",
            "CREATE OR REPLACE VIEW outer_view AS SELECT camera_id, count(*) AS n "
            "FROM inner_view WHERE NOT array_has(tags, 'dog') GROUP BY camera_id",
        ),
    ),
    Statement(
        "prepared statement",
        "EXECUTE by_place('Oslo')",
        setup=(
            "PREPARE by_place AS SELECT shot, place FROM images "
            "WHERE array_has(tags, 'rain') AND place = $1",
        ),
    ),
    Statement(
        "prepared statement with the label as its parameter",
        "EXECUTE by_label('dog', 0.5)",
        setup=(
            "PREPARE by_label(TEXT, DOUBLE) AS SELECT shot FROM images "
            "WHERE array_has(tags, $1) AND score > $2",
        ),
    ),
    Statement(
        "named parameter",
        lambda c: c.sql(
            "SELECT shot FROM images WHERE array_has(tags, $label)", param_values={"label": "dog"}
        ),
    ),
    Statement(
        "created table",
        "SELECT place, count(*) AS n FROM dog_shots GROUP BY place",
        setup=(
            "CREATE OR REPLACE TABLE dog_shots AS SELECT shot, place FROM images "
            "WHERE array_has(tags, 'dog')",
        ),
    ),
    # DataFrame chains.
    Statement(
        "chain: filter and select",
        lambda c: (
            c.table("images").filter(f.array_has(col("tags"), lit("night"))).select("shot", "tags")
        ),
    ),
    Statement(
        "chain: filter above select",
        lambda c: (
            c.table("images")
            .select(col("shot"), col("tags").alias("labels"))
            .filter(f.array_has_any(col("labels"), f.make_array(lit("sea"), lit("dog"))))
        ),
    ),
    Statement(
        "chain: two filters and a computed column",
        lambda c: (
            c.table("images")
            .filter(f.array_has(col("tags"), lit("night")))
            .filter(col("score") > lit(0.25))
            .with_column("twice", col("score") * lit(2))
            .select("shot", "twice")
        ),
    ),
    Statement(
        "chain: aggregate",
        lambda c: (
            c.table("images")
            .filter(~f.array_has(col("tags"), lit("night")))
            .aggregate([col("place")], [f.count(col("shot")).alias("n")])
        ),
    ),
    Statement(
        "chain: sort and limit",
        lambda c: (
            c.table("images")
            .filter(f.array_has(col("tags"), lit("car")))
            .select("shot")
            .sort(col("shot").sort(ascending=True))
            .limit(6, offset=2)
        ),
        ordered=True,
    ),
    Statement(
        "chain: join",
        lambda c: (
            c.table("images")
            .filter(f.array_has(col("tags"), lit("car")))
            .select(col("shot"), col("camera_id"))
            .join(
                c.table("cameras").filter(f.array_has(col("features"), lit("gps"))),
                left_on="camera_id",
                right_on="id",
                how="inner",
            )
            .select("shot", "serial")
        ),
    ),
    Statement(
        "chain: anti join",
        lambda c: (
            c.table("cameras")
            .filter(f.array_has_any(col("features"), f.make_array(lit("gps"), lit("raw"))))
            .join(
                c.table("images").filter(f.array_has(col("tags"), lit("sea"))),
                left_on="id",
                right_on="camera_id",
                how="anti",
            )
            .select("serial", "id")
        ),
    ),
    Statement(
        "chain: union, distinct",
        lambda c: (
            c.table("images")
            .filter(f.array_has(col("tags"), lit("sea")))
            .filter(col("score") > lit(0.9))
            .select("place")
            .union(
                c.sql("SELECT author FROM reviews WHERE array_has(words, 'dark')"),
            )
            .distinct()
        ),
    ),
    Statement(
        "chain: except and intersect",
        lambda c: (
            c.sql("SELECT id FROM images WHERE array_has(tags, 'night')")
            .except_all(c.sql("SELECT id FROM images WHERE array_has(tags, 'dog')"))
            .intersect(c.sql("SELECT image_id AS id FROM reviews WHERE stars > 2"))
        ),
    ),
    Statement(
        "chain: window and unnest",
        lambda c: (
            c.table("images")
            .filter(f.array_has(col("tags"), lit("tree")))
            .with_column(
                "r", f.row_number(partition_by=[col("place")], order_by=[col("shot").sort()])
            )
            .select("shot", "r", "tags")
            .unnest_columns("tags")
        ),
    ),
    Statement(
        "chain: filter in sql, the rest in a chain",
        lambda c: (
            c.sql("SELECT shot, place, tags FROM images WHERE array_has(tags, 'snow')")
            .filter(f.array_has(col("tags"), lit("dog")))
            .drop("tags")
        ),
    ),
    Statement(
        "chain: view from a frame",
        lambda c: c.read_table(
            c.table("images").filter(f.array_has(col("tags"), lit("snow"))).into_view()
        ).filter(col("score") > lit(0.5)),
    ),
    # Statements whose predicate no index answers: they must still be right.
    Statement(
        "needle is a column",
        "SELECT shot FROM images WHERE array_has(tags, lower(place)) OR array_has(tags, 'sea')",
    ),
    Statement(
        "predicate over both sides of a join",
        "SELECT i.shot, c.serial FROM images i JOIN cameras c ON i.camera_id = c.id "
        "WHERE array_has(i.tags, 'sea') OR array_has(c.features, 'gps')",
    ),
    Statement(
        "predicate on another list function",
        "SELECT shot FROM images WHERE array_position(tags, 'sea') = 1",
    ),
)


class UsageReport:
    """Prints, at the end of a run, which statements of the corpus used an index."""

    def __init__(self, scans: dict[str, tuple[str, ...]]) -> None:
        self.scans = scans

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        used = sum(bool(scans) for scans in self.scans.values())
        terminalreporter.section(f"{used} of {len(self.scans)} statements use an index")
        for name, scans in self.scans.items():
            terminalreporter.line(f"{len(scans) or '-':>2}  {name}")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[TwiceStored, ...]:
    return store_corpus_tables(tmp_path_factory.mktemp("corpus"))


def session(tables: tuple[TwiceStored, ...], *, use_indexes: bool) -> LanceSessionContext:
    context = LanceSessionContext(use_indexes=use_indexes)
    for table in tables:
        context.register_lance(table.name, str(table.path))
    return context


@pytest.fixture(scope="module")
def memory(tables: tuple[TwiceStored, ...]) -> SessionContext:
    return memory_context(tables)


@pytest.fixture(scope="module")
def indexed(tables: tuple[TwiceStored, ...]) -> LanceSessionContext:
    return session(tables, use_indexes=True)


@pytest.fixture(scope="module")
def unindexed(tables: tuple[TwiceStored, ...]) -> LanceSessionContext:
    return session(tables, use_indexes=False)


class Corpus:
    """The corpus on its three contexts, each statement set up once on each of them."""

    def __init__(self, contexts: dict[str, SessionContext]) -> None:
        self.contexts = contexts
        self._frames: dict[tuple[str, str], DataFrame] = {}

    def frame(self, statement: Statement, where: str) -> DataFrame:
        key = (statement.name, where)
        if key not in self._frames:
            self._frames[key] = statement.frame(self.contexts[where])
        return self._frames[key]

    def scans(self) -> dict[str, tuple[str, ...]]:
        return {s.name: index_scans(self.frame(s, "indexed")) for s in STATEMENTS}


@pytest.fixture(scope="module")
def corpus(
    memory: SessionContext, indexed: LanceSessionContext, unindexed: LanceSessionContext
) -> Corpus:
    return Corpus({"memory": memory, "indexed": indexed, "unindexed": unindexed})


@pytest.fixture(scope="module")
def scans(corpus: Corpus, request: pytest.FixtureRequest) -> dict[str, tuple[str, ...]]:
    scans = corpus.scans()
    request.config.pluginmanager.register(UsageReport(scans))
    return scans


@pytest.mark.parametrize("where", ["indexed", "unindexed"])
@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda s: s.name)
def test_answer_is_that_of_plain_datafusion(
    corpus: Corpus, statement: Statement, where: str
) -> None:
    actual, expected = corpus.frame(statement, where), corpus.frame(statement, "memory")
    if statement.within is None:
        statement.comparison.assert_equal(actual, expected, statement.name)
        return
    got, whole = actual.to_arrow_table(), corpus.contexts["memory"].sql(statement.within)
    assert got.schema.equals(expected.to_arrow_table().schema)
    assert got.num_rows == expected.count()
    surplus = Counter(map(repr, got.to_pylist())) - Counter(map(repr, whole.to_pylist()))
    assert not surplus


def test_at_least_fifty_statements_use_an_index(scans: dict[str, tuple[str, ...]]) -> None:
    assert sum(bool(lines) for lines in scans.values()) >= 50


def test_no_statement_uses_an_index_when_they_are_off(corpus: Corpus) -> None:
    assert not [s.name for s in STATEMENTS if index_scans(corpus.frame(s, "unindexed"))]


@pytest.fixture(scope="module")
def emptied(
    tables: tuple[TwiceStored, ...], tmp_path_factory: pytest.TempPathFactory
) -> LanceSessionContext:
    """A session over copies of the tables whose indexes know of no element and no NULL list."""
    folder = tmp_path_factory.mktemp("emptied")
    context = LanceSessionContext()
    for table in tables:
        copy = folder / table.path.name
        copy_without(table.path, copy, no_postings, null_lists=False)
        context.register_lance(table.name, str(copy))
    return context


READS_WHAT_AN_INDEX_FOUND = frozenset(("created table",))
"""The statement reads a table in memory, but an index served the query that made it."""

ANSWERED_ALIKE_BY_ANY_INDEX = frozenset(("not in with NULL in the list",))
"""NOT IN a list with NULL gives no row, whatever else is in the list."""


def test_answers_from_an_emptied_index_change_and_no_others(
    corpus: Corpus, scans: dict[str, tuple[str, ...]], emptied: LanceSessionContext
) -> None:
    changed = {
        statement.name
        for statement in STATEMENTS
        if statement.comparison.difference(
            statement.frame(emptied).to_arrow_table(),
            corpus.frame(statement, "memory").to_arrow_table(),
        )
    }
    used = {name for name, lines in scans.items() if lines}
    assert changed == (used | READS_WHAT_AN_INDEX_FOUND) - ANSWERED_ALIKE_BY_ANY_INDEX


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("all of two", "dog"),
        ("operator @>", "snow"),
        ("top k", "night"),
        ("limit and offset", "night"),
        ("left join", "sea"),
        ("anti join", "rain"),
        ("exists", "tree"),
        ("not in", "night"),
        ("correlated scalar subquery", "dog"),
        ("window", "rain"),
        ("unnest the indexed column", "sea"),
        ("view", "night"),
        ("prepared statement", "rain"),
        ("chain: filter and select", "night"),
    ],
)
def test_one_posting_taken_out_changes_the_answer(
    name: str,
    label: str,
    corpus: Corpus,
    tables: tuple[TwiceStored, ...],
    tmp_path: Path,
) -> None:
    (statement,) = (s for s in STATEMENTS if s.name == name)
    expected = corpus.frame(statement, "memory").to_arrow_table()
    shot, address = covered_row_with(label, tables[0], set(expected["shot"].to_pylist()))
    context = LanceSessionContext()
    for table in tables:
        context.register_lance(table.name, str(table.path))
    copy_without(tables[0].path, tmp_path / "images.lance", all_but("tags", label, address))
    context.deregister_table("images")
    context.register_lance("images", str(tmp_path / "images.lance"))
    changed = statement.frame(context).to_arrow_table()
    assert shot in expected["shot"].to_pylist()
    assert shot not in changed["shot"].to_pylist()


def covered_row_with(label: str, table: TwiceStored, shots: set[int]) -> tuple[int, int]:
    """One of the shots that an index covers and whose tags have the label; its row address."""
    dataset = lance.dataset(table.path)
    covered = dataset.describe_indices()[0].segments[0].fragment_ids
    rows = dataset.to_table(columns=["shot", "tags"], with_row_address=True).to_pylist()
    return next(
        (row["shot"], row["_rowaddr"])
        for row in rows
        if row["shot"] in shots
        and label in (row["tags"] or ())
        and row["_rowaddr"] >> 32 in covered
    )
