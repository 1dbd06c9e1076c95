"""Connected components of a graph whose edges come in blocks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .documents import Numbers


class Components:
    """Nodes 0 to `nodes - 1`, joined by edges as they come; not thread-safe.

    A forest in which every node points at a smaller one of its component, or at itself: trees
    are hooked to each other by their roots, and paths shortened where they were walked.
    """

    def __init__(self, nodes: int) -> None:
        self._parents = np.arange(nodes, dtype=np.min_scalar_type(nodes))

    def join(self, left: Numbers, right: Numbers) -> None:
        """Put the two ends of every edge into one component."""
        lefts, rights = self._roots(left), self._roots(right)
        while True:
            apart = lefts != rights
            if not apart.any():
                return
            low = np.minimum(lefts[apart], rights[apart])
            high = np.maximum(lefts[apart], rights[apart])
            # Of several edges at a root the smallest other end wins; the next round sees the rest.
            np.minimum.at(self._parents, high, low.astype(self._parents.dtype))
            lefts, rights = self._roots(low), self._roots(high)

    def joined(self, left: Numbers, right: Numbers) -> npt.NDArray[np.bool_]:
        """Whether the two ends of each pair are in one component already."""
        return self._roots(left) == self._roots(right)

    def labels(self) -> Numbers:
        """One node of its component for each node, the same one for all of them."""
        parents = self._parents
        while True:
            further = parents[parents]
            if (further == parents).all():
                return parents.astype(np.int64)
            parents = further

    def _roots(self, nodes: Numbers) -> Numbers:
        roots = self._parents[nodes]
        while True:
            further = self._parents[roots]
            if (further == roots).all():
                break
            roots = further
        self._parents[nodes] = roots
        return roots.astype(np.int64)
