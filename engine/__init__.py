"""DataFusion sessions that read Lance tables through the indexes stored beside them."""

from __future__ import annotations

from ..indexes.check_report import Difference, IndexCheck
from ..indexes.errors import (
    CorruptIndexError,
    InvalidArgumentError,
    LanceIndexError,
    MissingIndexFileError,
    StatementError,
    UnsupportedVersionError,
    UnusableIndexError,
)
from ..indexes.minhash_lsh.parameters import candidate_probability
from ..indexes.segment_commit import BuiltSegment
from .dataframe import LanceDataFrame
from .index_segments import build_segment, commit_segments
from .lance_table import LanceTable
from .session import LanceSessionContext

__all__ = [
    "BuiltSegment",
    "CorruptIndexError",
    "Difference",
    "IndexCheck",
    "InvalidArgumentError",
    "LanceDataFrame",
    "LanceIndexError",
    "LanceSessionContext",
    "LanceTable",
    "MissingIndexFileError",
    "StatementError",
    "UnsupportedVersionError",
    "UnusableIndexError",
    "build_segment",
    "candidate_probability",
    "commit_segments",
]
