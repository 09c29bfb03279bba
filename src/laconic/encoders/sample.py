"""What encoders would make of some codes, foretold from a sample of them.

codes  --survey-->  symbols, blocks, rows alike  -->  bytes with each encoder
       --some KiB, compressed-->  bytes with encoders that are somebody's library
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import torch
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

    def __init__(self, codes: Tensor, spec: TensorSpec, thorough: bool = False) -> None:
        self.codes, self.thorough = codes, thorough
        self.count, self.nbytes, self.itemsize = spec.numel, spec.nbytes, spec.dtype.itemsize
        width = spec.shape[-1] if len(spec.shape) > 1 else 0
        self.row = width if LEAST_ROW <= width * self.itemsize <= MOST_ROW and self.itemsize <= 4 else 0
        self.row_bytes = max(self.row * self.itemsize, 1)
        self.rows = spec.numel // max(self.row, 1)

    @cached_property
    def found(self) -> ops.Survey:
        blocks, rows = (2048, 4096) if self.thorough else (512, 1024)
        if not self.thorough:  # of a small tensor fewer: they cost as much, and save less
            blocks = max(128, min(blocks, self.codes.numel() // (64 * ops.BLOCK)))
            rows = max(64, min(rows, self.codes.nbytes // (4 * self.row_bytes)))
        return ops.Survey.of(torch.ops.laconic.survey(self.codes, self.row, blocks, rows))

    @property
    def extra_bits(self) -> float:
        """Of a code, on the average, the bits that its symbol leaves over."""
        return self.found.extra / self.found.codes

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
    def in_runs(self) -> bool:
        """Whether most codes equal the one before, and not by chance."""
        found = self.found
        chance = found.squares / found.codes**2
        return found.neighbours / max(found.codes - found.blocks, 1) > (1 + chance) / 2

    @cached_property
    def has_structure(self) -> bool:
        """Whether more words repeat than symbols on their own would make: what compressors of repeats live on."""
        found = self.found
        chance = found.squares / found.codes**2 / 2**self.extra_bits
        expected: float = found.blocks**2 / 2 * chance ** (8 / self.itemsize)
        return found.words + found.equal_rows + found.alike_rows > 4 * (1 + expected)

    @cached_property
    def same(self) -> float:
        """The share of rows that equal the one before."""
        return self.found.equal_rows / self.found.row_pairs if self.row and self.found.row_pairs else 0.0

    @cached_property
    def followed(self) -> float:
        """How likely the row after two that are alike is alike, too, so that one match has both."""
        among = self.found.rows - self.found.equal_rows
        return 2 * self.found.alike_rows / (among * (among - 1)) if self.row and among > 1 else 0.0

    def fresh(self, rows: float, window: float) -> float:
        """Of so many rows, the share that is not to be found among as many as `window` before it."""
        if rows <= window:
            return (1 - self.same) * self._kinds_among(rows) / rows
        step = max(window / 64, 1.0)
        rate = (self._kinds_among(window + step) - self._kinds_among(window)) / step
        return (1 - self.same) * (self._kinds_among(window) + (rows - window) * rate) / rows

    @cached_property
    def _kinds(self) -> list[tuple[int, int]]:
        """How often rows stand, and how many kinds so often."""
        return [(times, kinds) for times, kinds in enumerate(self.found.row_kinds, 1) if kinds]

    def _kinds_among(self, rows: float) -> float:
        """How many kinds so many rows have: of fewer than the sample by rarefaction, of more by Chao's estimate."""
        seen = sum(times * kinds for times, kinds in self._kinds)
        once, twice = self.found.row_kinds[:2]
        if once == seen:
            return rows  # nothing repeats: it would be a guess that more of it does
        if rows <= seen:
            missed = 1 - rows / seen
            return sum(kinds * (1 - missed**times) for times, kinds in self._kinds)
        unseen = once * once / (2 * twice) if twice else once * (once - 1) / 2
        left = (1 - once / (seen * unseen + once)) ** (rows - seen) if unseen else 1.0
        return sum(kinds for _, kinds in self._kinds) + unseen * (1 - left)

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
