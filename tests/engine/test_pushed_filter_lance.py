"""What is sent to Lance's scanner means the same there, whatever index serves it."""

from __future__ import annotations

import random
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

from datafusion_lance.engine.lance_filter import lance_sql, split_filter
from datafusion_lance.engine.lance_table import LanceTable
from datafusion_lance.engine.predicate_kernels import keep
from datafusion_lance.engine.pushed_filter import (
    And,
    Column,
    Comparison,
    InList,
    IsNotNull,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
)

from .filter_cases import DOMAINS

FLAT = [name for name in DOMAINS if name not in ("labels", "vector", "pair", "nothing")]
BLOOM_FILTERED = {"i8", "i64", "u64", "f32", "f64", "text", "large_text", "binary", "date32"}
ROWS = 9000  # more than two pages of a BTREE


class Cases:
    """Random columns and predicates, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.choose = random.Random(seed)
        self.numbers = np.random.default_rng(seed)

    def table(self, rows: int) -> pa.Table:
        columns: dict[str, pa.Array] = {"n": pa.array(np.arange(rows))}
        for name in FLAT:
            values = DOMAINS[name].values
            chosen = self.numbers.integers(0, len(values), rows)
            if self.choose.random() < 0.5:
                chosen.sort()  # so that zones and pages differ
            null = self.numbers.random(rows) < self.choose.choice([0.0, 0.2, 0.9])
            columns[name] = values.take(pa.array(chosen, mask=null))
        return pa.table(columns)

    def predicate(self, depth: int) -> Predicate:
        shape = self.choose.random()
        if depth and shape < 0.5:
            parts = (self.predicate(depth - 1), self.predicate(depth - 1))
            return self.choose.choice([And(parts), Or(parts), Not(parts[0])])
        name = self.choose.choice(FLAT)
        column, values = Column(name), DOMAINS[name].values
        if shape < 0.6:
            return self.choose.choice([IsNull(column), IsNotNull(column), Column("flag")])
        if shape < 0.75:
            some = self.numbers.integers(0, len(values), self.choose.randrange(1, 6))
            return InList(column, values.take(pa.array(some)))
        operator = self.choose.choice(["=", "<>", "<", "<=", ">", ">="])
        return Comparison(operator, column, Literal(self.choose.choice(list(values))))


@pytest.mark.parametrize("seed", range(6))
def test_indexes_and_scans_agree_with_the_kernels(tmp_path: Path, seed: int) -> None:
    cases = Cases(seed)
    stable = bool(seed % 2)
    dataset = lance.write_dataset(
        cases.table(ROWS), tmp_path / "t", max_rows_per_file=4000, enable_stable_row_ids=stable
    )
    for name in FLAT:
        kinds = ["BTREE", "BITMAP", "ZONEMAP", None]
        if name in BLOOM_FILTERED:
            kinds.append("BLOOMFILTER")
        kind = cases.choose.choice(kinds)
        if kind is not None and name != "dictionary":
            dataset.create_scalar_index(name, kind)
    if seed % 3:
        lance.write_dataset(cases.table(2000), tmp_path / "t", mode="append")
        dataset = lance.dataset(tmp_path / "t")
        dataset.delete("n % 3 = 0")
    dataset = lance.dataset(tmp_path / "t")
    rows = dataset.to_table(columns=FLAT, with_row_id=True).combine_chunks().to_batches()[0]
    zone_mapped = LanceTable(dataset).zone_mapped
    sent = 0
    for _ in range(80):
        predicate = cases.predicate(3)
        split = split_filter(predicate, dataset.schema, lambda: zone_mapped)
        if split.sql is None:
            continue
        sent += 1
        scanner = dataset.scanner(columns=FLAT, filter=split.sql, with_row_id=True)
        found = scanner.to_table().combine_chunks()
        if split.rest is not None and found.num_rows:
            found = found.filter(keep(split.rest, found.to_batches()[0]))
        expected = rows.filter(keep(predicate, rows))
        assert sorted(found["_rowid"].to_pylist()) == sorted(expected["_rowid"].to_pylist()), (
            predicate,
            split.sql,
        )
    assert sent > 20


SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("it's `odd`", pa.int64()),
        ('Odd "name', pa.string()),
        ("f", pa.float64()),
        ("g", pa.float64()),
        ("flag", pa.bool_()),
        ("tags", pa.list_(pa.string())),
        ("at", pa.timestamp("us", "UTC")),
    ]
)


def number(value: float | None) -> Literal:
    return Literal(pa.scalar(value, pa.float64()))


@pytest.mark.parametrize(
    ("predicate", "sql"),
    [
        (Comparison("=", Column("id"), Literal(pa.scalar(5))), "`id` = 5"),
        (Comparison("<", Literal(pa.scalar(5)), Column("id")), "`id` > 5"),
        (
            Comparison(">=", Column("id"), Literal(pa.scalar(-(2**63)))),
            "`id` >= arrow_cast('-9223372036854775808', 'Int64')",
        ),
        (
            Comparison("=", Column('Odd "name'), Literal(pa.scalar("it's"))),
            "`Odd \"name` = 'it''s'",
        ),
        (Comparison("<", Column("f"), number(0.1)), "`f` < arrow_cast('0.1', 'Float64')"),
        (
            Comparison("=", Column("at"), Literal(pa.scalar(7, pa.timestamp("us", "UTC")))),
            "`at` = arrow_cast(7, 'Timestamp(Microsecond, Some(\"UTC\"))')",
        ),
        (InList(Column("id"), pa.array([1, 2])), "`id` IN (1, 2)"),
        (Not(Or((Column("flag"), IsNull(Column("tags"))))), "NOT ((`flag`) OR (`tags` IS NULL))"),
        # What Lance reads otherwise, or cannot read:
        (Comparison("=", Column("f"), number(float("nan"))), None),
        (Comparison("=", Column("f"), number(None)), None),
        (Comparison("<=", Column("f"), Column("g")), None),
        (InList(Column("f"), pa.array([0.0])), None),
        (Comparison("=", Column("it's `odd`"), Literal(pa.scalar(1))), None),
        (IsNull(Column("it's `odd`")), None),
        (Comparison("=", Column("tags"), Literal(pa.scalar(["a"]))), None),
    ],
)
def test_the_text_sent(predicate: Predicate, sql: str | None) -> None:
    assert lance_sql(predicate, SCHEMA) == sql


def test_conjuncts_are_divided() -> None:
    sent = Comparison("=", Column("id"), Literal(pa.scalar(5)))
    kept = InList(Column("f"), pa.array([0.0, 1.0]))
    split = split_filter(And((sent, kept, Column("flag"))), SCHEMA)
    assert split.sql == "(`id` = 5) AND (`flag`)"
    assert split.rest == kept


def test_floats_with_a_zone_map_are_kept() -> None:
    below = Comparison("<", Column("f"), number(1.0))
    assert split_filter(below, SCHEMA, lambda: {"g"}).rest is None
    assert split_filter(below, SCHEMA, lambda: {"f"}).rest == below


def test_btree_serves_a_filter(tmp_path: Path) -> None:
    dataset = lance.write_dataset(pa.table({"id": range(10_000)}), tmp_path / "t")
    dataset.create_scalar_index("id", "BTREE")
    split = split_filter(Comparison("=", Column("id"), Literal(pa.scalar(77))), dataset.schema)
    plan = dataset.scanner(filter=split.sql).explain_plan()
    assert "ScalarIndexQuery" in plan
