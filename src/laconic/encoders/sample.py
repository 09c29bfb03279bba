"""What encoders would make of some codes, foretold from a sample of them.

codes  --survey-->  symbols, blocks, rows alike  -->  bytes with each encoder
       --some KiB, compressed-->  bytes with encoders that are somebody's library
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

from torch import Tensor

from laconic.encoders.memory import as_bytes
from laconic.ops import survey as ops
from laconic.stage import TensorSpec

PIECE = 4096
"""Bytes that are compressed in a row, so that what repeats nearby is seen."""
LEAST_ROW, MOST_ROW = 4, 4096
"""Bytes of what counts as a row: fewer repeat by chance, and of more a sample holds too few."""


class Sample:
    """A sample for codes of `spec`, taken from these, which are like them and lie in a row. `thorough`: a larger one,
    where only the size counts, not the time to choose."""

    found: ops.Survey
    """Of codes of at most 4 bytes."""

    def __init__(self, codes: Tensor, spec: TensorSpec, thorough: bool = False) -> None:
        self.codes, self.thorough = codes, thorough
        self.count, self.nbytes, self.itemsize = spec.numel, spec.nbytes, spec.dtype.itemsize
        width = spec.shape[-1] if len(spec.shape) > 1 else 0
        self.row = width if LEAST_ROW <= width * self.itemsize <= MOST_ROW and self.itemsize <= 4 else 0
        self.row_bytes = max(self.row * self.itemsize, 1)
        self.rows = spec.numel // max(self.row, 1)
        if self.itemsize <= 4:
            self._survey(codes.numel())

    def _survey(self, count: int) -> None:
        """Of a small tensor it sees less: that costs as much, and saves less."""
        blocks, rows = (2048, 4096) if self.thorough else (max(128, min(256, count // (64 * ops.BLOCK))), 512)
        self.found = found = ops.survey(self.codes, self.row, blocks, rows)
        self.chance = found.squares / found.codes**2
        """That two codes have one symbol."""
        self.extra_bits = found.extra / found.codes
        """Of a code, on the average, the bits that its symbol leaves over."""
        self.same = found.equal_rows / found.row_pairs if found.row_pairs else 0.0
        """The share of rows that equal the one before."""
        self._kinds = [(times, kinds) for times, kinds in enumerate(found.row_kinds, 1) if kinds]
        self._different = found.rows - found.equal_rows

    @property
    def entropy_bits(self) -> float:
        """Of a code: the order-0 entropy of its symbol, and the extra bits."""
        found = self.found
        entropy = math.log2(found.codes) - found.entropy / 1024 / found.codes
        unseen = (found.kinds - 1) / (2 * math.log(2) * found.codes) if found.codes < self.count else 0.0
        return entropy + unseen + self.extra_bits

    @property
    def huffman_bits(self) -> float:
        """The same in words of whole bits."""
        return self.found.huffman / self.found.codes + self.extra_bits

    @property
    def block_bytes(self) -> float:
        """Of a block of 32 codes as planes: a flag, and if not all are zero a width and the planes."""
        return 1 / 8 + self.found.planes / self.found.blocks

    @property
    def has_structure(self) -> bool:
        """Whether more words repeat than symbols on their own would make: what compressors of repeats live on."""
        found = self.found
        expected: float = found.blocks**2 / 2 * (self.chance / 2**self.extra_bits) ** (8 / self.itemsize)
        return found.words + found.equal_rows + found.alike_rows > 4 * (1 + expected)

    @property
    def rarely_repeats(self) -> bool:
        """Whether, with all its structure, most of it was not there before; or only as rows, of which more is known."""
        found = self.found
        return found.alike_rows + found.equal_rows > 0 or 2 * found.seen_words < found.blocks

    @property
    def followed(self) -> float:
        """How likely the row after two that are alike is alike, too, so that one match has both."""
        return 2 * self.found.alike_rows / (self._different * (self._different - 1)) if self._different > 1 else 0.0

    def fresh(self, rows: float, window: float) -> float:
        """Of so many rows, the share that is not to be found among as many as `window` before it."""
        among = min(rows, window)
        kinds = self._kinds_among(among)
        if rows > window:
            step = max(window / 64, 1.0)
            kinds += (rows - window) * (self._kinds_among(window + step) - kinds) / step
        return (1 - self.same) * kinds / rows

    def _kinds_among(self, rows: float) -> float:
        """How many kinds so many rows have: of fewer than the sample by rarefaction, of more by Chao's estimate."""
        seen, (once, twice) = self._different, self.found.row_kinds[:2]
        if once == seen:
            return rows  # nothing repeats: it would be a guess that more of it does
        kinds: float = 0.0
        missed = max(1 - rows / seen, 0.0)
        for times, number in self._kinds:
            kinds += number * (1 - missed**times)
        if rows <= seen or not once:
            return kinds
        unseen = once * once / (2 * twice) if twice else once * (once - 1) / 2
        missing: float = (1 - once / (seen * unseen + once)) ** (rows - seen)
        return kinds + unseen * (1 - missing)

    @cached_property
    def pieces(self) -> Any:
        """Some of the bytes, for a compressor to try."""
        data = as_bytes(self.codes.cpu()).numpy()
        share = len(data) if self.thorough else len(data) // 32
        most = max(1, min(share // PIECE, 32 if self.thorough else 4))
        places = [int(place) * PIECE for place in ops.spread(most, max(1, len(data) // PIECE))]
        if most == 1:
            return data[places[0] : places[0] + PIECE]
        return b"".join(data[place : place + PIECE].tobytes() for place in places)
