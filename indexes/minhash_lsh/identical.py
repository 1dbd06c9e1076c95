"""Documents with identical signatures, found once so that they are compared only once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .documents import Documents, Numbers
from .mixing import mixed, words
from .ranges import runs, slices, within


@dataclass(frozen=True, slots=True)
class Identical:
    """Groups of two or more documents with one signature.

    The first of a group, the one with the smallest row id, stands for all: `behind[d]` is
    True for the others, `leads[d]` for itself. `firsts` ascends; the group of `firsts[g]` is
    `members[starts[g] : starts[g] + sizes[g]]`, by row id, `firsts[g]` itself included.
    `documents` is the number of all documents, in groups or alone.
    """

    documents: int
    behind: npt.NDArray[np.bool_]
    leads: npt.NDArray[np.bool_]
    firsts: Numbers
    starts: Numbers
    sizes: Numbers
    members: Numbers

    @property
    def signatures(self) -> int:
        """How many different signatures the documents have."""
        return self.documents - (len(self.members) - len(self.firsts))

    @property
    def in_order(self) -> Numbers:
        """The documents of all groups, one group after the other, as `firsts` has them."""
        return self.members[within(self.starts, self.sizes)]

    def member(self, documents: Numbers, starts: Numbers, sizes: Numbers, nth: Numbers) -> Numbers:
        """The nth of the documents that each of these stands for, as `groups_of` found them."""
        found = documents.copy()
        grouped = sizes > 1
        found[grouped] = self.members[starts[grouped] + nth[grouped]]
        return found

    def groups_of(self, documents: Numbers) -> tuple[Numbers, Numbers]:
        """Where in `members` the documents that these stand for begin, and how many they are.

        A document without a group has size 1, and its start means nothing.
        """
        starts = np.zeros(len(documents), dtype=np.int64)
        sizes = np.ones(len(documents), dtype=np.int64)
        leading = np.flatnonzero(self.leads[documents])
        groups = np.searchsorted(self.firsts, documents[leading])
        starts[leading] = self.starts[groups]
        sizes[leading] = self.sizes[groups]
        return starts, sizes


def identical(documents: Documents, at_once: int) -> Identical:
    """Groups the documents that have the same signature, reading `at_once` of the bands table.

    Such documents share every band: those that have the first bucket to themselves are not
    read. Two documents with equal signatures may be left apart where hashes collide.
    """
    none = np.empty(0, dtype=np.int64)
    firsts, sizes, members = [none], [none], [none]
    total = 0
    for keys, numbers in documents.entries(0, at_once):
        total += len(numbers)
        starts, lengths = runs(keys)
        several = lengths > 1
        if several.any():
            shared = numbers[within(starts[several], lengths[several])]
            groups = _groups(documents, shared)
            for parts, part in zip((firsts, sizes, members), groups, strict=True):
                parts.append(part)
    first, size, member = map(np.concatenate, (firsts, sizes, members))
    behind, leads = np.zeros((2, len(documents)), dtype=np.bool_)
    leads[first] = True
    behind[member] = True
    behind[first] = False
    order = np.argsort(first)
    starts = np.cumsum(size) - size
    return Identical(total, behind, leads, first[order], starts[order], size[order], member)


def _groups(documents: Documents, numbers: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """The first document of each group, the groups' sizes, and all their documents."""
    hashes = np.empty(len(numbers), dtype=np.uint64)
    for here in slices(len(numbers), documents.block_rows):
        signatures = documents.signatures(numbers[here])
        hashes[here] = mixed(words(signatures, documents.num_hashes))
    order = np.lexsort((documents.row_ids[numbers], hashes))
    starts, lengths = runs(hashes[order])
    several = lengths > 1
    starts, lengths = starts[several], lengths[several]
    if len(starts) == 0:
        return starts, starts, starts
    grouped = numbers[order[within(starts, lengths)]]
    leading = numbers[order[starts]]
    first = np.repeat(leading, lengths)
    same = np.empty(len(grouped), dtype=np.bool_)
    for here in slices(len(grouped), documents.block_rows):
        mine, theirs = documents.signatures(grouped[here]), documents.signatures(first[here])
        same[here] = (mine == theirs).all(axis=1)
    sizes = np.add.reduceat(same, np.cumsum(lengths) - lengths, dtype=np.int64)
    # Where signatures share a hash, the first may have been left alone.
    kept = sizes > 1
    return leading[kept], sizes[kept], grouped[same & np.repeat(kept, lengths)]
