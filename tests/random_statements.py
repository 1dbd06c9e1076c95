"""Random statements over the tables of the plan shapes, each the same for a seed.

An answer is the same each time as a multiset: what is limited or picked is ordered by all that
comes out, and no float is summed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from .plan_shape_tables import LABELS, TAGS
from .test_statements import FEATURES, OWNERS, PLACES, WORDS

_INT, _TEXT, _FLOAT, _LABELS, _CODES, _BOXES = "int", "text", "float", "labels", "codes", "boxes"

_TABLES = {
    "images": {
        "shot": _INT,
        "id": _INT,
        "camera_id": _INT,
        "place": _TEXT,
        "score": _FLOAT,
        "tags": _LABELS,
        "codes": _CODES,
        "boxes": _BOXES,
    },
    "cameras": {"serial": _INT, "id": _INT, "owner": _TEXT, "year": _INT, "features": _LABELS},
    "reviews": {
        "review": _INT,
        "image_id": _INT,
        "author": _TEXT,
        "stars": _INT,
        "words": _LABELS,
    },
}
_ALL_LABELS = (*TAGS, *FEATURES, *WORDS)
_TEXTS = tuple(text for text in (*PLACES, *OWNERS) if text is not None)
_CODE_VALUES = (-1, 0, 1, 7, 300, 32767)


@dataclass(frozen=True, slots=True)
class _Columns:
    """Columns as they are written in a query, and their types."""

    types: dict[str, str] = field(default_factory=dict)

    def of(self, *kinds: str) -> list[str]:
        return [name for name, kind in self.types.items() if kind in kinds]


@dataclass(frozen=True, slots=True)
class _Query:
    """A query whose columns have the names and types of `columns`, none of them qualified."""

    text: str
    columns: dict[str, str]


def random_statement(seed: int) -> str:
    """The statement of a seed."""
    return _Generator(random.Random(seed)).query(3).text


class _Generator:
    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self._aliases = 0

    # -- queries --------------------------------------------------------------------------

    def query(self, depth: int) -> _Query:
        makers = [self._plain] * 4
        if depth > 0:
            makers += [self._joined] * 5
            makers += [
                self._set_operation,
                self._aggregated,
                self._filtered_aggregate,
                self._windowed,
                self._distinct_on,
                self._limited,
                self._unnested,
                self._with_scalar,
                self._cte,
                self._lateral,
                self._above,
                self._above,
            ]
        return self._draw.choice(makers)(depth)

    def _plain(self, depth: int) -> _Query:
        table, alias, columns = self._table()
        where = self._condition(columns, depth)
        return self._select(f"{table} {alias}", columns, where)

    def _above(self, depth: int) -> _Query:
        source, columns = self._source(depth - 1)
        return self._select(source, columns, self._condition(columns, depth))

    def _joined(self, depth: int) -> _Query:
        left, left_columns = self._source(depth - 1)
        right, right_columns = self._source(depth - 1)
        how = self._draw.choice(
            ("JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN",
             "LEFT ANTI JOIN")
        )  # fmt: skip
        both = _Columns(left_columns.types | right_columns.types)
        on = [self._equality(left_columns, right_columns)]
        if self._draw.random() < 0.3:
            on.append(self._condition(both, 0))
        kept = left_columns if "SEMI" in how or "ANTI" in how else both
        where = self._condition(kept, depth) if self._draw.random() < 0.8 else None
        return self._select(f"{left} {how} {right} ON {' AND '.join(on)}", kept, where)

    def _lateral(self, depth: int) -> _Query:
        left, left_columns = self._source(0)
        table, alias, columns = self._table()
        on = self._equality(left_columns, columns)
        inner = self._condition(columns, 0)
        how = self._draw.choice(("JOIN", "LEFT JOIN"))
        name, kind = self._draw.choice(list(columns.types.items()))
        lateral = self._alias()
        source = (
            f"{left} {how} LATERAL (SELECT {name} AS v FROM {table} {alias} "
            f"WHERE {on} AND {inner}) {lateral} ON true"
        )
        both = _Columns(left_columns.types | {f"{lateral}.v": kind})
        return self._select(source, both, self._condition(both, depth))

    def _set_operation(self, depth: int) -> _Query:
        kind = self._draw.choice((_INT, _TEXT, _LABELS))
        sides = []
        for _ in range(2):
            source, columns = self._source(depth - 1, kind)
            where = self._condition(columns, depth)
            column = self._draw.choice(columns.of(kind))
            sides.append(f"SELECT {column} AS c0 FROM {source} WHERE {where}")
        operator = self._draw.choice(
            ("UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL")
        )
        return _Query(f"{sides[0]} {operator} {sides[1]}", {"c0": kind})

    def _aggregated(self, depth: int) -> _Query:
        source, columns = self._source(depth - 1, _INT)
        key, kind = self._draw.choice(list(columns.types.items()))
        value = self._draw.choice(columns.of(_INT))
        where = self._condition(columns, depth)
        filtered = (
            f" FILTER (WHERE {self._condition(columns, 0)})" if self._draw.random() < 0.3 else ""
        )
        group = self._draw.choice(("{}", "{}", "ROLLUP ({})")).format(key)
        having = f" HAVING {self._condition(_Columns({key: kind}), 0)}" * self._draw.randrange(2)
        if group.startswith("ROLLUP"):
            having = ""
        text = (
            f"SELECT {key} AS c0, count(*){filtered} AS c1, max({value}) AS c2 FROM {source} "
            f"WHERE {where} GROUP BY {group}{having}"
        )
        return _Query(text, {"c0": kind, "c1": _INT, "c2": _INT})

    def _filtered_aggregate(self, depth: int) -> _Query:
        source, columns = self._source(depth - 1, _INT)
        value = self._draw.choice(columns.of(_INT))
        calls = [
            f"{call} FILTER (WHERE {self._condition(columns, 1)}) AS c{i}"
            for i, call in enumerate((f"sum({value})", "count(*)"))
        ]
        if self._draw.random() < 0.2:
            calls[1] = "count(*) AS c1"
        return _Query(f"SELECT {', '.join(calls)} FROM {source}", {"c0": _INT, "c1": _INT})

    def _windowed(self, depth: int) -> _Query:
        source, columns = self._source(depth - 1, _INT)
        keys = self._draw.sample(list(columns.types), 1)
        value = self._draw.choice(columns.of(_INT))
        over = f"OVER (PARTITION BY {', '.join(keys)} ORDER BY {value})"
        call = self._draw.choice(("rank()", f"max({value})", "count(*)"))
        inner = self._select(source, columns, None, {f"{call} {over}": _INT}, must=keys)
        alias = self._alias()
        outer = _Columns({f"{alias}.{name}": kind for name, kind in inner.columns.items()})
        return self._select(f"({inner.text}) {alias}", outer, self._condition(outer, depth))

    def _distinct_on(self, depth: int) -> _Query:
        source, columns = self._source(depth - 1, _INT)
        value = self._draw.choice(columns.of(_INT))
        # Among several partitions DataFusion cannot tell the first one of lists of structs, and
        # panics where the rows are ordered by one column twice.
        keys = [name for name in columns.of(_INT, _TEXT, _LABELS) if name != value]
        if not keys:
            return self._limited(depth)
        key = self._draw.choice(keys)
        kind = columns.types[key]
        where = self._condition(columns, depth)
        text = (
            f"SELECT DISTINCT ON ({key}) {key} AS c0, {value} AS c1 FROM {source} WHERE {where} "
            f"ORDER BY {key}, {value}"
        )
        alias = self._alias()
        outer = _Columns({f"{alias}.c0": kind, f"{alias}.c1": _INT})
        return self._select(f"({text}) {alias}", outer, self._condition(outer, 0))

    def _limited(self, depth: int) -> _Query:
        source, columns = self._source(depth - 1, _INT)
        kinds = (_INT, _TEXT, _LABELS)
        chosen = self._draw.sample(columns.of(*kinds), min(2, len(columns.of(*kinds))))
        names = ", ".join(f"{name} AS c{i}" for i, name in enumerate(chosen))
        where = self._condition(columns, depth)
        order = ", ".join(chosen)
        limit = self._draw.choice(("LIMIT 20", "LIMIT 15 OFFSET 5", "OFFSET 7"))
        text = f"SELECT {names} FROM {source} WHERE {where} ORDER BY {order} {limit}"
        alias = self._alias()
        outer = _Columns({f"{alias}.c{i}": columns.types[n] for i, n in enumerate(chosen)})
        return self._select(f"({text}) {alias}", outer, self._condition(outer, 0))

    def _unnested(self, depth: int) -> _Query:
        source, columns = self._source(depth - 1, _LABELS)
        lists = self._draw.choice(columns.of(_LABELS))
        where = self._condition(columns, depth)
        key, kind = self._draw.choice(list(columns.types.items()))
        text = f"SELECT {key} AS c0, unnest({lists}) AS c1 FROM {source} WHERE {where}"
        return _Query(text, {"c0": kind, "c1": _TEXT})

    def _with_scalar(self, depth: int) -> _Query:
        source, columns = self._source(depth - 1, _INT)
        table, alias, inner = self._table()
        inner_where = self._condition(inner, 0)
        if self._draw.random() < 0.4:
            inner_where += f" AND {self._equality(columns, inner)}"
        value = self._draw.choice(inner.of(_INT))
        call = self._draw.choice(("count(*)", f"max({value})"))
        scalar = f"(SELECT {call} FROM {table} {alias} WHERE {inner_where})"
        where = self._condition(columns, depth)
        if self._draw.random() < 0.5:
            return self._select(source, columns, where, {scalar: _INT})
        where += f" AND {self._draw.choice(columns.of(_INT))} < {scalar}"
        return self._select(source, columns, where)

    def _cte(self, depth: int) -> _Query:
        inner = self.query(depth - 1)
        name, a, b = self._alias(), self._alias(), self._alias()
        left = _Columns({f"{a}.{column}": kind for column, kind in inner.columns.items()})
        right = _Columns({f"{b}.{column}": kind for column, kind in inner.columns.items()})
        column = self._draw.choice(list(inner.columns))
        where = self._condition(_Columns(left.types | right.types), 1)
        body = self._select(
            f"{name} {a} JOIN {name} {b} ON {a}.{column} = {b}.{column}",
            _Columns(left.types | right.types),
            where,
        )
        return _Query(f"WITH {name} AS ({inner.text}) {body.text}", body.columns)

    # -- their parts ----------------------------------------------------------------------

    def _select(
        self,
        source: str,
        columns: _Columns,
        where: str | None,
        more: dict[str, str] | None = None,
        must: Sequence[str] = (),
    ) -> _Query:
        chosen = dict(self._draw.sample(list(columns.types.items()), min(3, len(columns.types))))
        chosen = {name: columns.types[name] for name in must} | chosen | (more or {})
        outputs = {f"c{i}": kind for i, kind in enumerate(chosen.values())}
        names = ", ".join(f"{name} AS c{i}" for i, name in enumerate(chosen))
        distinct = "DISTINCT " if self._draw.random() < 0.1 else ""
        condition = f" WHERE {where}" if where else ""
        return _Query(f"SELECT {distinct}{names} FROM {source}{condition}", outputs)

    def _source(self, depth: int, kind: str | None = None) -> tuple[str, _Columns]:
        """Something to select from, with a column of that type."""
        if depth > 0 and self._draw.random() < 0.6:
            for _ in range(5):
                inner = self.query(depth - 1)
                if kind is None or kind in inner.columns.values():
                    alias = self._alias()
                    types = {f"{alias}.{name}": of for name, of in inner.columns.items()}
                    return f"({inner.text}) {alias}", _Columns(types)
        table, alias, columns = self._table()
        return f"{table} {alias}", columns

    def _table(self) -> tuple[str, str, _Columns]:
        table = self._draw.choice(("images", "images", "cameras", "reviews"))
        alias = self._alias()
        return table, alias, _Columns({f"{alias}.{n}": k for n, k in _TABLES[table].items()})

    def _alias(self) -> str:
        self._aliases += 1
        return f"r{self._aliases}"

    def _equality(self, left: _Columns, right: _Columns) -> str:
        kind = self._draw.choice(
            [kind for kind in (_INT, _INT, _TEXT) if left.of(kind) and right.of(kind)] or [None]
        )
        if kind is None:
            return "true"
        operator = "IS NOT DISTINCT FROM" if self._draw.random() < 0.2 else "="
        sides = self._draw.choice(left.of(kind)), self._draw.choice(right.of(kind))
        return f"({sides[0]} {operator} {sides[1]})"

    def _condition(self, columns: _Columns, depth: int) -> str:
        """A predicate of ANDs, ORs and NOTs; with depth, over subqueries, too."""
        roll = self._draw.random()
        if roll < 0.25:
            return f"({self._condition(columns, depth)} AND {self._condition(columns, depth)})"
        if roll < 0.4:
            return f"({self._condition(columns, depth)} OR {self._condition(columns, depth)})"
        if roll < 0.47:
            return f"NOT {self._condition(columns, depth)}"
        if roll < 0.52:
            test = self._draw.choice(("IS NULL", "IS NOT TRUE", "IS TRUE", "IS NOT NULL"))
            return f"({self._condition(columns, 0)}) {test}"
        if roll < 0.62 and depth > 0:
            return self._subquery_test(columns)
        if roll < 0.88 and columns.of(_LABELS, _CODES, _BOXES):
            return self._list_predicate(columns)
        return self._plain_predicate(columns)

    def _list_predicate(self, columns: _Columns) -> str:
        column = self._draw.choice(columns.of(_LABELS, _CODES, _BOXES))
        kind = columns.types[column]
        if kind == _BOXES:
            label = self._draw.choice([one for one in LABELS if one is not None])
            more = self._draw.choice(("", " AND confidence > 0.5", " OR label IS NULL"))
            return f"any_element({column}, 'label = ''{label}''{more}')"
        if kind == _CODES:
            return f"array_has({column}, {self._draw.choice(_CODE_VALUES)})"
        labels = [f"'{label}'" for label in self._draw.sample(_ALL_LABELS, 2)]
        if self._draw.random() < 0.5:
            labels = [f"'{label}'" for label in self._draw.sample(TAGS, 2)]
        return self._draw.choice(
            (
                f"array_has({column}, {labels[0]})",
                f"array_has({column}, {labels[0]})",
                f"array_has_any({column}, [{', '.join(labels)}])",
                f"array_has_all({column}, [{', '.join(labels)}])",
                f"array_has_any({column}, [])",
            )
        )

    def _plain_predicate(self, columns: _Columns) -> str:
        column = self._draw.choice(list(columns.types))
        match columns.types[column]:
            case "int":
                return f"{column} {self._draw.choice('<>=')} {self._draw.randrange(200)}"
            case "float":
                return f"{column} {self._draw.choice('<>')} {self._draw.randrange(64) / 64}"
            case "text":
                return f"{column} = '{self._draw.choice(_TEXTS)}'"
            case _:
                return f"{column} IS {self._draw.choice(('', 'NOT '))}NULL"

    def _subquery_test(self, columns: _Columns) -> str:
        table, alias, inner = self._table()
        where = self._condition(inner, 0)
        outer = columns.of(_INT)
        negated = self._draw.choice(("", "NOT "))
        if outer and self._draw.random() < 0.6:
            value = self._draw.choice(inner.of(_INT))
            if self._draw.random() < 0.5:
                where += f" AND {value} IS NOT NULL"
            return (
                f"{self._draw.choice(outer)} {negated}IN "
                f"(SELECT {value} FROM {table} {alias} WHERE {where})"
            )
        on = self._equality(columns, inner)
        return f"{negated}EXISTS (SELECT 1 FROM {table} {alias} WHERE {on} AND {where})"
