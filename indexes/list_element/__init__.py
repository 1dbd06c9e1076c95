"""The list element index: a BTree over the encoded key tuples of a list's structs."""

from __future__ import annotations
