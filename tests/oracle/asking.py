"""A statement, its three runs, and how their answers compare."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datafusion import DataFrame, SessionContext, col, lit
from datafusion import functions as f

from datafusion_lance.engine.execution import Execution

from ..oracle_rows import Comparison
from .conditions import Condition, Near, Spelling
from .kinds import text_literal
from .shape import NEAR, Shape
from .shapes import ON_U, SIMPLE, SIMPLE_ON_U
from .situations import Sessions

_CONDITION = re.compile(r"\{(?:(\w+)\.)?([pqvodf])\}")
_CONDITION_TEXT = re.compile(r"\{'([pq])'\}")
_CALLED = re.compile(r"\{(column|text|bands|below|function|given)\}")


@dataclass(frozen=True, slots=True)
class Statement:
    """A shape with its conditions; `needle` is a literal for a list's element."""

    shape: Shape
    conditions: Mapping[str, Condition]
    needle: str

    def text(self, *, in_memory: bool) -> str:
        instead = self.shape.memory if in_memory else None
        return self._filled(instead or self.shape.text, in_memory)

    def setup(self, *, in_memory: bool) -> tuple[str, ...]:
        return tuple(self._filled(text, in_memory) for text in self.shape.setup)

    def _filled(self, text: str, in_memory: bool) -> str:
        def condition(found: re.Match[str]) -> str:
            prefix = f"{found[1]}." if found[1] else ""
            sql = self.conditions[found[2]].sql(Spelling(prefix, in_memory))
            if found[2] in NEAR:
                return sql
            return repr(sql) if self.shape.is_chain else f"({sql})"

        def condition_text(found: re.Match[str]) -> str:
            return text_literal(self.conditions[found[1]].sql(Spelling("", in_memory)))

        called = self.conditions.get("f")
        if isinstance(called, Near):
            parts = called.distance.parts
            text = _CALLED.sub(lambda found: parts[found[1]], text)
        text = _CONDITION_TEXT.sub(condition_text, _CONDITION.sub(condition, text))
        return text.replace("{needle}", self.needle)

    def smaller(self) -> Iterator[Statement]:
        """Statements that ask for less, the smallest first."""
        simple = (*SIMPLE, SIMPLE_ON_U)
        for name in placeholders(self.shape) if self.shape not in simple else ():
            condition = self.conditions[name]
            if name in NEAR:
                continue
            if name == ON_U:
                yield replace(self, shape=SIMPLE_ON_U, conditions={"v": condition})
            else:
                for shape in SIMPLE:
                    yield replace(self, shape=shape, conditions={"p": condition})
        if self.shape in SIMPLE[1:]:
            yield replace(self, shape=SIMPLE[0])
        for name in placeholders(self.shape):
            for condition in self.conditions[name].smaller():
                yield replace(self, conditions={**self.conditions, name: condition})


def placeholders(shape: Shape) -> list[str]:
    """The conditions that a shape has, each once."""
    texts = " ".join((shape.text, *shape.setup))
    names = [name for _, name in _CONDITION.findall(texts)] + _CONDITION_TEXT.findall(texts)
    return list(dict.fromkeys([*names, "f"] if _CALLED.search(texts) else names))


@dataclass(frozen=True, slots=True)
class Failed:
    """A statement that was refused, when it was planned or when it ran."""

    why: str


