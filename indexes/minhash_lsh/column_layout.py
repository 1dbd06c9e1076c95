"""How Lance stores columns without compression: where values are in a file, and what they are.

Each page of a column is in one of two ways: *full-zip*, one dense buffer of values, and
*mini-block*, chunks of values with a header of their own and a table of the chunks' sizes. A page
that is described by any other words than the ones here is left to pylance.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..lance_file import ColumnPage

Bytes = npt.NDArray[np.uint8]
Values = npt.NDArray[Any]

_FLAT: Final = "CompressiveEncoding{compression:Some(Flat(Flat{bits_per_value:%d,data:None,},),),}"
_FULL_ZIP: Final = (
    "PageLayout{layout:Some(FullZipLayout(FullZipLayout{bits_rep:0,bits_def:0,num_items:#,"
    "num_visible_items:#,value_compression:Some(CompressiveEncoding{compression:Some("
    "FixedSizeList(FixedSizeList{items_per_value:%d,has_validity:false,values:Some(%s,),},),),},),"
    "layers:[RepdefAllValidItem,],details:Some(BitsPerValue(%d,),),},),),}"
)
_MINI_BLOCK: Final = (
    "PageLayout{layout:Some(MiniBlockLayout(MiniBlockLayout{rep_compression:None,"
    "def_compression:None,value_compression:Some(%s,),dictionary:None,num_dictionary_items:0,"
    "layers:[RepdefAllValidItem,],num_buffers:1,repetition_index_depth:0,num_items:#,"
    "has_large_chunk:true,},),),}"
)
# A chunk's word in the table of sizes: eights of bytes less one above these bits, which are
# the logarithm of the number of its values, 0 for the last chunk's rest.
_LOG_BITS: Final = 4
_EIGHT: Final = 8
_WORD: Final = 4
# A chunk's header: no repetition and definition levels (u16), the size of its values (u32),
# padding.
_HEADER: Final = 8
_HEADER_CHECKED: Final = 6


@dataclass(frozen=True, slots=True)
class MiniBlock:
    """A page of numbers of `kind`; `words` are the table of its chunks' sizes."""

    rows: int
    words: npt.NDArray[np.uint32]
    kind: np.dtype[Any]

    @property
    def _shape(self) -> tuple[int, int, int] | None:
        """The values and bytes of a full chunk, and the values of the last one.

        None where they are not as they should be: pylance is to read the page then.
        """
        full = len(self.words) - 1
        word = int(self.words[0])
        values, size = 1 << (word & ((1 << _LOG_BITS) - 1)), ((word >> _LOG_BITS) + 1) * _EIGHT
        if full == 0:
            values = self.rows
        elif size != _HEADER + values * self.kind.itemsize:
            return None
        rest = self.rows - full * values
        return (values, size, rest) if 0 < rest <= values else None

    def span(self, begin: int, end: int) -> tuple[int, int] | None:
        """Where in the chunks' buffer the values are, an offset and a size, None as for `read`."""
        shape = self._shape
        if shape is None:
            return None
        values, size, rest = shape
        full = len(self.words) - 1
        start, last = begin // values * size, (end - 1) // values
        if last < full:
            return start, (last + 1) * size - start
        return start, full * size + _HEADER + rest * self.kind.itemsize - start

    def read(self, begin: int, end: int, data: Bytes) -> Values | None:
        """The values, copied, from the bytes of their `span`; None where a chunk is not right."""
        shape = self._shape
        if shape is None:
            return None
        values, size, rest = shape
        full = len(self.words) - 1
        first, last = begin // values, (end - 1) // values
        parts: list[Values] = []
        stop = min(last + 1, full)
        if first < stop:
            region = data[: (stop - first) * size]
            if (self.words[first:stop] != self.words[0]).any():
                return None
            parts.append(self._values(region.reshape(-1, size), values))
        if last >= full:
            parts.append(self._values(data[(full - first) * size :].reshape(1, -1), rest))
        if any(len(part) == 0 for part in parts):
            return None
        read = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return read[begin - first * values : end - first * values]

    def _values(self, chunks: Bytes, values: int) -> Values:
        """The values of whole chunks; none where a header is not as it should be."""
        header = b"\0\0" + (values * self.kind.itemsize).to_bytes(4, "little")
        expected = np.frombuffer(header, dtype=np.uint8)
        if (chunks[:, :_HEADER_CHECKED] != expected).any():
            return np.empty(0, dtype=self.kind)
        return np.ascontiguousarray(chunks[:, _HEADER:]).reshape(-1).view(self.kind)


class FullZipLayout:
    """Pages of lists of `items` numbers of `kind`, each page one buffer."""

    def __init__(self, kind: np.dtype[Any], items: int) -> None:
        bits = kind.itemsize * 8
        self.width: int = items * kind.itemsize
        self._layout = _Layout(_FULL_ZIP % (items, _FLAT % bits, items * bits))

    def rows(self, page: ColumnPage) -> int:
        """How many rows a page has; 0 where it is not like that."""
        rows = self._layout.rows(page.encoding)
        return rows if [size for _, size in page.buffers] == [rows * self.width] else 0


class MiniBlockLayout:
    """Pages of numbers of `kind`, each page two buffers: the words, and the chunks."""

    def __init__(self, kind: np.dtype[Any]) -> None:
        self._layout = _Layout(_MINI_BLOCK % (_FLAT % (kind.itemsize * 8)))

    def rows(self, page: ColumnPage) -> int:
        """How many rows a page has; 0 where it is not like that."""
        if len(page.buffers) != 2:
            return 0
        words = page.buffers[0][1]
        return self._layout.rows(page.encoding) if words and words % _WORD == 0 else 0


class _Layout:
    """A description of a page, in which # stands for its number of rows."""

    def __init__(self, words: str) -> None:
        before, number, after = re.escape(words).partition(re.escape("#"))
        again = after.replace(number, r"\1")
        self._pattern = re.compile(rf"{before}(\d+){again}")
        # Most pages of a column have as many rows as the others.
        self._known: dict[str, int] = {}

    def rows(self, encoding: str) -> int:
        """The number of rows of a page that is described like that, 0 for any other."""
        if encoding not in self._known:
            found = self._pattern.fullmatch("".join(encoding.split()))
            self._known[encoding] = int(found[1]) if found else 0
        return self._known[encoding]
