"""Opening a Segment: a damaged file is told by its name and the check that it fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from datafusion_lance.indexes.cache import ReaderCache
from datafusion_lance.indexes.errors import (
    CorruptIndexError,
    UnsupportedVersionError,
    UnusableIndexError,
)
from datafusion_lance.indexes.lance_file import OpenFile
from datafusion_lance.indexes.minhash_lsh.details import MinHashDetails
from datafusion_lance.indexes.minhash_lsh.parameters import MinHashParameters
from datafusion_lance.indexes.minhash_lsh.search import MinHashReader
from datafusion_lance.indexes.minhash_lsh.signature import SignatureProcedure
from datafusion_lance.indexes.search_stats import SearchStats
from datafusion_lance.indexes.snapshot import Snapshot

from .searched import Searched, corpus, index_text, listed, table_of
from .written_segment import (
    DETAILS,
    PARAMETERS,
    WrittenSegment,
    bands_schema,
    commit_segments,
    signatures_schema,
)

TEXTS = [f"the quick brown fox {n // 2}" for n in range(10)]
OTHER = MinHashDetails(MinHashParameters(4, 4, 2)).encode().hex()
# Field 1, num_hashes, is 4, and field 2, num_bands, is 2.
THREE_HASHES = DETAILS.replace(bytes.fromhex("0804"), bytes.fromhex("0803"), 1)
SIGNATURES, BANDS = "signatures.lance", "bands.lance"


def _signature() -> npt.NDArray[np.uint16]:
    _, signed = SignatureProcedure.of(PARAMETERS).sign(pa.array(TEXTS[:1]))
    return signed[0]


SIGNATURE = _signature()


def _dataset(folder: Path, segment: WrittenSegment) -> lance.LanceDataset:
    table = lance.write_dataset(pa.table({"text": TEXTS}), folder / "table.lance")
    return commit_segments(table, segment)


def _reader(dataset: lance.LanceDataset) -> MinHashReader:
    snapshot = Snapshot(dataset, ReaderCache(1 << 26))
    (index,) = snapshot.indexes
    return MinHashReader(index, snapshot)


def _search(reader: MinHashReader, *, everything: bool = True) -> None:
    reader.candidates(SIGNATURE, reader.fragment_ids, SearchStats())
    if everything:
        reader.all_rows(SIGNATURE, reader.fragment_ids, SearchStats())


def _assert_corrupt(
    dataset: lance.LanceDataset, file: str, check: str, *, everything: bool = True
) -> None:
    reader = _reader(dataset)
    for _ in range(2):  # what failed is not kept as if it had not
        with pytest.raises(CorruptIndexError, match=check) as raised:
            _search(reader, everything=everything)
        assert Path(raised.value.file).name == file
        assert raised.value.file in str(raised.value)


def test_a_sound_segment(tmp_path: Path) -> None:
    reader = _reader(_dataset(tmp_path, WrittenSegment(TEXTS)))
    found = reader.candidates(SIGNATURE, reader.fragment_ids, SearchStats())
    assert found.row_ids[:2].tolist() == [0, 1]
    assert found.different[:2].tolist() == [0, 0]
    assert len(reader.all_rows(SIGNATURE, reader.fragment_ids, SearchStats())) == 10


Damage = tuple[str, Callable[[WrittenSegment], None], str]


def _metadata(file: str, name: str, value: str | None) -> Callable[[WrittenSegment], None]:
    def damage(segment: WrittenSegment) -> None:
        part = segment.signatures_metadata if file == SIGNATURES else segment.bands_metadata
        part[f"minhash_lsh_{name}"] = value

    return damage


def _with(name: str, value: object) -> Callable[[WrittenSegment], None]:
    return lambda segment: setattr(segment, name, value)


def _of_both(file: str) -> list[Damage]:
    return [
        (
            file,
            _metadata(file, "details", None),
            "the schema's metadata has no minhash_lsh_details",
        ),
        (file, _metadata(file, "details", "0x"), "minhash_lsh_details: .*hexadecimal"),
        (file, _metadata(file, "details", "ff"), "minhash_lsh_details: no MinHashLshIndexDetails"),
        (file, _metadata(file, "details", ""), "minhash_lsh_details: tokenizer: it is missing"),
        (file, _metadata(file, "details", THREE_HASHES.hex()), "minhash_lsh_details: num_"),
        (
            file,
            _metadata(file, "details", OTHER),
            "minhash_lsh_details are not the details of the index",
        ),
        (file, _metadata(file, "index_version", None), "has no minhash_lsh_index_version"),
        (
            file,
            _metadata(file, "index_version", "-1"),
            "minhash_lsh_index_version is '-1', and no decimal number",
        ),
    ]


def _schemas(file: str, name: str, schemas: list[pa.Schema]) -> list[Damage]:
    return [(file, _with(name, schema), "its columns are .*, and not ") for schema in schemas]


IN_ORDER: list[Damage] = [
    *_schemas(
        SIGNATURES,
        "signatures_schema",
        [
            signatures_schema(names=("row_id", "signature")),
            signatures_schema(names=("_rowid", "sig")),
            signatures_schema(row_id=pa.int64()),
            signatures_schema(item=pa.int16()),
            signatures_schema(item=pa.uint32()),
            signatures_schema(num_hashes=8),
            signatures_schema(num_hashes=2),
            signatures_schema(nullable=(True, False)),
            signatures_schema(nullable=(False, True)),
        ],
    ),
    *_of_both(SIGNATURES),
    *_schemas(
        BANDS,
        "bands_schema",
        [
            bands_schema(names=("key", "doc_id")),
            bands_schema(names=("band_key", "doc")),
            bands_schema(types=(pa.uint64(), pa.uint64())),
            bands_schema(types=(pa.uint64(), pa.int32())),
            bands_schema(nullable=(True, False)),
            bands_schema(nullable=(False, True)),
        ],
    ),
    *_of_both(BANDS),
    (BANDS, _metadata(BANDS, "page_rows", None), "has no minhash_lsh_page_rows"),
    (BANDS, _metadata(BANDS, "page_rows", "0"), "minhash_lsh_page_rows is 0, and not positive"),
    (BANDS, _metadata(BANDS, "page_rows", "four"), "page_rows is 'four', and no decimal number"),
    (BANDS, _metadata(BANDS, "page_rows", "9" * 5000), "page_rows is '9+', and no decimal"),
    (BANDS, _metadata(BANDS, "num_docs", None), "has no minhash_lsh_num_docs"),
    (
        BANDS,
        _metadata(BANDS, "num_docs", "11"),
        "minhash_lsh_num_docs is 11, and signatures.lance has 10 rows",
    ),
    (BANDS, _metadata(BANDS, "page_table_buffer", None), "no minhash_lsh_page_table_buffer"),
    (
        BANDS,
        _metadata(BANDS, "page_table_buffer", "7"),
        "minhash_lsh_page_table_buffer is 7, and the file has 2 global buffers",
    ),
    (BANDS, _with("page_table", bytes(39)), "the page table has 39 bytes, which is no multiple"),
    (BANDS, _with("page_table", bytes(32)), "has 4 entries, and 20 rows make 5 pages"),
    (
        BANDS,
        _with("page_table", bytes(7) + b"\1" + bytes(32)),
        "the entries of its page table do not ascend",
    ),
]
ALSO: list[Damage] = [
    (BANDS, _with("page_table", bytes(48)), "has 6 entries, and 20 rows make 5 pages"),
    (BANDS, _with("page_table", b""), "has 0 entries, and 20 rows make 5 pages"),
    (BANDS, _metadata(BANDS, "page_rows", "5"), "has 5 entries, and 20 rows make 4 pages"),
]


@pytest.mark.parametrize("number", range(len(IN_ORDER) + len(ALSO)))
def test_each_check(number: int, tmp_path: Path) -> None:
    file, damage, check = (IN_ORDER + ALSO)[number]
    segment = WrittenSegment(TEXTS)
    damage(segment)
    _assert_corrupt(_dataset(tmp_path, segment), file, check)


@pytest.mark.parametrize("number", range(len(IN_ORDER)))
def test_the_first_check_that_fails_is_the_one_told(number: int, tmp_path: Path) -> None:
    segment = WrittenSegment(TEXTS)
    for _, damage, _ in reversed(IN_ORDER[number:]):
        damage(segment)
    file, _, check = IN_ORDER[number]
    _assert_corrupt(_dataset(tmp_path, segment), file, check)


@pytest.mark.parametrize("file", [SIGNATURES, BANDS])
def test_a_newer_version_is_unsupported(file: str, tmp_path: Path) -> None:
    segment = WrittenSegment(TEXTS)
    _metadata(file, "index_version", "1")(segment)
    reader = _reader(_dataset(tmp_path, segment))
    with pytest.raises(UnsupportedVersionError, match=f"{file} is of version 1, and 0 is"):
        _search(reader)


@pytest.mark.parametrize("details", [b"", b"\xff", THREE_HASHES])
def test_details_of_the_index_that_are_damaged(details: bytes, tmp_path: Path) -> None:
    dataset = _dataset(tmp_path, WrittenSegment(TEXTS, details=details))
    with pytest.raises(UnusableIndexError, match="its details are damaged"):
        _reader(dataset)


def test_segments_whose_details_differ(tmp_path: Path) -> None:
    table = lance.write_dataset(pa.table({"text": TEXTS}), tmp_path / "table.lance")
    segments = [WrittenSegment(TEXTS), WrittenSegment(TEXTS, details=bytes.fromhex(OTHER))]
    dataset = commit_segments(table, *segments)
    with pytest.raises(UnusableIndexError, match="the details of its segments differ"):
        _reader(dataset)


def test_swapped_files(tmp_path: Path) -> None:
    dataset = _dataset(tmp_path, WrittenSegment(TEXTS, swapped=True))
    _assert_corrupt(dataset, SIGNATURES, "its columns are band_key: uint64 not null")


# -- while answering queries -------------------------------------------------------------


def test_a_doc_id_out_of_range(tmp_path: Path) -> None:
    docs = np.arange(20, dtype=np.uint32) % 10
    docs[[3, 7, 11, 15, 19]] = 10
    dataset = _dataset(tmp_path, WrittenSegment(TEXTS, docs=docs))
    _assert_corrupt(dataset, BANDS, r"doc_id 10 in page \d, and there are 10")


def test_keys_that_do_not_ascend(tmp_path: Path) -> None:
    sound = WrittenSegment(TEXTS)
    procedure = SignatureProcedure.of(PARAMETERS)
    _, signed = procedure.sign(pa.array(TEXTS))
    keys = np.sort(procedure.band_keys(signed).reshape(-1))
    for page in range(5):
        keys[4 * page : 4 * page + 3] = keys[4 * page : 4 * page + 3][::-1]
    sound.keys = keys
    _assert_corrupt(_dataset(tmp_path, sound), BANDS, r"the keys of page \d do not ascend")


def test_a_page_that_is_not_the_one_of_the_page_table(tmp_path: Path) -> None:
    table = np.full(5, np.uint64(2**63), "<u8").tobytes()
    dataset = _dataset(tmp_path, WrittenSegment(TEXTS, page_table=table))
    _assert_corrupt(dataset, BANDS, "page 0 ends with another key than in the page table")


@pytest.mark.parametrize("whole", [False, True])
def test_a_signature_with_a_null_value(whole: bool, tmp_path: Path) -> None:
    values = [1, 2, 3, 4] * 9
    lists = pa.FixedSizeListArray.from_arrays(
        pa.array([*values, *([None] * 4 if whole else [1, None, 3, 4])], pa.uint16()), 4
    )
    dataset = _dataset(tmp_path, WrittenSegment(TEXTS, signatures=lists))
    _assert_corrupt(dataset, SIGNATURES, "a signature with a null value")


@pytest.mark.parametrize(
    ("row_ids", "check"),
    [
        ([*range(9), 10], "_rowid: row 10 in fragment 0, which has 10 rows"),
        ([*range(9), 2**32 - 1], "_rowid: row 4294967295 in fragment 0, which has 10 rows"),
    ],
)
def test_a_row_behind_the_last_one(row_ids: list[int], check: str, tmp_path: Path) -> None:
    segment = WrittenSegment(TEXTS, row_ids=pa.array(row_ids, pa.uint64()))
    _assert_corrupt(_dataset(tmp_path, segment), SIGNATURES, check)


def test_a_row_of_a_fragment_that_the_segment_does_not_cover(tmp_path: Path) -> None:
    segment = WrittenSegment(TEXTS, row_ids=pa.array([*range(9), 7 << 32], pa.uint64()))
    reader = _reader(_dataset(tmp_path, segment))
    found = reader.all_rows(SIGNATURE, reader.fragment_ids, SearchStats())
    assert sorted(found.addresses.tolist()) == list(range(9))


def test_nulls_in_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pylance writes no null into a column that has none; it could read one all the same."""
    dataset = _dataset(tmp_path, WrittenSegment(TEXTS))
    read = OpenFile.read_range

    def with_null(self: OpenFile, start: int, count: int, stats: SearchStats) -> pa.RecordBatch:
        batch = read(self, start, count, stats)
        docs = pa.array([None] * count, pa.uint32())
        return pa.RecordBatch.from_arrays([batch.column(0), docs], ["band_key", "doc_id"])

    monkeypatch.setattr(OpenFile, "read_range", with_null)
    monkeypatch.setattr(OpenFile, "column_pages", lambda self, column: [])
    _assert_corrupt(dataset, BANDS, r"page \d is not of keys and documents that are not null")


