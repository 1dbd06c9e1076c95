"""MinHash functions of texts: distance, similarity and signature, as they work without an index."""

from __future__ import annotations
