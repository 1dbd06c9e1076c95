"""The label list index: a bitmap of rows for each label of a list column."""

from __future__ import annotations
