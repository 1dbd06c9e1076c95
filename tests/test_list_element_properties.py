"""A list element index never changes an answer: with it, without it, and by the definition.

Any types of fields, any keys in any order, any predicates, several segments, deleted rows,
fragments without index; what is expected comes from `any_element_reference`, over the rows as
they were before they were written.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, note, settings
from hypothesis import strategies as st

from datafusion_lance.engine import LanceSessionContext

from .any_element_reference import Is, Not, Predicate
from .list_element_tables import AnyElement, Table, queries, tables
from .oracle_rows import index_scans

PREDICATES = 8
"""How many predicates a table is asked, each of which counts as an example."""


@dataclass(slots=True)
class Tally:
    """What was asked, for the proof that the index had a part in it."""

    predicates: int = 0
    statements: int = 0
    served: int = 0
    served_conditions: int = 0
    selective: int = 0

    def __str__(self) -> str:
        return (
            f"{self.predicates} predicates, an index served {self.served} of them alone and "
            f"{self.served_conditions} inside a condition; {self.statements} statements, "
            f"{self.selective} found some rows but not all"
        )


class _Sessions:
    """A written table, with and without its indexes."""

    def __init__(self, table: Table, path: Path, tally: Tally) -> None:
        table.write(path)
        self._rows = table.live_rows()
        self._indexed, self._plain = LanceSessionContext(), LanceSessionContext(use_indexes=False)
        for session in (self._indexed, self._plain):
            session.register_lance("t", path)
        self._tally = tally

    def check(self, call: AnyElement, condition: Predicate) -> None:
        """The call, its negation, its NULL rows and the condition find what they should.

        Without an index, the call and the condition are computed on every row besides.
        """
        for one in (call, Not(call), Is(call, None), condition):
            self._find(one)
        self._count(condition)
        self._select(call, condition)
        self._tally.predicates += 1
        self._tally.served += self._is_served(call)
        self._tally.served_conditions += self._is_served(condition)

    def _is_served(self, condition: Predicate) -> bool:
        statement = f"SELECT id FROM t WHERE {condition.sql()}"
        return bool(index_scans(self._indexed.sql(statement)))

    def _find(self, condition: Predicate) -> None:
        statement = f"SELECT id FROM t WHERE {condition.sql()}"
        note(statement)
        expected = [row["id"] for row in self._rows if condition.truth(row) is True]
        assert sorted(self._indexed.sql(statement).to_pydict()["id"]) == expected
        self._tally.statements += 1
        self._tally.selective += 0 < len(expected) < len(self._rows)

    def _select(self, call: AnyElement, condition: Predicate) -> None:
        answers = f"SELECT id, {call.sql()} AS call, {condition.sql()} AS condition FROM t"
        note(answers)
        expected = [(row["id"], call.truth(row), condition.truth(row)) for row in self._rows]
        columns = self._plain.sql(answers).to_pydict().values()
        assert sorted(zip(*columns, strict=True), key=itemgetter(0)) == expected
        statement = f"SELECT id FROM t WHERE {condition.sql()}"
        found = sorted(self._plain.sql(statement).to_pydict()["id"])
        assert found == [row for row, _, truth in expected if truth is True]

    def _count(self, condition: Predicate) -> None:
        statement = f"SELECT count(*) AS n FROM t WHERE {condition.sql()}"
        note(statement)
        expected = sum(condition.truth(row) is True for row in self._rows)
        assert self._indexed.sql(statement).to_pydict()["n"] == [expected]


def test_an_index_changes_no_answer() -> None:
    tally = Tally()

    @settings(max_examples=max(1, settings().max_examples // PREDICATES))
    @given(st.data(), tables())
    def check(data: st.DataObject, table: Table) -> None:
        note(f"{table.fragments[0].schema}\nkeys {table.keys}, {table.layout}")
        with TemporaryDirectory() as folder:
            sessions = _Sessions(table, Path(folder, "t"), tally)
            for _ in range(PREDICATES):
                sessions.check(*data.draw(queries(table)))

    check()
    print(tally)
    assert tally.served >= 0.6 * tally.predicates, tally
    assert tally.selective >= 0.5 * tally.statements, tally
