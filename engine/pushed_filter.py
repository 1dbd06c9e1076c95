"""The filter that DataFusion hands to a table, as a small tree that can be read.

DataFusion passes the conjuncts a table claims to apply as one pyarrow `Expression` and then
drops them from its plan. An `Expression` cannot be inspected through pyarrow's API, but it can
be serialized: an IPC file whose schema metadata spells the tree in prefix order (`call`, `end`,
`field_ref`, `literal`, `options`) and whose only record batch holds the literals, one a column.
`predicate_of` reads that back. What the nodes mean is DataFusion's business, not pyarrow's:
see `predicate_kernels`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True)
class Column:
    """A top-level column, by its exact name (dots and quotes are part of the name)."""

    name: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; `value` may be a null scalar."""

    value: pa.Scalar


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left operator right`; `operator` is one of `=`, `<>`, `<`, `<=`, `>`, `>=`."""

    operator: str
    left: Predicate
    right: Predicate


@dataclass(frozen=True, slots=True)
class And:
    operands: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    operands: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Not:
    operand: Predicate


@dataclass(frozen=True, slots=True)
class IsNull:
    operand: Predicate


@dataclass(frozen=True, slots=True)
class IsNotNull:
    operand: Predicate


@dataclass(frozen=True, slots=True)
class InList:
    """`operand IN (values)`. The values hold no null: DataFusion does not hand those over.

    They went through plain Python numbers, so their type may be wider than the operand's;
    each of them fits the operand's type.
    """

    operand: Predicate
    values: pa.Array


PushedFilter: TypeAlias = pc.Expression | pa.Scalar | bool | None
"""A filter as it is handed over: a scalar or `bool` where it reads no column."""

Predicate: TypeAlias = Column | Literal | Comparison | And | Or | Not | IsNull | IsNotNull | InList

_COMPARISONS = {
    "equal": "=",
    "not_equal": "<>",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}


def predicate_of(filter: PushedFilter) -> Predicate | None:
    """The tree of a handed-over filter; None where there is none, or one that is TRUE.

    A filter without any column arrives as a boolean scalar or a plain `bool`.

    Raises `NotImplementedError` for an expression that DataFusion does not produce.
    """
    if filter is None:
        return None
    if isinstance(filter, bool):
        predicate: Predicate = Literal(pa.scalar(filter))
    elif isinstance(filter, pa.Scalar):
        predicate = Literal(filter)
    else:
        _, (serialized,) = filter.__reduce__()
        with pa.ipc.open_file(serialized) as file:
            predicate = _tree(_ordered_metadata(file.schema), file.get_batch(0))
    always = isinstance(predicate, Literal) and predicate.value.as_py() is True
    return None if always else predicate


def _tree(tokens: list[tuple[str, str]], literals: pa.RecordBatch) -> Predicate:
    # A stack instead of recursion: SQL written by programs has chains of thousands of ORs.
    operands: list[list[Predicate]] = [[]]
    options: pa.StructScalar | None = None
    for kind, value in tokens:
        match kind:
            case "call":
                operands.append([])
            case "end":
                node = _call(value, operands.pop(), options)
                operands[-1].append(node)
                options = None
            case "field_ref":
                operands[-1].append(Column(value))
            case "literal":
                operands[-1].append(Literal(literals.column(int(value))[0]))
            case "options":
                options = literals.column(int(value))[0]
            case _:
                raise NotImplementedError(f"pushed filter with a part of kind {kind!r}")
    ((root,),) = operands
    return root


class HandedOver:
    """A filter as it came, and its tree once that is asked for; partitions share one."""

    def __init__(self, filter: PushedFilter) -> None:
        self.filter = filter

    @cached_property
    def predicate(self) -> Predicate | None:
        return predicate_of(self.filter)

    def again(self, filter: PushedFilter) -> HandedOver:
        """For a filter that is handed over once more, mostly the very same object."""
        return self if filter is self.filter else HandedOver(filter)


def columns_of(predicate: Predicate) -> tuple[str, ...]:
    """The columns that a predicate reads, each once, in order of appearance."""
    return tuple(dict.fromkeys(_column_names(predicate)))


def conjuncts_of(predicate: Predicate) -> tuple[Predicate, ...]:
    """The operands of the ANDs at the top: a row passes if each of them is TRUE."""
    return predicate.operands if isinstance(predicate, And) else (predicate,)


def children_of(predicate: Predicate) -> tuple[Predicate, ...]:
    match predicate:
        case Comparison(_, left, right):
            return (left, right)
        case And(operands) | Or(operands):
            return operands
        case Not(operand) | IsNull(operand) | IsNotNull(operand) | InList(operand, _):
            return (operand,)
        case _:
            return ()


def _column_names(predicate: Predicate) -> Iterator[str]:
    if isinstance(predicate, Column):
        yield predicate.name
    for child in children_of(predicate):
        yield from _column_names(child)


def _call(function: str, operands: list[Predicate], options: pa.StructScalar | None) -> Predicate:
    if function in _COMPARISONS:
        left, right = operands
        return Comparison(_COMPARISONS[function], left, right)
    if function == "and_kleene":
        return And(_flattened(And, operands))
    if function == "or_kleene":
        return Or(_flattened(Or, operands))
    if function in ("invert", "is_null", "is_valid"):
        (operand,) = operands
        return {"invert": Not, "is_null": IsNull, "is_valid": IsNotNull}[function](operand)
    if function == "is_in" and options is not None:
        (operand,) = operands
        return InList(operand, options["value_set"].values)
    raise NotImplementedError(f"pushed filter that calls {function!r}")


def _flattened(kind: type[And] | type[Or], operands: list[Predicate]) -> tuple[Predicate, ...]:
    """Operands of nested calls of one kind in one node: a chain of 10,000 ORs stays flat."""
    head, *tail = operands
    return (*(head.operands if isinstance(head, kind) else (head,)), *tail)


class _ArrowSchema(ctypes.Structure):
    """The first members of the C data interface's ArrowSchema."""

    _fields_ = [
        ("format", ctypes.c_void_p),
        ("name", ctypes.c_void_p),
        ("metadata", ctypes.c_void_p),
    ]


_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _ordered_metadata(schema: pa.Schema) -> list[tuple[str, str]]:
    """All metadata entries in order: `schema.metadata` is a dict and keeps one for each key."""
    capsule = schema.__arrow_c_schema__()
    address = _ArrowSchema.from_address(_capsule_pointer(capsule, b"arrow_schema")).metadata
    entries: list[tuple[str, str]] = []
    if not address:
        return entries
    count, address = _read_int32(address)
    for _ in range(count):
        key, address = _read_bytes(address)
        value, address = _read_bytes(address)
        entries.append((key.decode(), value.decode()))
    return entries


def _read_int32(address: int) -> tuple[int, int]:
    return ctypes.c_int32.from_address(address).value, address + 4


def _read_bytes(address: int) -> tuple[bytes, int]:
    length, address = _read_int32(address)
    return ctypes.string_at(address, length), address + length
