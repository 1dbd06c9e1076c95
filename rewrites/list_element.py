"""`any_element` over a column with a list element index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from datafusion.expr import Expr

from ..indexes.list_element.details import KIND, Key
from ..indexes.list_element.key_range import ENUMERATION_LIMIT, In, IsNull, KeySearch
from ..indexes.manifest import LanceIndex
from ..indexes.query import AnyElement, Is, Or, Query, Superset
from .any_element_form import FIELD_FUNCTION, ElementPredicate
from .field_condition import Condition, Conjunction, Disjunction, read_conditions
from .indexed_scan import IndexedScan
from .key_search import BoundSearch, search_keys

_ALTERNATIVES: Final = 64
"""Into how many conjunctions a predicate with ORs is multiplied out."""


def read_list_element(predicate: Expr, scan: IndexedScan) -> Query | None:
    """The query of a predicate on a list's elements, or None where no index answers it.

    With an index on the keys label and confidence of the elements of `detections`:

    `label = 'car' AND 0.9 < confidence`  -> that search
    `label = 'car' AND area > 3`          -> `label = 'car'`, a superset
    `label = 'car' OR label = 'dog'`      -> `label IN ('car', 'dog')`
    `label = 'car' OR label IS NULL`      -> two searches
    `confidence > 0.9`                    -> None

    An `array_any_match` that reads under NULL elements also gets the tuples that NULL
    elements are held as, a superset. `detections IS NULL` is the NULL rows of a search that
    is never UNKNOWN.
    """
    if predicate.variant_name() == "IsNull":
        return _read_null_list(predicate.rex_call_operands()[0], scan)
    form = ElementPredicate.of(predicate)
    if form is None:
        return None
    column = scan.own_name(form.column)
    candidates = _candidates(column, scan)
    if not candidates:
        return None
    if not scan.calls_own(FIELD_FUNCTION):
        for candidate in candidates:
            scan.note(
                candidate.index, f"{FIELD_FUNCTION} is a registered function, not DataFusion's own"
            )
        return None
    if _is_never_true(form.predicate):
        first = candidates[0]
        search = KeySearch((In(first.keys[0].codec, ()),))
        return first.query(column, search, whole=True, null_determined=False)
    reader = _Reader(candidates, scan.schema.field(column).type.value_field.nullable)
    readings = reader.read(_joined(read_conditions(form)), _ALTERNATIVES)
    if not readings:
        for candidate in candidates:
            scan.note(
                candidate.index,
                f"no condition fixes its first key, {candidate.keys[0].name}, with =, IS NULL or "
                f"IN with at most {ENUMERATION_LIMIT} values",
            )
        return None
    return _query(column, readings)


def _read_null_list(operand: Expr, scan: IndexedScan) -> Query | None:
    column = scan.column_of(operand) if operand.variant_name() == "Column" else None
    candidates = [] if column is None else _candidates(column, scan)
    if column is None or not candidates:
        return None
    return Is(candidates[0].null_elements(column), None)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An index that may answer, with its keys as they are now."""

    index: LanceIndex
    keys: tuple[Key, ...]
    covered: int

    def query(
        self, column: str, search: KeySearch, *, whole: bool, null_determined: bool
    ) -> AnyElement:
        names = tuple(key.name for key in self.keys)
        return AnyElement(self.index, column, names, search, whole, null_determined)

    def null_elements(self, column: str) -> AnyElement:
        """The elements whose keys are all NULL, among them the NULL elements."""
        search = KeySearch(tuple(IsNull(key.codec) for key in self.keys))
        return self.query(column, search, whole=True, null_determined=True)


def _candidates(column: str, scan: IndexedScan) -> list[_Candidate]:
    snapshot = scan.snapshot
    return [
        _Candidate(index, snapshot.keys_of(index), len(snapshot.covered_fragments(index)))
        for index in scan.indexes_on(column, KIND)
    ]


@dataclass(frozen=True, slots=True)
class _Reading:
    """A conjunction as an index searches for it."""

    candidate: _Candidate
    bound: BoundSearch

    @property
    def rank(self) -> tuple[bool, int, int]:
        """The higher, the better it serves."""
        return self.bound.whole, self.bound.used, self.candidate.covered


@dataclass(frozen=True, slots=True)
class _Reader:
    candidates: Sequence[_Candidate]
    null_elements: bool

    def read(self, conditions: tuple[Condition, ...], alternatives: int) -> tuple[_Reading, ...]:
        """The searches that together find what all `conditions` are TRUE on; none if unknown.

        An OR among them is multiplied out, into at most so many alternatives, where that
        makes each search narrower: `any_element` of an OR is the OR of `any_element`.
        """
        whole = self._best(conditions)
        places = [at for at, one in enumerate(conditions) if isinstance(one, Disjunction)]
        for place in places:
            several = _multiplied_out(conditions, place)
            if len(several) > alternatives:
                continue
            # One that is alone may have others inside, to be multiplied out in their turn.
            if len(places) == 1 or all(self._best(one) not in (None, whole) for one in several):
                share = alternatives // len(several)
                each = [self.read(one, share) for one in several]
                if all(readings and whole not in readings for readings in each):
                    return tuple(dict.fromkeys(one for readings in each for one in readings))
        return () if whole is None else (whole,)

    def _best(self, conditions: tuple[Condition, ...]) -> _Reading | None:
        readings = [
            _Reading(candidate, bound)
            for candidate in self.candidates
            if (bound := search_keys(candidate.keys, conditions, null_elements=self.null_elements))
            is not None
        ]
        return max(readings, key=lambda reading: reading.rank, default=None)


def _multiplied_out(conditions: tuple[Condition, ...], place: int) -> list[tuple[Condition, ...]]:
    """The conjunction with each operand of the OR at `place` in its turn."""
    disjunction = conditions[place]
    assert isinstance(disjunction, Disjunction)
    before, after = conditions[:place], conditions[place + 1 :]
    return [(*before, *_joined(operand), *after) for operand in disjunction.operands]


def _joined(condition: Condition) -> tuple[Condition, ...]:
    """The operands of a condition's ANDs."""
    return condition.operands if isinstance(condition, Conjunction) else (condition,)


def _query(column: str, readings: Sequence[_Reading]) -> Query:
    queries: list[Query] = [
        one.candidate.query(
            column,
            one.bound.search,
            whole=one.bound.whole,
            null_determined=one.bound.null_determined,
        )
        for one in readings
    ]
    under_null = [one for one in readings if one.bound.reads_under_null]
    queries += dict.fromkeys(one.candidate.null_elements(column) for one in under_null)
    query = queries[0] if len(queries) == 1 else Or(tuple(queries))
    return Superset(query) if under_null else query


def _is_never_true(predicate: Expr) -> bool:
    """The constants FALSE and NULL of type Boolean."""
    if predicate.variant_name() != "Literal":
        return False
    value = predicate.python_value()
    return pa.types.is_boolean(value.type) and value.as_py() is not True
