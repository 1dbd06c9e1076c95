"""Many texts at once, signed by pylance: the index of a temporary table holds their signatures.

Tokenizing one text after the other from Python takes several times as long. Signatures are the
same by the specification, which pylance's index follows as this package does.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance.file import LanceFileReader
from lance.indices import IndexConfig

from ..manifest import read_indexes
from .details import parameters_of
from .parameters import MinHashParameters

WORTHWHILE: Final = 1000
"""As many texts take as long either way: a table and its index cost about 10 ms."""

_TEXT: Final = "text"


def sign_in_bulk(
    texts: pa.Array | pa.ChunkedArray, parameters: MinHashParameters
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.uint16]] | None:
    """What `SignatureProcedure.sign` gives; None where no temporary table can be written.

    The texts are on disk meanwhile, in a folder that only this user may read.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="datafusion_lance_") as folder:
            rows = _signed_rows(Path(folder) / "texts.lance", texts, parameters)
    except Exception:  # pylance's errors have no type of their own
        return None
    if rows is None:
        return None
    numbers = rows.column("_rowid").to_numpy()
    has_signature = np.zeros(len(texts), np.bool_)
    has_signature[numbers] = True
    values = rows.column("signature").combine_chunks().flatten().to_numpy()
    signatures = values.reshape(len(numbers), parameters.num_hashes)
    return has_signature, signatures[np.argsort(numbers)]


def _signed_rows(
    path: Path, texts: pa.Array | pa.ChunkedArray, parameters: MinHashParameters
) -> pa.Table | None:
    """The rows of the index's signature file; a row id is the number of a text."""
    column = texts.cast(pa.large_string())
    table = pa.table({_TEXT: column})
    dataset = lance.write_dataset(
        table, path, max_rows_per_file=max(1, len(texts)), enable_stable_row_ids=False
    )
    asked = {
        "num_hashes": parameters.num_hashes,
        "num_bands": 1,
        "shingle_size": parameters.shingle_size,
        "tokenizer": {
            name: value
            for name, value in parameters.tokenizer.shapes
            if value is not None or name == "max_token_length"
        },
    }
    dataset.create_scalar_index(_TEXT, IndexConfig("minhashlsh", parameters=asked))
    (index,) = read_indexes(dataset)
    (segment,) = index.segments
    if len(dataset.get_fragments()) != 1 or not parameters_of(index).signs_like(parameters):
        return None
    reader = LanceFileReader(str(path / "_indices" / segment.uuid / "signatures.lance"))
    return reader.read_all().to_table()
