"""What encoders would make of some codes, foretold from a sample of them.

    codes  --survey-->  symbols, widths, rows alike  -->  bytes with each encoder
           --some KiB, encoded-->  bytes with encoders that are somebody's library
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from laconic.encoders.memory import as_bytes
from laconic.ops import survey as ops
from laconic.ops.huffman_symbols import EXTRA_BITS
from laconic.stage import Context, Stage, TensorSpec

PIECE = 4096
"""Bytes that are encoded in a row, so that what repeats nearby is seen."""
LEAST_ROW, MOST_ROW = 4, 4096
"""Bytes of what counts as a row: fewer repeat by chance, and of more a sample holds too few."""


class Sample:
    """A sample for codes of `spec`, taken from these, which are like them and lie in a row. `thorough`: a larger one,
    where only the size counts, not the time to choose."""

    def __init__(self, codes: Tensor, spec: TensorSpec, thorough: bool = False) -> None:
        self.codes, self.thorough = codes, thorough
        self.count, self.nbytes, self.itemsize = spec.numel, spec.nbytes, spec.dtype.itemsize
        width = spec.shape[-1] if len(spec.shape) > 1 else 0
        self.row = width if LEAST_ROW <= width * self.itemsize <= MOST_ROW else 0

    @cached_property
    def found(self) -> list[int]:
        """The numbers of `ops/survey.py`."""
        blocks, rows = (2048, 4096) if self.thorough else (512, 512)
        rows = max(64, min(rows, self.codes.numel() // (8 * max(self.row, 1))))  # of a small tensor, to spend little on it
        numbers: list[int] = torch.ops.laconic.survey(self.codes, self.row, blocks, rows).tolist()
        return numbers

    @cached_property
    def symbols(self) -> np.ndarray:
        return np.array(self.found[: ops.WIDTHS], np.float64)

    @cached_property
    def extra_bits(self) -> float:
        """Of a code, on the average, the bits that its symbol leaves over."""
        return float(self.symbols @ EXTRA_BITS) / self.symbols.sum() if self.itemsize > 1 else 0.0

    @cached_property
    def entropy_bits(self) -> float:
        """Of a code: the order-0 entropy of its symbol, and the extra bits."""
        counts = self.symbols[self.symbols > 0]
        total = counts.sum()
        entropy = math.log2(total) - float(counts @ np.log2(counts)) / total
        unseen = (len(counts) - 1) / (2 * math.log(2) * total) if total < self.count else 0.0
        return entropy + unseen + self.extra_bits

    @cached_property
    def huffman_bits(self) -> float:
        """The same in words of whole bits; one symbol alone takes none."""
        return self.found[ops.HUFFMAN] / float(self.symbols.sum()) + self.extra_bits

    @cached_property
    def kinds(self) -> int:
        """Symbols that occur."""
        return int(np.count_nonzero(self.symbols))

    @cached_property
    def block_bytes(self) -> float:
        """Of a block of 32 codes as planes: a flag, and if not all are zero a width and the planes."""
        widths = self.found[ops.WIDTHS : ops.HUFFMAN]
        filled = sum(count * (1 + 4 * width) for width, count in enumerate(widths) if width)
        return 1 / 8 + filled / sum(widths)

    @cached_property
    def same(self) -> float:
        """The share of rows that equal the one before."""
        pairs = self.found[ops.PAIRS] if self.row else 0
        return self.found[ops.EQUAL] / pairs if pairs else 0.0

    @cached_property
    def alike(self) -> list[int]:
        """Of how many kinds of row there was one, or two, .."""
        return self.found[ops.CLASSES :]

    def fresh(self, rows: float, window: float) -> float:
        """Of so many rows, the share that is not to be found among as many as `window` before it; rows that equal
        the one before left out."""
        if rows <= window:
            return self._kinds_among(rows) / rows
        step = max(window / 64, 1.0)
        rate = (self._kinds_among(window + step) - self._kinds_among(window)) / step
        return (self._kinds_among(window) + (rows - window) * rate) / rows

    def _kinds_among(self, rows: float) -> float:
        """How many kinds so many rows have: of fewer than the sample by rarefaction, of more by Chao's estimate."""
        seen = sum(k * kinds for k, kinds in enumerate(self.alike, 1))
        once, twice = self.alike[0], self.alike[1]
        if once == seen:
            return rows  # nothing repeats: it would be a guess that more of it does
        if rows <= seen:
            missed = 1 - rows / seen
            return sum(kinds * (1 - missed**k) for k, kinds in enumerate(self.alike, 1))
        unseen = once * once / (2 * twice) if twice else once * (once - 1) / 2
        left = (1 - once / (seen * unseen + once)) ** (rows - seen) if unseen else 1.0
        return sum(self.alike) + unseen * (1 - left)

    def encoded(self, stage: Stage) -> tuple[int, int]:
        """The bytes of some pieces, and what `stage` makes of them."""
        data = self._pieces
        return data.nbytes, stage.encode(data, Context(data)).main.nbytes

    @cached_property
    def _pieces(self) -> Tensor:
        data = as_bytes(self.codes)
        share = data.nbytes // (1 if self.thorough else 16)
        most = max(1, min(share, (32 if self.thorough else 8) * PIECE) // PIECE)
        places = [int(place) * PIECE for place in ops.spread(most, max(1, data.nbytes // PIECE))]
        return torch.cat([data[place : place + PIECE] for place in places])
