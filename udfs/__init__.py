"""Functions for SQL and DataFrames, as they work without any index."""

from __future__ import annotations

from .functions import any_element, register_any_element

__all__ = ["any_element", "register_any_element"]
