"""The fragments that a segment is built over."""

from __future__ import annotations

from collections.abc import Collection

import lance

from .errors import InvalidArgumentError


def chosen_fragments(
    dataset: lance.LanceDataset, wanted: Collection[int] | None
) -> list[lance.LanceFragment]:
    """The fragments of those ids, in the table's order; all of them for None.

    Raises `InvalidArgumentError` for ids of no fragment, and for none at all.
    """
    every = {fragment.fragment_id: fragment for fragment in dataset.get_fragments()}
    if wanted is None:
        return list(every.values())
    unknown = sorted(set(wanted) - every.keys())
    if unknown or not wanted:
        raise InvalidArgumentError(
            "fragment_ids", unknown or list(wanted), f"fragments of the table: {sorted(every)}"
        )
    return [fragment for fragment_id, fragment in every.items() if fragment_id in wanted]
