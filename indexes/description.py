"""What can be told of an index without reading its files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from .errors import LanceIndexError, UnusableIndexError
from .list_element import details as list_element
from .manifest import LanceIndex
from .minhash_lsh import details as minhash_lsh
from .minhash_lsh.tokenizer import DEFAULT_TOKENIZER
from .snapshot import Snapshot

# Lance's own records of its table, which it keeps among the indexes.
_RECORDS: Final = frozenset({"FragmentReuse", "MemWal"})


@dataclass(frozen=True, slots=True)
class IndexDescription:
    """One index of a table version.

    `column` is the indexed column's current name, with `, ` between several; None where it is
    gone. `keys` are those of a list element index, in order, else empty. `parameters` are those
    that a MinHash LSH index was built with, of its tokenizer the base and whatever is not
    Lance's default. Of the fragments and
    the live rows of the version, `covered_*` counts those that the index answers for.
    `size_bytes` is that of its files; None where the metadata does not say. `unusable` is the
    reason why the index answers nothing, if so.
    """

    name: str
    kind: str
    column: str | None
    keys: tuple[str, ...]
    parameters: tuple[tuple[str, str], ...]
    segments: int
    covered_fragments: int
    uncovered_fragments: int
    covered_rows: int
    uncovered_rows: int
    size_bytes: int | None
    unusable: str | None


def describe_indexes(snapshot: Snapshot) -> tuple[IndexDescription, ...]:
    """All indexes of the version, in the order of the manifest, of whatever kind.

    Raises `LanceIndexError` where the indexes of the version cannot be read.
    """
    if snapshot.indexes_unread is not None:
        raise LanceIndexError(snapshot.indexes_unread)
    return tuple(_describe(index, snapshot) for index in describable(snapshot.indexes))


def describable(indexes: Iterable[LanceIndex]) -> tuple[LanceIndex, ...]:
    """Those that are indexes on columns, and no records that Lance keeps among them."""
    return tuple(index for index in indexes if index.kind not in _RECORDS)


def _describe(index: LanceIndex, snapshot: Snapshot) -> IndexDescription:
    covered: frozenset[int] = frozenset()
    unusable = None
    try:
        covered = snapshot.covered_fragments(index)
    except UnusableIndexError as error:
        unusable = error.reason
    names = [snapshot.column_name(field_id) for field_id in index.field_ids]
    sizes = [[size for _, size in segment.files] for segment in index.segments]
    rows = {
        fragment.id: fragment.physical_rows
        - (0 if fragment.deletion_file is None else fragment.deletion_file.deleted_rows)
        for fragment in snapshot.manifest.fragments
    }
    covered_rows = sum(rows[fragment_id] for fragment_id in covered)
    return IndexDescription(
        name=index.name,
        kind=index.kind,
        column=None if None in names else ", ".join(name for name in names if name is not None),
        keys=_keys(index, snapshot) if index.kind == list_element.KIND else (),
        parameters=_parameters(index) if index.kind == minhash_lsh.KIND else (),
        segments=len(index.segments),
        covered_fragments=len(covered),
        uncovered_fragments=len(rows) - len(covered),
        covered_rows=covered_rows,
        uncovered_rows=sum(rows.values()) - covered_rows,
        size_bytes=sum(map(sum, sizes)) if all(sizes) else None,
        unusable=unusable,
    )


def _keys(index: LanceIndex, snapshot: Snapshot) -> tuple[str, ...]:
    """The current names of the keys; of an index that cannot be used those it was built with."""
    try:
        return tuple(key.name for key in snapshot.keys_of(index))
    except UnusableIndexError:
        try:
            return list_element.ListElementIndexDetails.decode(index.segments[0].details).keys
        except ValueError:
            return ()


def _parameters(index: LanceIndex) -> tuple[tuple[str, str], ...]:
    try:
        parameters = minhash_lsh.decode_details(index.segments[0].details).parameters
    except ValueError:
        return ()
    defaults = dict(DEFAULT_TOKENIZER.shapes)
    shapes = dict(parameters.tokenizer.shapes)
    told = {
        name: shapes[name]
        for name in shapes
        if name == "base_tokenizer" or shapes[name] != defaults[name]
    }
    return (
        ("num_hashes", str(parameters.num_hashes)),
        ("num_bands", str(parameters.num_bands)),
        ("shingle_size", str(parameters.shingle_size)),
        *((f"tokenizer.{name}", _shown(value)) for name, value in told.items()),
    )


def _shown(value: str | int | None) -> str:
    """A setting in Lance's words: `none`, `true`, a number or a name."""
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)
