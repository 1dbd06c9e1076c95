"""One statement's way to a plan without `any_element`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from datafusion import DataFrame, col, udf
from datafusion.expr import Expr
from datafusion.plan import LogicalPlan

from ...indexes.errors import InvalidArgumentError
from .calls import NAME, CallingStatement
from .control import same_statement
from .expressions import any_match
from .list_types import probe, refused_element, same_expressions, shown_elements
from .planning import Readers
from .tokens import Kind

_MATCH = "array_any_match"
_RUN_AT_ONCE = frozenset({"create", "prepare"})
_QUERIES = frozenset({"select", "with", "explain"})

Body = Callable[[str, pa.DataType], str]
"""The lambda's body for a predicate on elements of a type."""


@dataclass(frozen=True, slots=True)
class WrittenStatement:
    """A statement without calls, in the dialect with lambdas.

    `names` are those that its columns are to have, where they are not to stay as they are.
    """

    text: str
    names: tuple[str, ...] | None = None

    def named(self, frame: DataFrame) -> DataFrame:
        """The frame with its columns named as if the calls were a function's."""
        if self.names is None:
            return frame
        return frame.select(
            *(
                _column(name) if name == new else _column(name).alias(new)
                for name, new in zip(frame.schema().names, self.names, strict=True)
            )
        )


class StatementPlanning:
    """One statement on its way to a plan."""

    def __init__(self, statement: CallingStatement, readers: Readers, body: Body) -> None:
        self._statement = statement
        self._readers = readers
        self._body = body
        first = statement.tokens[0]
        # What such a statement does it does when it is planned, unless it is to be explained.
        word = first.value.lower() if first.kind is Kind.WORD else ""
        into = any(token.is_word("into") for token in statement.tokens)
        at_once = word in _RUN_AT_ONCE or (into and word in _QUERIES and word != "explain")
        self._before = "EXPLAIN " if at_once else ""
        self.agreed = word in _QUERIES and not at_once and readers.agree_on(statement.text)

    def written(self) -> str:
        """The statement with its calls as matches.

        Raises InvalidArgumentError for a call that is none of a list of structs and a predicate
        on its fields, and for a statement that the dialects read differently; DataFusion's
        errors for what else is wrong with it.
        """
        if not self.agreed:
            _ = self._called  # the session's own errors come first
        try:
            elements = self._elements()
        except InvalidArgumentError:
            raise
        except Exception as error:
            _ = self._called
            raise self._misread(error) from error
        bodies = [
            self._body(call.predicate, element)
            for call, element in zip(self._statement.calls, elements, strict=True)
        ]
        return self._statement.replaced(lambda n, lists: any_match(lists, bodies[n]))

    def names(self, frame: DataFrame) -> tuple[str, ...] | None:
        """The names for the columns of the written statement's frame.

        None where they are to stay as they are: where no call is in them, or where they alone
        do not tell the columns apart.
        """
        names = frame.schema().names
        if self._before or len(set(names)) < len(names) or not any(_MATCH in n for n in names):
            return None
        called = self._called.schema().names
        return tuple(called) if len(called) == len(names) and called != names else None

    def _elements(self) -> list[pa.DataType]:
        """The type of the elements of each call's list."""
        numbers, plan = self._probed()
        shown = shown_elements(repr(plan))
        return [self._element(number, numbers, shown.get(number, [])) for number in numbers]

    def _element(
        self, number: int, numbers: Sequence[int], shown: Sequence[pa.DataType]
    ) -> pa.DataType:
        """The type of the elements of the lists of the calls of a number."""
        if len(shown) == 1:
            return shown[0]
        calls = [index for index, other in enumerate(numbers) if other == number]
        if shown and len(calls) > 1:
            types = " and ".join(f"a list of {type_}" for type_ in shown)
            raise InvalidArgumentError("list_expr", types, "one type in calls of the same text")
        return refused_element(self._statement, calls, self._readers.lambdas, self._before)

    def _probed(self) -> tuple[Sequence[int], LogicalPlan]:
        """The plan with a probe for each call, and the number of each probe."""
        errors: list[Exception] = []
        # A call that a SELECT groups by has to be the same as the one it selects.
        distinct = tuple(range(len(self._statement.calls)))
        for numbers in dict.fromkeys((distinct, same_expressions(self._statement))):
            try:
                plan = self._planned(numbers)
            except Exception as error:  # DataFusion's errors have no type of their own
                errors.append(error)
                continue
            if self.agreed or same_statement(
                self._called.logical_plan(), plan, self._statement, numbers
            ):
                return numbers, plan
        raise errors[-1] if errors else self._misread(None)

    def _planned(self, numbers: Sequence[int]) -> LogicalPlan:
        text = self._statement.replaced(lambda n, lists: probe(numbers[n], lists))
        return self._readers.lambdas.sql(self._before + text).logical_plan()

    @cached_property
    def _called(self) -> DataFrame:
        """The statement as the session reads it, the calls being those of a function."""
        own = self._readers.own
        own.register_udf(udf(_not_run, [_ANY_LIST, pa.string()], pa.bool_(), "immutable", NAME))
        try:
            return own.sql(self._before + self._statement.text)
        except Exception as error:
            if (refused := _NO_LIST.search(str(error))) is None:
                raise
            raise _no_list(refused.group(1) or refused.group(2)) from error

    def _misread(self, error: Exception | None) -> InvalidArgumentError:
        refused = _NO_LIST.search(str(error))
        if refused is not None:
            return _no_list(refused.group(1) or refused.group(2))
        return InvalidArgumentError(
            "query",
            self._statement.text,
            f"a statement that DuckDB's dialect, in which {NAME} is planned, reads as the "
            f"session's dialect does{f' ({error})' if error else ''}",
        )


_ANY_LIST = pa.list_(pa.struct([]))
"""A function of this type is planned on lists of any type, and fails when it is analysed."""

_NO_LIST = re.compile(
    rf"to '{NAME}' function: coercion from (.*), Utf8 to the signature|"
    rf"{_MATCH} expected a list as first argument, got (.*)"
)


def _not_run(lists: pa.Array, _: pa.Array) -> pa.Array:
    raise NotImplementedError(f"{NAME} is planned as {_MATCH}")


def _no_list(type_: str) -> InvalidArgumentError:
    return InvalidArgumentError("list_expr", type_, "a list of structs")


def _column(name: str) -> Expr:
    quoted = name.replace('"', '""')
    return col(f'"{quoted}"')
