"""How far what comes back is from what was packed: sums that are the same in whatever blocks they are taken.

Each sample gives its own numbers, and they add up in the order of samples: neither processes nor memory change a bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

import laconic.ops.deviation  # noqa: F401  # declares the operator
from laconic.errors import DataError


@dataclass(frozen=True)
class Sums:
    """Of an array, or some samples of it; over values that are finite before and after."""

    values: int = 0
    before: int = 0
    after: int = 0
    """Bytes."""
    squares: float = 0.0
    largest: float = 0.0
    low: float = math.inf
    high: float = -math.inf

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.values + other.values,
            self.before + other.before,
            self.after + other.after,
            self.squares + other.squares,
            max(self.largest, other.largest),
            min(self.low, other.low),
            max(self.high, other.high),
        )

    def psnr(self, dtype: torch.dtype) -> float:
        """In dB, as `laconic.metrics.psnr` has it."""
        if self.squares == 0:
            return math.inf
        peak = 255.0 if dtype == torch.uint8 else self.high - self.low
        return 20 * math.log10(peak / math.sqrt(self.squares / self.values)) if peak > 0 else -math.inf

    def report(self, dtype: torch.dtype) -> dict[str, Any]:
        """For people and JSON, which has no infinity."""
        psnr = self.psnr(dtype)
        ratio = self.before / self.after if self.after else None
        quality = {"psnr": psnr if math.isfinite(psnr) else None, "max_error": self.largest}
        return {"before": self.before, "after": self.after, "ratio": ratio, **quality}

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


NONE = Sums()


def total(sums: Iterable[Sums]) -> Sums:
    found = NONE
    for each in sums:
        found = found + each
    return found


def compare(x: Tensor, restored: Tensor, sums: Sums = NONE, refuse: Callable[[], None] = lambda: None) -> Sums:
    """`sums`, and those of these samples. `refuse` is called where something is not finite: it may raise."""
    rows = torch.ops.laconic.deviation(x, restored).tolist()
    if not all(math.isfinite(row[-1]) for row in rows):
        refuse()
        rows = _of_finite(x, restored)
    low, high, largest, squares = zip(*rows, strict=True)
    added = sums.squares
    for square in squares:  # one by one: what a sum is may not depend on where blocks end
        added += square
    return Sums(
        values=sums.values + x.numel(),
        before=sums.before + x.nbytes,
        after=sums.after,
        squares=added,
        largest=max(sums.largest, *largest),
        low=min(sums.low, *low),
        high=max(sums.high, *high),
    )


def _of_finite(x: Tensor, restored: Tensor) -> list[list[float]]:
    """As `deviation` has it for samples in which whatever is not finite, before or after, came back as it was."""
    rows = []
    for value, other in zip(x, restored, strict=True):
        finite = value.isfinite() & other.isfinite()
        known = torch.stack([value[finite], other[finite]]).double()
        if not known.numel():
            rows.append([math.inf, -math.inf, 0.0, 0.0])
            continue
        difference = known[0] - known[1]
        edges = (known[0].min(), known[0].max(), difference.abs().max(), difference.square().sum())
        rows.append(list(map(float, edges)))
    return rows


def refuse_nan(x: Tensor, name: str, first: int, codec: str) -> None:
    """For codecs that would spread it. Names the sample, counted from `first`."""
    bad = (~x.reshape(len(x), -1).isfinite()).any(1).nonzero()
    if len(bad):
        raise DataError(
            f"'{name}': sample {first + int(bad[0])} has NaN or Inf, which '{codec}' would spread over its blocks. "
            "Fill them in first, or pack with a codec that keeps them, such as 'bound:rel=1e-3|lorenzo|huffman'"
        )
