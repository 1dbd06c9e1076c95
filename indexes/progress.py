"""The bar that long work shows."""

from __future__ import annotations

from tqdm import tqdm


def progress_bar(what: str, total: int | None, unit: str, shown: bool) -> tqdm:
    """A bar on stderr that is quiet where that is no terminal, or where it is not wanted."""
    # With None, tqdm looks for the terminal itself.
    return tqdm(total=total, desc=what, unit=f" {unit}", disable=None if shown else True)
