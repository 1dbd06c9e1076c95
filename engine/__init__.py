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
from .dataframe import LanceDataFrame
from .lance_table import LanceTable
from .session import LanceSessionContext

__all__ = [
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
    "candidate_probability",
]
