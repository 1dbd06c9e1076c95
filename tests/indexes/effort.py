"""How many examples a test with slow examples takes of those that the profile grants."""

from __future__ import annotations

from hypothesis import settings


def one_in(divisor: int) -> settings:
    """The profile's settings with a part of its examples."""
    return settings(max_examples=max(1, settings().max_examples // divisor))
