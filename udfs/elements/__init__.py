"""`any_element(list_column, 'predicate')`, written as DataFusion's own `array_any_match`."""

from __future__ import annotations
