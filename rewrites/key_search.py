"""What a conjunction of conditions asks of one list element index."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from ..indexes.list_element.details import Key
from ..indexes.list_element.key_encoding import KeyCodec
from ..indexes.list_element.key_range import Between, Fixed, In, IsNull, KeySearch
from .field_condition import Condition, FieldCondition
from .key_conditions import compared_with, equal_to, starting_with

Bound: TypeAlias = In | IsNull | Between


@dataclass(frozen=True, slots=True)
class BoundSearch:
    """A search for the elements on which a conjunction is TRUE.

    `whole` where it finds nothing else, and `null_determined` where the conjunction is
    UNKNOWN exactly where the search is. `reads_under_null`: the conjunction may be TRUE on a
    NULL element by what lies under it, which no index holds.
    """

    search: KeySearch
    whole: bool
    null_determined: bool
    reads_under_null: bool

    @property
    def used(self) -> int:
        """How many keys it is on."""
        return len(self.search.fixed) + (self.search.between is not None)


def search_keys(
    keys: tuple[Key, ...], conditions: Iterable[Condition], *, null_elements: bool
) -> BoundSearch | None:
    """The search for what all `conditions` are TRUE on; None where they fix no first key.

    `null_elements` says whether the list may hold NULL elements.
    """
    joined = _Joined(keys)
    for condition in conditions:
        joined.add(condition)
    return joined.search(null_elements)


class _Joined:
    """Conditions joined by AND, key by key."""

    def __init__(self, keys: tuple[Key, ...]) -> None:
        self._codecs = {key.name: key.codec for key in keys}
        self._bound: dict[str, Bound] = {}
        self._whole = True
        self._null_determined = True
        self._reads_under_null = False
        self._fails_on_null = False

    def add(self, condition: Condition) -> None:
        """Joins one more condition."""
        if not isinstance(condition, FieldCondition):
            self._whole = False
            return
        field = condition.field
        if not field.path:
            # The element itself. On a NULL one, IS NOT NULL is FALSE and not UNKNOWN.
            self._whole &= condition.operator == "IS NOT NULL"
            self._fails_on_null |= condition.operator == "IS NOT NULL"
            self._null_determined = False
            return
        codec = self._codecs.get(field.path[0]) if len(field.path) == 1 else None
        bound = None if codec is None else _bind(condition, codec, partial=False)
        self._whole &= condition.whole and bound is not None
        if bound is None and codec is not None:
            # A cast that raises on some values: those that are found are cast once more.
            bound = _bind(condition, codec, partial=True)
        if bound is None:
            return
        self._null_determined &= condition.null_determined
        self._reads_under_null |= not field.masked
        self._fails_on_null |= condition.guarded or (field.masked and not isinstance(bound, IsNull))
        name = field.path[0]
        self._bound[name] = _both(self._bound[name], bound) if name in self._bound else bound

    def search(self, null_elements: bool) -> BoundSearch | None:
        """The search for all of them together."""
        fixed: list[Fixed] = []
        between: Between | None = None
        for name in self._codecs:
            bound = self._bound.get(name)
            if isinstance(bound, Between):
                between = bound
            if bound is None or isinstance(bound, Between):
                break
            fixed.append(bound)
        if not fixed:
            return None
        asked = KeySearch(tuple(fixed), between)
        search = asked.within()
        if search is None:
            return None
        used = len(fixed) + (between is not None)
        whole = self._whole and used == len(self._bound) and search is asked
        if not null_elements:
            return BoundSearch(search, whole, self._null_determined, False)
        # A NULL element is held as a tuple of NULLs.
        finds_null = search.between is None and all(isinstance(one, IsNull) for one in search.fixed)
        if self._fails_on_null:
            whole = whole and not finds_null
        elif self._reads_under_null:
            whole = False
        return BoundSearch(
            search,
            whole,
            self._null_determined and not self._reads_under_null,
            self._reads_under_null and not self._fails_on_null and not finds_null,
        )


def _bind(condition: FieldCondition, codec: KeyCodec, *, partial: bool) -> Bound | None:
    """The condition on a key; None where the key does not answer it.

    With `partial`, on the keys on which none of the casts raises.
    """
    operator, casts = condition.operator, condition.field.casts
    if operator == "IN":
        bound = equal_to(codec, casts, condition.values, partial=partial)
    elif operator in ("IS NULL", "IS NOT NULL", "STARTS WITH"):
        if casts:
            return None
        if operator == "IS NULL":
            return IsNull(codec)
        if operator == "IS NOT NULL":
            return Between.of(codec)
        bound = starting_with(codec, condition.values[0].as_py())
    else:
        bound = compared_with(codec, casts, operator, condition.values[0], partial=partial)
    return None if bound is None else _without_empty_range(bound)


def _both(left: Bound, right: Bound) -> Bound:
    """Both conditions on the same key."""
    if isinstance(left, IsNull) and isinstance(right, IsNull):
        return left
    if isinstance(left, IsNull) or isinstance(right, IsNull):
        # Never TRUE, and UNKNOWN where the key is NULL.
        return In(left.codec, ())
    if isinstance(left, Between):
        if isinstance(right, Between):
            return _without_empty_range(left & right)
        return left.keep(right)
    if isinstance(right, Between):
        return right.keep(left)
    kept = frozenset(right.encoded)
    return In(left.codec, tuple(one for one in left.encoded if one in kept))


def _without_empty_range(bound: In | Between) -> In | Between:
    """A range without values fixes the key as well as no values do."""
    return In(bound.codec, ()) if isinstance(bound, Between) and bound.empty else bound
