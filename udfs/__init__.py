"""Functions for SQL and DataFrames, as they work without any index."""

from __future__ import annotations

from .functions import any_element, register_any_element
from .minhash.functions import minhash_distance, minhash_signature, minhash_similarity

__all__ = [
    "any_element",
    "minhash_distance",
    "minhash_signature",
    "minhash_similarity",
    "register_any_element",
]