Answer: TypeAlias = pa.Table | Failed
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of a statement: in words what differs, or None."""

    difference: str | None
    expected: Answer
    execution: Execution | None


def ask(statement: Statement, sessions: Sessions) -> Asked:
    """Runs the statement in memory, with indexes, and where those serve it, without them, too."""
    ordered, cached = statement.shape.ordered, statement.shape.cached

    def difference_of(actual: Answer, expected: Answer) -> str | None:
        # Another statement may give the same rows without knowing that none is NULL.
        if statement.shape.memory is not None:
            actual, expected = _nullable(actual), _nullable(expected)
        return compare(actual, expected, ordered=ordered)

    with _prepared(statement, sessions.memory, in_memory=True) as frame:
        expected = _collected(frame, cached)
    session = sessions.indexed
    with _prepared(statement, session, in_memory=False) as frame:
        answer = _collected(frame, cached)
        # A DataFrame knows what it ran last.
        execution: Execution | None = getattr(frame, "_last", None)
        if _is_spared(expected, answer, execution):
            return Asked(None, expected, execution)
        difference = difference_of(answer, expected)
        if difference is not None:
            return Asked(f"with indexes: {difference}", expected, execution)
        if execution is None or not serves(execution):
            return Asked(None, expected, execution)
        session.use_indexes = False
        try:
            if execution.called:
                # A table function is given its index when the statement is planned.
                frame = _caught(lambda: _frame(statement, session, in_memory=False))
            difference = difference_of(_collected(frame, cached), expected)
        finally:
            session.use_indexes = True
        return Asked(difference and f"without indexes: {difference}", expected, execution)


def _is_spared(expected: Answer, answer: Answer, execution: Execution | None) -> bool:
    """Whether a value that cannot be cast is in a row that an index scan did not read."""
    return (
        isinstance(expected, Failed)
        and "Cast error" in expected.why
        and not isinstance(answer, Failed)
        and execution is not None
        and serves(execution)
    )


def _nullable(answer: Answer) -> Answer:
    if isinstance(answer, Failed):
        return answer
    schema = pa.schema([field.with_nullable(True) for field in answer.schema])
    return pa.Table.from_arrays(answer.columns, schema=schema)


def serves(execution: Execution) -> bool:
    """Whether an index has a part in it, be it in a table function."""
    return execution.uses_index or any(scan.entries is not None for scan in execution.called)


@contextmanager
def _prepared(
    statement: Statement, context: SessionContext, *, in_memory: bool
) -> Iterator[DataFrame | Failed]:
    """The statement's DataFrame, while what it is set up with is there."""
    try:
        frame = _caught(lambda: _frame(statement, context, in_memory))
        yield frame
    finally:
        for text in statement.shape.teardown:
            # Where the setup failed, so does what undoes it.
            _caught(lambda text=text: context.sql(text).collect())


def _frame(statement: Statement, context: SessionContext, in_memory: bool) -> DataFrame:
    for text in statement.setup(in_memory=in_memory):
        context.sql(text).collect()
    return frame_of(statement.shape, statement.text(in_memory=in_memory), context)


def _collected(frame: DataFrame | Failed, cached: bool) -> Answer:
    if isinstance(frame, Failed):
        return frame
    return _caught(lambda: (frame.cache() if cached else frame).to_arrow_table())


def _caught(run: Callable[[], Result]) -> Result | Failed:
    try:
        return run()
    except BaseException as error:  # a panic of DataFusion's is no Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        return Failed(f"{type(error).__name__}: {error}")


def frame_of(shape: Shape, text: str, context: SessionContext) -> DataFrame:
    if shape.is_chain:
        return eval(text, {"ctx": context, "col": col, "lit": lit, "f": f})
    return context.sql(text)


def compare(actual: Answer, expected: Answer, *, ordered: bool) -> str | None:
    """What differs, in words. Two refusals are the same, whatever they say."""
    if isinstance(expected, Failed):
        if isinstance(actual, Failed):
            return None
        return f"DataFusion fails: {expected.why}"
    if isinstance(actual, Failed):
        return f"fails: {actual.why}"
    if _same(actual, expected, ordered):
        return None
    return Comparison(ordered=ordered).difference(actual, expected)


def _same(actual: pa.Table, expected: pa.Table, ordered: bool) -> bool:
    """Whether the answers are the same; if not, they still may be, in another order."""
    if not actual.schema.equals(expected.schema) or actual.num_rows != expected.num_rows:
        return False
    if not actual.column_names:
        return True
    if _equal(actual, expected):
        return True
    return not ordered and _equal(_in_order(actual), _in_order(expected))


def _equal(actual: pa.Table, expected: pa.Table) -> bool:
    return all(
        bits(one.combine_chunks()).equals(bits(other.combine_chunks()))
        for one, other in zip(actual.columns, expected.columns, strict=True)
    )


def _in_order(table: pa.Table) -> pa.Table:
    keys = [
        column
        for column in table.columns
        if pa.types.is_integer(column.type) or pa.types.is_string(column.type)
    ]
    if not keys or not table.num_rows:
        return table
    # numpy's sorts by the last key first; ranks of a column stand for its values.
    ranks = [pc.rank(column, "ascending", tiebreaker="dense").to_numpy() for column in keys]
    return table.take(pa.array(np.lexsort(ranks[::-1])))


def bits(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The array with floats as their bits: NaN equals itself, and -0.0 is not 0.0."""
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks)
    kind = array.type
    if pa.types.is_floating(kind):
        return array.view({16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}[kind.bit_width])
    if pa.types.is_struct(kind):
        return pa.StructArray.from_arrays(
            [bits(child) for child in array.flatten()], kind.names, mask=array.is_null()
        )
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        lengths = array.value_lengths().fill_null(0).to_numpy()
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return pa.LargeListArray.from_arrays(
            pa.array(offsets, pa.int64()), bits(array.flatten()), mask=array.is_null()
        )
    return array
