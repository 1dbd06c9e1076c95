"""An index file in readable form."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import lance
import numpy as np
import pyarrow as pa
from lance.file import LanceFileSession

from .dataset_files import DatasetFiles
from .errors import CorruptIndexError, InvalidArgumentError
from .label_list.reader import FILE as LABEL_LIST_FILE
from .label_list.reader import NULLS
from .lance_file import OpenFile
from .list_element import details as list_element
from .list_element.btree_files import BATCH_SIZE, PAGE_DATA, PAGE_LOOKUP
from .list_element.key_encoding import decode_tuple
from .manifest import IndexSegment, Manifest, absolute, read_manifest
from .minhash_lsh.segment import BAND_KEY, BANDS, DOC_ID, SIGNATURE, SIGNATURES
from .row_set import RowSet

_FOLDER: Final = "/_indices/"
_ROW_BITS: Final = np.uint64(32)


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a file is, in names and values, and some of its rows with what is encoded decoded."""

    facts: tuple[tuple[str, str], ...]
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class _Place:
    """A file, and the table and segment that it belongs to, where they are known."""

    files: DatasetFiles
    relative: str
    manifest: Manifest | None
    segment: IndexSegment | None

    @property
    def path(self) -> str:
        return self.files.path(self.relative)

    @property
    def keys(self) -> tuple[list_element.Key, ...] | None:
        """The keys of a list element index; None where they are not known."""
        if self.segment is None or self.manifest is None:
            return None
        for index in self.manifest.indexes:
            if self.segment in index.segments and index.kind == list_element.KIND:
                return list_element.resolve_keys(index, self.manifest)
        return None


def inspect_file(
    path: str,
    start: int = 0,
    count: int = 20,
    storage_options: Mapping[str, str] | None = None,
) -> Inspection:
    """The rows of an index file from `start` on, at most `count`, and what the file is.

    Keys of a list element index are decoded where the file is in a table whose newest version
    names the index; elsewhere they are bytes.

    Raises `InvalidArgumentError` for what is none of the files that are known, and
    `CorruptIndexError` for one that does not read.
    """
    for argument, number in (("start", start), ("count", count)):
        if number < 0:
            raise InvalidArgumentError(argument, number, "a number of rows, 0 or more")
    name = posixpath.basename(path)
    inspect = _INSPECTORS.get(name)
    if inspect is None:
        raise InvalidArgumentError("path", path, f"a file of an index: {', '.join(_INSPECTORS)}")
    place = _place(absolute(path), storage_options)
    facts, rows = inspect(place, OpenFile(place.files, place.relative), start, count)
    return Inspection((*_origin(place), *facts), rows)


def _place(path: str, storage_options: Mapping[str, str] | None) -> _Place:
    options = None if storage_options is None else dict(storage_options)
    base, folder, relative = path.rpartition(_FOLDER)
    if not folder:
        base, relative = posixpath.split(path)
        files = DatasetFiles(base, LanceFileSession(base, storage_options=options))
        return _Place(files, relative, None, None)
    relative = folder.strip("/") + "/" + relative
    files = DatasetFiles(base, LanceFileSession(base, storage_options=options))
    try:
        manifest = read_manifest(lance.dataset(base, storage_options=options))
    except (OSError, ValueError, RuntimeError):
        return _Place(files, relative, None, None)
    uuid = relative.split("/")[1]
    named = [s for index in manifest.indexes for s in index.segments if s.uuid == uuid]
    return _Place(files, relative, manifest, named[0] if named else None)


def _origin(place: _Place) -> tuple[tuple[str, str], ...]:
    if place.manifest is None:
        return ()
    table = ("table", f"{place.files.base}, version {place.manifest.version}")
    if place.segment is None:
        return (table, ("index", "none: that version names no such segment"))
    fragments = sorted(place.segment.fragment_ids)
    return (
        table,
        ("index", f"{place.segment.name}, built over version {place.segment.dataset_version}"),
        ("fragments", ", ".join(map(str, fragments)) or "none"),
    )


_Facts = tuple[tuple[str, str], ...]
_Inspector = Callable[[_Place, OpenFile, int, int], tuple[_Facts, pa.Table]]


def _slice(file: OpenFile, start: int, count: int) -> pa.RecordBatch:
    first = min(start, file.num_rows)
    return file.read_range(first, min(count, file.num_rows - first))


def _page_data(place: _Place, file: OpenFile, start: int, count: int) -> tuple[_Facts, pa.Table]:
    keys = place.keys
    batch = _slice(file, start, count)
    values, ids = batch.column("values"), batch.column("ids").to_numpy()
    columns: dict[str, Any] = {"entry": pa.array(range(start, start + len(batch)), pa.uint64())}
    if keys is None:
        columns["value"] = values
    else:
        columns["null_list"] = values.is_null()
        columns |= _decoded(place, values, keys)
    columns["fragment"] = pa.array(ids >> _ROW_BITS)
    columns["offset"] = pa.array(ids & np.uint64(0xFFFFFFFF))
    facts = (
        ("file", "entries of a list element index" if keys else "entries of a BTree"),
        ("entries", str(file.num_rows)),
        *((("keys", _described(keys)),) if keys else ()),
    )
    return facts, pa.table(columns)


