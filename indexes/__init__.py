"""On-disk formats of Lance: index metadata, row sets, and a folder for each index."""

from __future__ import annotations