# -- files that are not all there --------------------------------------------------------


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> lance.LanceDataset:
    folder = tmp_path_factory.mktemp("built")
    dataset = table_of(folder, corpus(600, 3), per_fragment=600)
    index_text(dataset, num_hashes=16, num_bands=8, shingle_size=2)
    return lance.dataset(folder)


@pytest.mark.parametrize("name", [SIGNATURES, BANDS])
def test_a_truncated_file(name: str, built: lance.LanceDataset) -> None:
    (file,) = Path(built.uri).glob(f"_indices/*/{name}")
    data = file.read_bytes()
    signature = np.zeros(16, np.uint16)
    lengths = {0, 1, 4, 8, len(data) - 1, len(data) - 4, len(data) - 40}
    lengths |= set(range(0, len(data), len(data) // 60))
    try:
        for length in sorted(lengths):
            file.write_bytes(data[:length])
            reader = _reader(built)
            with pytest.raises(CorruptIndexError, match=f"it has {len(data)} bytes") as raised:
                reader.candidates(signature, reader.fragment_ids, SearchStats())
            assert raised.value.file == str(file)
    finally:
        file.write_bytes(data)


@pytest.mark.parametrize("name", [SIGNATURES, BANDS])
def test_a_missing_file(name: str, built: lance.LanceDataset) -> None:
    (file,) = Path(built.uri).glob(f"_indices/*/{name}")
    moved = file.rename(file.with_suffix(".moved"))
    try:
        reader = _reader(built)
        with pytest.raises(CorruptIndexError, match="missing index file") as raised:
            reader.signed(reader.fragment_ids, SearchStats())
        assert raised.value.file == str(file)
    finally:
        moved.rename(file)


def test_opening_reads_neither_row_ids_nor_signatures(built: lance.LanceDataset) -> None:
    searched, stats = Searched(built), SearchStats()
    signature = np.zeros(16, np.uint16)
    assert listed(searched.reader.candidates(signature, searched.covered, stats)) == []
    pages = -(-600 * 8 // 4096)
    assert stats.bytes_read <= 8 * pages + pages * 4096 * 12
    assert stats.signatures_compared == 0