def _page_lookup(place: _Place, file: OpenFile, start: int, count: int) -> tuple[_Facts, pa.Table]:
    keys = place.keys
    batch = _slice(file, start, count)
    columns: dict[str, Any] = {"page": batch.column("page_idx")}
    for name in ("min", "max"):
        values = batch.column(name)
        columns |= (
            {name: values}
            if keys is None
            else {f"{name} {key}": column for key, column in _decoded(place, values, keys).items()}
        )
    columns["null_count"] = batch.column("null_count")
    metadata = file.schema.metadata or {}
    facts = (
        ("file", "page table of a list element index" if keys else "page table of a BTree"),
        ("pages", str(file.num_rows)),
        ("entries in a page", metadata.get(BATCH_SIZE, b"not said").decode(errors="replace")),
        *((("keys", _described(keys)),) if keys else ()),
    )
    return facts, pa.table(columns)


def _bitmaps(place: _Place, file: OpenFile, start: int, count: int) -> tuple[_Facts, pa.Table]:
    batch = _slice(file, start, count)
    facts: _Facts = (
        ("file", "postings of a label list or bitmap index"),
        ("labels", str(file.num_rows)),
    )
    buffer = (file.schema.metadata or {}).get(NULLS)
    if buffer is not None and buffer.isdigit():
        nulls = _row_set(place, "the set of null lists", file.read_global_buffer(int(buffer)))
        facts += (("rows with a NULL list", str(len(nulls))),)
    maps = batch.column("bitmaps").to_pylist()
    sets = [_row_set(place, f"the bitmap in row {start + i}", m) for i, m in enumerate(maps)]
    columns = {
        "label": batch.column("keys"),
        "rows": pa.array(map(len, sets), pa.uint64()),
        "fragments": pa.array([len(rows.fragment_ids) for rows in sets], pa.uint64()),
        "bytes": pa.array(map(len, maps), pa.uint64()),
    }
    return facts, pa.table(columns)


def _signatures(place: _Place, file: OpenFile, start: int, count: int) -> tuple[_Facts, pa.Table]:
    batch = _slice(file, start, count)
    width = batch.schema.field(SIGNATURE).type.list_size
    facts: _Facts = (
        ("file", "signatures of a MinHash LSH index"),
        ("documents", str(file.num_rows)),
        ("hashes in a signature", str(width)),
    )
    documents = pa.array(range(start, start + len(batch)), pa.uint64())
    return facts, pa.table({"document": documents, **_columns(batch)})


def _buckets(place: _Place, file: OpenFile, start: int, count: int) -> tuple[_Facts, pa.Table]:
    """A row for each bucket among the entries from `start` on."""
    batch = _slice(file, start, count)
    keys, documents = batch.column(BAND_KEY).to_numpy(), batch.column(DOC_ID)
    starts = (
        np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        if len(keys)
        else np.zeros(0, int)
    )
    offsets = pa.array([*starts, len(keys)], pa.int32())
    facts: _Facts = (
        ("file", "buckets of a MinHash LSH index, by band key"),
        ("entries", str(file.num_rows)),
    )
    rows = {
        "bucket": pa.array([f"{key:016x}" for key in keys[starts].tolist()], pa.string()),
        "documents": pa.ListArray.from_arrays(offsets, documents),
    }
    return facts, pa.table(rows)


def _columns(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    return dict(zip(batch.schema.names, batch.columns, strict=True))


def _row_set(place: _Place, what: str, data: bytes) -> RowSet:
    try:
        return RowSet.from_row_addr_tree_map(data)
    except (ValueError, IndexError) as error:
        raise CorruptIndexError(place.path, f"{what}: {error}") from error


def _described(keys: Sequence[list_element.Key]) -> str:
    return ", ".join(f"{key.name}: {key.codec.logical_type}" for key in keys)


def _decoded(
    place: _Place, values: pa.Array, keys: Sequence[list_element.Key]
) -> dict[str, pa.Array]:
    """A column for each key with what the encoded tuples say; NULL for an entry without one."""
    codecs = [key.codec for key in keys]
    try:
        # Only as many as are shown.
        tuples = [None if v is None else decode_tuple(codecs, v) for v in values.to_pylist()]
    except ValueError as error:
        raise CorruptIndexError(place.path, f"an encoded key: {error}") from error
    return {
        key.name: pa.array([t[i].as_py() if t else None for t in tuples], key.codec.arrow_type)
        for i, key in enumerate(keys)
    }


_INSPECTORS: Final[Mapping[str, _Inspector]] = {
    PAGE_DATA: _page_data,
    PAGE_LOOKUP: _page_lookup,
    LABEL_LIST_FILE: _bitmaps,
    SIGNATURES: _signatures,
    BANDS: _buckets,
}
