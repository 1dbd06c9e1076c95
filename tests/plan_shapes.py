"""A hundred statements whose plans have different shapes, five of each class.

They read three tables: `images` (key `shot`; label list indexes on `tags` and `codes`, a list
element index on `boxes`), `cameras` (key `serial`; `features`) and `reviews` (key `review`;
`words`). Each holds a predicate that an index could answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class PlanShape:
    """A statement, and the class of plans that it stands for.

    `setup` runs before it, `then` after it: the last statement of `then`, where there is one,
    gives the answer, as of a statement that writes. `{folder}` in any of them is a folder to
    write to. `parameters` are the values of `$name`. `ordered`: the statement orders totally.
    """

    shape: str
    name: str
    sql: str
    setup: tuple[str, ...] = ()
    then: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    ordered: bool = False

    @property
    def writes(self) -> bool:
        return bool(self.then)


_EMPTY_SHOTS = "CREATE OR REPLACE TABLE shots (shot BIGINT, place VARCHAR)"
_SHOTS = "SELECT shot, place FROM shots"

PLAN_SHAPES: tuple[PlanShape, ...] = (
    # Unnest above the scan.
    PlanShape(
        "unnest",
        "unnest the indexed column",
        "SELECT shot, unnest(tags) AS tag FROM images WHERE array_has(tags, 'sea')",
    ),
    PlanShape(
        "unnest",
        "unnest the structs",
        "SELECT shot, b FROM (SELECT shot, unnest(boxes) AS b FROM images "
        "WHERE any_element(boxes, 'label = ''car'' AND confidence > 0.5'))",
    ),
    PlanShape(
        "unnest",
        "unnest, group, order",
        "SELECT tag, count(*) AS n FROM (SELECT unnest(tags) AS tag FROM images "
        "WHERE array_has(tags, 'night')) GROUP BY tag ORDER BY n DESC, tag",
        ordered=True,
    ),
    PlanShape(
        "unnest",
        "unnest one side of a self-join",
        "SELECT a.shot, a.tag, b.shot AS other FROM (SELECT shot, camera_id, unnest(tags) AS tag "
        "FROM images WHERE array_has(tags, 'snow')) a JOIN images b ON a.camera_id = b.id",
    ),
    PlanShape(
        "unnest",
        "filter above an unnest",
        "SELECT * FROM (SELECT shot, tags, unnest(codes) AS code FROM images) "
        "WHERE array_has_all(tags, ['car', 'dog']) AND code > 0",
    ),
    # NOT IN.
    PlanShape(
        "not in",
        "outer predicate",
        "SELECT shot FROM images WHERE array_has(tags, 'night') AND camera_id NOT IN "
        "(SELECT id FROM cameras WHERE id IS NOT NULL)",
    ),
    PlanShape(
        "not in",
        "inner predicate, NULL in the list",
        "SELECT shot FROM images WHERE camera_id NOT IN "
        "(SELECT id FROM cameras WHERE array_has(features, 'gps'))",
    ),
    PlanShape(
        "not in",
        "the same table inside, without a predicate",
        "SELECT shot FROM images WHERE array_has(tags, 'night') AND id NOT IN "
        "(SELECT camera_id FROM images WHERE camera_id IS NOT NULL AND score > 0.5)",
    ),
    PlanShape(
        "not in",
        "the same table inside, with another predicate",
        "SELECT shot FROM images WHERE any_element(boxes, 'label = ''dog''') AND id NOT IN "
        "(SELECT id FROM images WHERE array_has(tags, 'sea') AND id IS NOT NULL)",
    ),
    PlanShape(
        "not in",
        "not in under or",
        "SELECT shot FROM images WHERE array_has(tags, 'rain') AND (score > 0.75 OR camera_id "
        "NOT IN (SELECT id FROM cameras WHERE array_has(features, 'raw')))",
    ),
    # EXCEPT.
    PlanShape(
        "except",
        "nullable keys",
        "SELECT id FROM images WHERE array_has_any(tags, ['night', 'car']) EXCEPT "
        "SELECT image_id FROM reviews WHERE array_has(words, 'sharp')",
    ),
    PlanShape(
        "except",
        "except all",
        "SELECT camera_id FROM images WHERE array_has(tags, 'night') EXCEPT ALL "
        "SELECT id FROM cameras WHERE array_has(features, 'zoom')",
    ),
    PlanShape(
        "except",
        "the whole table without some",
        "SELECT id, place FROM images EXCEPT SELECT id, place FROM images "
        "WHERE array_has(tags, 'car')",
    ),
    PlanShape(
        "except",
        "several columns, ordered",
        "SELECT id, place FROM images WHERE array_has(tags, 'tree') EXCEPT SELECT id, place "
        "FROM images WHERE any_element(boxes, 'label = ''car''') ORDER BY id, place",
        ordered=True,
    ),
    PlanShape(
        "except",
        "except of an except",
        "(SELECT id FROM images WHERE array_has(tags, 'dog') EXCEPT SELECT id FROM cameras) "
        "EXCEPT SELECT image_id FROM reviews WHERE array_has(words, 'dark')",
    ),
    # INTERSECT.
    PlanShape(
        "intersect",
        "nullable keys",
        "SELECT id FROM images WHERE array_has_any(tags, ['night', 'car']) INTERSECT "
        "SELECT image_id FROM reviews WHERE array_has_any(words, ['sharp', 'flat'])",
    ),
    PlanShape(
        "intersect",
        "intersect all",
        "SELECT camera_id FROM images WHERE array_has(tags, 'rain') INTERSECT ALL "
        "SELECT id FROM cameras WHERE array_has_any(features, ['gps', 'zoom'])",
    ),
    PlanShape(
        "intersect",
        "a list column",
        "SELECT place, tags FROM images WHERE array_has(tags, 'dog') INTERSECT "
        "SELECT place, tags FROM images WHERE any_element(boxes, 'label = ''car''')",
    ),
    PlanShape(
        "intersect",
        "one side without a predicate",
        "SELECT id FROM images INTERSECT SELECT image_id FROM reviews WHERE array_has(words, "
        "'warm')",
    ),
    PlanShape(
        "intersect",
        "under an aggregate",
        "SELECT count(*) AS n, max(id) AS m FROM (SELECT id FROM images WHERE "
        "array_has(tags, 'sea') INTERSECT SELECT camera_id FROM images WHERE "
        "array_has(tags, 'dog'))",
        ordered=True,
    ),
    # Grouping sets.
    PlanShape(
        "grouping sets",
        "grouping sets",
        "SELECT place, camera_id, count(*) AS n, grouping(place) AS g FROM images "
        "WHERE array_has(tags, 'dog') GROUP BY GROUPING SETS ((place, camera_id), (place), ())",
    ),
    PlanShape(
        "grouping sets",
        "rollup",
        "SELECT place, count(*) AS n FROM images WHERE any_element(boxes, 'label = ''car''') "
        "GROUP BY ROLLUP (place)",
    ),
    PlanShape(
        "grouping sets",
        "cube over an expression",
        "SELECT place, score > 0.5 AS high, count(*) AS n FROM images "
        "WHERE array_has(tags, 'dog') GROUP BY CUBE (place, score > 0.5)",
    ),
    PlanShape(
        "grouping sets",
        "rollup over a join",
        "SELECT c.owner, i.place, count(*) AS n FROM images i JOIN cameras c "
        "ON i.camera_id = c.id WHERE array_has(c.features, 'gps') GROUP BY ROLLUP (owner, place)",
    ),
    PlanShape(
        "grouping sets",
        "rollup beside the whole table",
        "SELECT place, count(*) AS n FROM images WHERE array_has(tags, 'sea') "
        "GROUP BY ROLLUP (place) UNION ALL SELECT 'all', count(*) FROM images",
    ),
    # Mark joins.
    PlanShape(
        "mark join",
        "exists under or",
        "SELECT i.shot FROM images i WHERE array_has(i.tags, 'tree') AND (i.score > 0.9 OR EXISTS "
        "(SELECT 1 FROM reviews r WHERE r.image_id = i.id AND r.stars > 3))",
    ),
    PlanShape(
        "mark join",
        "exists under or, predicate inside",
        "SELECT i.shot FROM images i WHERE i.score > 0.9 OR EXISTS "
        "(SELECT 1 FROM reviews r WHERE r.image_id = i.id AND array_has(r.words, 'dark'))",
    ),
    PlanShape(
        "mark join",
        "in under or, on the same table",
        "SELECT i.shot FROM images i WHERE array_has(i.tags, 'night') AND (i.place = 'Oslo' "
        "OR i.id IN (SELECT j.camera_id FROM images j WHERE j.score > 0.5))",
    ),
    PlanShape(
        "mark join",
        "not of a conjunction with exists",
        "SELECT i.shot FROM images i WHERE NOT (i.score > 0.25 AND EXISTS (SELECT 1 FROM reviews r "
        "WHERE r.image_id = i.id AND array_has(r.words, 'sharp')))",
    ),
    PlanShape(
        "mark join",
        "two of them",
        "SELECT i.shot FROM images i WHERE any_element(i.boxes, 'label = ''cat''') AND (EXISTS "
        "(SELECT 1 FROM reviews r WHERE r.image_id = i.id AND array_has(r.words, 'dark')) OR NOT "
        "EXISTS (SELECT 1 FROM cameras c WHERE c.id = i.camera_id))",
    ),
    # Recursive queries.
    PlanShape(
        "recursive",
        "joined with the recursion",
        "WITH RECURSIVE steps AS (SELECT 0 AS n UNION ALL SELECT n + 3 FROM steps WHERE n < 60) "
        "SELECT steps.n, images.shot FROM steps JOIN images ON images.id = steps.n "
        "WHERE array_has_any(images.tags, ['night', 'sea', 'dog'])",
    ),
    PlanShape(
        "recursive",
        "predicate in the first term",
        "WITH RECURSIVE chain AS (SELECT shot, id FROM images WHERE array_has(tags, 'sea') "
        "AND shot < 40 UNION ALL SELECT i.shot, i.id FROM chain JOIN images i "
        "ON i.shot = chain.shot + 25 WHERE i.shot < 120) SELECT * FROM chain",
    ),
    PlanShape(
        "recursive",
        "predicate in the recursive term",
        "WITH RECURSIVE chain AS (SELECT serial AS n FROM cameras WHERE serial < 3 UNION ALL "
        "SELECT i.shot FROM chain JOIN images i ON i.shot = chain.n + 7 "
        "WHERE array_has_any(i.tags, ['night', 'sea', 'dog', 'car'])) SELECT * FROM chain",
    ),
    PlanShape(
        "recursive",
        "predicates in both terms",
        "WITH RECURSIVE chain AS (SELECT shot AS n FROM images WHERE array_has(tags, 'night') "
        "UNION ALL SELECT i.shot FROM chain JOIN images i ON i.shot = chain.n + 1 "
        "WHERE any_element(i.boxes, 'label = ''car''')) SELECT n, count(*) AS c FROM chain "
        "GROUP BY n",
    ),
    PlanShape(
        "recursive",
        "recursion without duplicates",
        "WITH RECURSIVE reached AS (SELECT id FROM images WHERE array_has(tags, 'tree') "
        "AND id IS NOT NULL UNION SELECT r.review FROM reached JOIN reviews r ON r.image_id = "
        "reached.id WHERE array_has(r.words, 'sharp')) SELECT id FROM reached ORDER BY id",
        ordered=True,
    ),
    # DISTINCT ON.
    PlanShape(
        "distinct on",
        "one key",
        "SELECT DISTINCT ON (place) place, shot, score FROM images WHERE array_has(tags, 'car') "
        "ORDER BY place, score DESC, shot",
        ordered=True,
    ),
    PlanShape(
        "distinct on",
        "an expression as the key",
        "SELECT DISTINCT ON (shot % 7) shot % 7 AS k, shot FROM images "
        "WHERE any_element(boxes, 'label = ''dog''') ORDER BY shot % 7, shot DESC",
        ordered=True,
    ),
    PlanShape(
        "distinct on",
        "over a join",
        "SELECT DISTINCT ON (c.owner) c.owner, i.shot FROM images i JOIN cameras c "
        "ON i.camera_id = c.id WHERE array_has(c.features, 'gps') ORDER BY c.owner, i.shot",
        ordered=True,
    ),
    PlanShape(
        "distinct on",
        "as a derived table",
        "SELECT count(*) AS n FROM (SELECT DISTINCT ON (camera_id) camera_id, shot FROM images "
        "WHERE array_has(tags, 'rain') ORDER BY camera_id, shot) WHERE shot > 50",
        ordered=True,
    ),
    PlanShape(
        "distinct on",
        "the predicate on the key, above",
        "SELECT shot, tags FROM (SELECT DISTINCT ON (tags) tags, shot FROM images "
        "ORDER BY tags, shot) WHERE array_has(tags, 'night')",
    ),
    # Lateral joins.
    PlanShape(
        "lateral",
        "inner lateral",
        "SELECT c.serial, x.shot FROM cameras c JOIN LATERAL (SELECT i.shot FROM images i "
        "WHERE i.camera_id = c.id AND array_has(i.tags, 'night')) x ON true",
    ),
    PlanShape(
        "lateral",
        "left lateral",
        "SELECT c.serial, x.shot FROM cameras c LEFT JOIN LATERAL (SELECT i.shot FROM images i "
        "WHERE i.camera_id = c.id AND array_has(i.tags, 'night')) x ON true "
        "WHERE array_has(c.features, 'gps')",
    ),
    PlanShape(
        "lateral",
        "lateral aggregate",
        "SELECT c.serial, x.n FROM cameras c CROSS JOIN LATERAL (SELECT count(*) AS n "
        "FROM images i WHERE i.camera_id = c.id AND any_element(i.boxes, 'label = ''car''')) x",
    ),
    PlanShape(
        "lateral",
        "lateral with a condition",
        "SELECT i.shot, x.review FROM images i LEFT JOIN LATERAL (SELECT r.review, r.stars "
        "FROM reviews r WHERE r.image_id = i.id) x ON x.stars > 2 "
        "WHERE array_has(i.tags, 'snow')",
    ),
    PlanShape(
        "lateral",
        "lateral over the same table",
        "SELECT a.shot, x.other FROM images a JOIN LATERAL (SELECT max(b.shot) AS other "
        "FROM images b WHERE b.place = a.place) x ON true WHERE array_has(a.tags, 'dog')",
    ),
    # Subqueries in SELECT.
    PlanShape(
        "subquery in select",
        "count without correlation",
        "SELECT shot, (SELECT count(*) FROM reviews WHERE array_has(words, 'flat')) AS flat "
        "FROM images WHERE score > 0.5",
    ),
    PlanShape(
        "subquery in select",
        "count and an outer predicate on the same table",
        "SELECT shot, (SELECT count(*) FROM images WHERE array_has(tags, 'sea')) AS n "
        "FROM images WHERE array_has(tags, 'snow')",
    ),
    PlanShape(
        "subquery in select",
        "correlated maximum",
        "SELECT i.shot, (SELECT max(r.stars) FROM reviews r WHERE r.image_id = i.id "
        "AND array_has(r.words, 'sharp')) AS best FROM images i",
    ),
    PlanShape(
        "subquery in select",
        "correlated count",
        "SELECT i.shot, (SELECT count(*) FROM reviews r WHERE r.image_id = i.id) AS n "
        "FROM images i WHERE any_element(i.boxes, 'label = ''car''')",
    ),
    PlanShape(
        "subquery in select",
        "no table outside",
        "SELECT (SELECT count(*) FROM images WHERE array_has(tags, 'night')) AS nights, "
        "(SELECT max(shot) FROM images WHERE array_has(tags, 'dog')) AS last_dog",
        ordered=True,
    ),
    # Outer joins whose inner side carries the predicate.
    PlanShape(
        "outer join",
        "in on",
        "SELECT i.shot, c.owner, c.features FROM images i LEFT JOIN cameras c "
        "ON i.camera_id = c.id AND array_has(c.features, 'raw')",
    ),
    PlanShape(
        "outer join",
        "in where",
        "SELECT i.shot, r.review FROM images i LEFT JOIN reviews r ON i.id = r.image_id "
        "WHERE array_has(r.words, 'sharp')",
    ),
    PlanShape(
        "outer join",
        "right join, in where",
        "SELECT r.review, i.shot FROM images i RIGHT JOIN reviews r ON i.id = r.image_id "
        "WHERE any_element(i.boxes, 'label = ''car''') AND r.stars > 2",
    ),
    PlanShape(
        "outer join",
        "full join, in where",
        "SELECT i.shot, c.serial FROM images i FULL JOIN cameras c ON i.camera_id = c.id "
        "WHERE array_has(c.features, 'gps')",
    ),
    PlanShape(
        "outer join",
        "self-join, in where",
        "SELECT a.shot, b.shot AS other FROM images a LEFT JOIN images b ON a.id = b.camera_id "
        "WHERE array_has(b.tags, 'sea') AND a.score > 0.25",
    ),
    # Predicates inside subqueries.
    PlanShape(
        "subquery",
        "in",
        "SELECT shot FROM images WHERE id IN "
        "(SELECT image_id FROM reviews WHERE array_has(words, 'sharp'))",
    ),
    PlanShape(
        "subquery",
        "not exists",
        "SELECT i.shot FROM images i WHERE NOT EXISTS "
        "(SELECT 1 FROM reviews r WHERE r.image_id = i.id AND array_has(r.words, 'dark'))",
    ),
    PlanShape(
        "subquery",
        "scalar subquery over the same table",
        "SELECT shot, score FROM images WHERE array_has(tags, 'car') AND score > "
        "(SELECT avg(score) FROM images WHERE array_has(tags, 'dog'))",
    ),
    PlanShape(
        "subquery",
        "scalar subquery with a count",
        "SELECT serial FROM cameras WHERE serial < "
        "(SELECT count(*) FROM images WHERE array_has_all(tags, ['night', 'car']))",
    ),
    PlanShape(
        "subquery",
        "compared with all",
        "SELECT i.shot FROM images i WHERE array_has(i.tags, 'dog') AND i.score >= "
        "(SELECT max(j.score) FROM images j WHERE j.place = i.place AND array_has(j.tags, 'sea'))",
    ),
    # CTEs.
    PlanShape(
        "cte",
        "used twice",
        "WITH dogs AS (SELECT * FROM images WHERE array_has(tags, 'dog')) "
        "SELECT a.shot AS x, b.shot AS y FROM dogs a JOIN dogs b ON a.camera_id = b.camera_id "
        "WHERE a.shot < b.shot",
    ),
    PlanShape(
        "cte",
        "used with different predicates",
        "WITH some AS (SELECT shot, id, tags FROM images WHERE score > 0.25) "
        "SELECT 'sea' AS w, shot FROM some WHERE array_has(tags, 'sea') UNION ALL "
        "SELECT 'dog', shot FROM some WHERE array_has_all(tags, ['dog', 'night'])",
    ),
    PlanShape(
        "cte",
        "with and without the predicate",
        "WITH places AS (SELECT place, count(*) AS n FROM images GROUP BY place), "
        "nights AS (SELECT place, shot FROM images WHERE array_has(tags, 'night')) "
        "SELECT nights.shot, places.n FROM nights JOIN places ON nights.place = places.place",
    ),
    PlanShape(
        "cte",
        "a chain of them",
        "WITH a AS (SELECT * FROM images), b AS (SELECT shot, tags, boxes, id FROM a "
        "WHERE array_has(tags, 'rain')), c AS (SELECT shot FROM b WHERE id > 20 AND "
        "any_element(boxes, 'label = ''car''')) SELECT * FROM c ORDER BY shot",
        ordered=True,
    ),
    PlanShape(
        "cte",
        "limited before the predicate's join",
        "WITH first AS (SELECT shot, camera_id FROM images ORDER BY shot LIMIT 100) "
        "SELECT first.shot, c.serial FROM first JOIN cameras c ON first.camera_id = c.id "
        "WHERE array_has(c.features, 'zoom')",
    ),
    # Views.
    PlanShape(
        "view",
        "predicate in the view",
        "SELECT shot, owner FROM night_shots WHERE owner IS NOT NULL",
        setup=(
            "CREATE OR REPLACE VIEW night_shots AS SELECT i.shot, i.tags, c.owner FROM images i "
            "LEFT JOIN cameras c ON i.camera_id = c.id WHERE array_has(i.tags, 'night')",
        ),
    ),
    PlanShape(
        "view",
        "predicate on a renamed column",
        "SELECT s, count(*) AS n FROM renamed WHERE array_has_any(labels, ['sea', 'snow']) "
        "GROUP BY s",
        setup=(
            "CREATE OR REPLACE VIEW renamed AS "
            "SELECT place AS s, tags AS labels, score AS p FROM images",
        ),
    ),
    PlanShape(
        "view",
        "a view over a view",
        "SELECT * FROM outer_view WHERE n > 1",
        setup=(
            "CREATE OR REPLACE VIEW inner_view AS SELECT camera_id, tags FROM images "
            "WHERE array_has(tags, 'car')",
            "CREATE OR REPLACE VIEW outer_view AS SELECT camera_id, count(*) AS n "
            "FROM inner_view WHERE NOT array_has(tags, 'dog') GROUP BY camera_id",
        ),
    ),
    PlanShape(
        "view",
        "predicate above a grouping view",
        "SELECT tags, n FROM by_tags WHERE array_has(tags, 'night') AND n > 0",
        setup=(
            "CREATE OR REPLACE VIEW by_tags AS SELECT tags, count(*) AS n FROM images "
            "GROUP BY tags",
        ),
    ),
    PlanShape(
        "view",
        "a view twice, once with a predicate",
        "SELECT a.shot, b.shot AS other FROM plain_view a JOIN plain_view b ON a.id = b.camera_id "
        "WHERE any_element(a.boxes, 'label = ''car''')",
        setup=("CREATE OR REPLACE VIEW plain_view AS SELECT * FROM images WHERE score > 0.25",),
    ),
    # Unions.
    PlanShape(
        "union",
        "union",
        "SELECT id FROM images WHERE array_has(tags, 'sea') UNION "
        "SELECT image_id FROM reviews WHERE array_has(words, 'dark')",
    ),
    PlanShape(
        "union",
        "two answers of one table",
        "SELECT shot FROM images WHERE array_has(tags, 'sea') UNION ALL "
        "SELECT shot FROM images WHERE array_has(codes, 7)",
    ),
    PlanShape(
        "union",
        "predicate above the union",
        "SELECT k, labels FROM (SELECT id AS k, tags AS labels FROM images UNION ALL "
        "SELECT image_id, words FROM reviews) WHERE array_has(labels, 'dark')",
    ),
    PlanShape(
        "union",
        "one branch without a predicate",
        "SELECT shot, tags FROM images WHERE array_has(tags, 'sea') UNION ALL "
        "SELECT shot, tags FROM images WHERE score > 0.9 ORDER BY shot, tags LIMIT 30",
        ordered=True,
    ),
    PlanShape(
        "union",
        "by name, with other types",
        "SELECT shot AS k, score AS v FROM images WHERE array_has(tags, 'night') UNION BY NAME "
        "SELECT stars AS v, review AS k FROM reviews WHERE array_has(words, 'sharp')",
    ),
    # Prepared statements, the parameters among the needles.
    PlanShape(
        "prepared",
        "a label",
        "EXECUTE by_label('dog', 0.5)",
        setup=(
            "PREPARE by_label(TEXT, DOUBLE) AS SELECT shot FROM images "
            "WHERE array_has(tags, $1) AND score > $2",
        ),
    ),
    PlanShape(
        "prepared",
        "two labels in a list",
        "EXECUTE by_labels('dog', 'night')",
        setup=(
            "PREPARE by_labels(TEXT, TEXT) AS SELECT shot FROM images "
            "WHERE array_has_all(tags, [$1, $2])",
        ),
    ),
    PlanShape(
        "prepared",
        "a label under not in",
        "EXECUTE without('gps')",
        setup=(
            "PREPARE without(TEXT) AS SELECT shot FROM images WHERE camera_id NOT IN "
            "(SELECT id FROM cameras WHERE array_has(features, $1) AND id IS NOT NULL)",
        ),
    ),
    PlanShape(
        "prepared",
        "a named parameter",
        "SELECT place, count(*) AS n FROM images WHERE array_has(tags, $label) "
        "GROUP BY ROLLUP (place)",
        parameters={"label": "dog"},
    ),
    PlanShape(
        "prepared",
        "the predicate of any_element",
        "SELECT shot FROM images WHERE any_element(boxes, $predicate) AND id > $least",
        parameters={"predicate": "label = 'car' AND confidence > 0.5", "least": 20},
    ),
    # Writes.
    PlanShape(
        "write",
        "insert",
        "INSERT INTO shots SELECT shot, place FROM images WHERE array_has(tags, 'sea')",
        setup=(_EMPTY_SHOTS,),
        then=(_SHOTS,),
    ),
    PlanShape(
        "write",
        "insert, the same table twice",
        "INSERT INTO shots SELECT a.shot, b.place FROM images a JOIN images b "
        "ON a.camera_id = b.id WHERE any_element(a.boxes, 'label = ''car''')",
        setup=(_EMPTY_SHOTS,),
        then=(_SHOTS,),
    ),
    PlanShape(
        "write",
        "create table",
        "CREATE OR REPLACE TABLE dog_shots AS SELECT shot, place FROM images "
        "WHERE array_has(tags, 'dog')",
        then=("SELECT * FROM dog_shots",),
    ),
    PlanShape(
        "write",
        "create table with a group",
        "CREATE OR REPLACE TABLE places AS SELECT place, count(*) AS n FROM images "
        "WHERE any_element(boxes, 'label = ''dog''') GROUP BY place",
        then=("SELECT * FROM places",),
    ),
    PlanShape(
        "write",
        "copy",
        "COPY (SELECT shot, place FROM images WHERE array_has(tags, 'night') ORDER BY shot) "
        "TO '{folder}/nights.parquet' STORED AS PARQUET",
        then=(
            "CREATE OR REPLACE EXTERNAL TABLE nights STORED AS PARQUET "
            "LOCATION '{folder}/nights.parquet'",
            "SELECT * FROM nights",
        ),
    ),
    # Two tables and more, and one table twice.
    PlanShape(
        "several tables",
        "three tables",
        "SELECT i.shot, c.owner, r.author FROM images i JOIN cameras c ON i.camera_id = c.id "
        "JOIN reviews r ON r.image_id = i.id WHERE array_has_any(i.tags, ['night', 'rain']) "
        "AND array_has(c.features, 'gps') AND NOT array_has(r.words, 'blurred')",
    ),
    PlanShape(
        "several tables",
        "one table, two predicates",
        "SELECT a.shot AS x, b.shot AS y FROM images a JOIN images b ON a.id = b.id "
        "WHERE array_has(a.tags, 'car') AND any_element(b.boxes, 'label = ''dog''')",
    ),
    PlanShape(
        "several tables",
        "null-equal keys",
        "SELECT a.shot AS x, b.shot AS y FROM images a JOIN images b "
        "ON a.id IS NOT DISTINCT FROM b.camera_id "
        "WHERE array_has(a.tags, 'car') AND NOT array_has(b.tags, 'dog') AND b.score > 0.5",
    ),
    PlanShape(
        "several tables",
        "null-equal expressions",
        "SELECT a.shot AS x, b.shot AS y FROM images a JOIN images b "
        "ON a.id + 1 IS NOT DISTINCT FROM b.camera_id * 2 WHERE array_has(a.tags, 'car')",
    ),
    PlanShape(
        "several tables",
        "offset without a limit",
        "SELECT a.shot AS x, b.shot AS y FROM images a JOIN images b ON a.camera_id = b.id "
        "WHERE array_has(a.tags, 'car') ORDER BY x, y OFFSET 5",
        ordered=True,
    ),
    # Predicates of several indexes under AND, OR, NOT.
    PlanShape(
        "combination",
        "or of two indexes",
        "SELECT shot FROM images WHERE array_has(tags, 'sea') OR "
        "any_element(boxes, 'label = ''car'' AND confidence > 0.75')",
    ),
    PlanShape(
        "combination",
        "not over and and or",
        "SELECT shot FROM images WHERE NOT (array_has(tags, 'car') AND "
        "(any_element(boxes, 'label = ''dog''') OR NOT array_has_any(codes, [0, 7])))",
    ),
    PlanShape(
        "combination",
        "deep, with plain filters",
        "SELECT shot FROM images WHERE ((array_has(tags, 'car') AND place = 'Oslo') OR "
        "(any_element(boxes, 'label = ''dog''') AND NOT (array_has(codes, 7) OR "
        "array_has(tags, 'sea')) AND score > 0.25)) AND id % 2 = 0",
    ),
    PlanShape(
        "combination",
        "tests of truth",
        "SELECT shot FROM images WHERE array_has(tags, 'sea') IS NOT TRUE AND "
        "(any_element(boxes, 'label = ''car''') IS NULL OR array_has(codes, 7) IS FALSE)",
    ),
    PlanShape(
        "combination",
        "a common conjunct in every branch of an OR",
        "SELECT shot FROM images WHERE (array_has(tags, 'night') AND score > 0.5) OR "
        "(array_has(tags, 'night') AND place = 'Lima') OR (array_has(tags, 'night') AND id < 9)",
    ),
    # Predicates under windows, in an aggregate's FILTER, HAVING, QUALIFY.
    PlanShape(
        "window and aggregate",
        "above a window that is partitioned by the column",
        "SELECT shot, r FROM (SELECT shot, tags, row_number() OVER (PARTITION BY tags "
        "ORDER BY shot) AS r FROM images) WHERE array_has(tags, 'rain')",
    ),
    PlanShape(
        "window and aggregate",
        "in an aggregate's filter",
        "SELECT count(*) FILTER (WHERE array_has(tags, 'car')) AS cars, "
        "max(score) FILTER (WHERE array_has(tags, 'car') AND shot > 9) AS best FROM images",
        ordered=True,
    ),
    PlanShape(
        "window and aggregate",
        "in the filter of a grouped aggregate",
        "SELECT place, count(*) FILTER (WHERE array_has(tags, 'car')) AS cars FROM images "
        "GROUP BY place",
    ),
    PlanShape(
        "window and aggregate",
        "having on the key",
        "SELECT tags, count(*) AS n FROM images GROUP BY tags "
        "HAVING array_has(tags, 'sea') AND count(*) > 0",
    ),
    PlanShape(
        "window and aggregate",
        "qualify beside where",
        "SELECT place, shot, score FROM images WHERE any_element(boxes, 'label = ''car''') "
        "QUALIFY rank() OVER (PARTITION BY place ORDER BY score DESC, shot) <= 2",
    ),
)
