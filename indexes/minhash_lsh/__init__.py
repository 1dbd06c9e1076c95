"""The MinHash LSH index: signatures of texts, and the buckets of those that share a band."""

from __future__ import annotations
