"""How far what comes back is from what was packed: sums that are the same in whatever blocks they are taken.

Each sample gives its own numbers, and they add up in the order of samples: neither processes nor memory change a bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from laconic.errors import DataError

_LANE = 1024
_SAFE = (1e-25, 1e25)
"""Between these a sum of squares in float32 neither lost a summand nor overflowed."""


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


Edges = tuple[float, float]


def edges_of(x: Tensor) -> Edges:
    """Least and greatest; neither is finite where something is NaN."""
    low, high = x.aminmax()
    return float(low), float(high)


def compare(x: Tensor, restored: Tensor, sums: Sums = NONE, edges: Edges | None = None) -> Sums:
    """`sums`, and those of these samples. The memory of `restored` is used up."""
    wide = torch.float64 if x.dtype in (torch.float64, torch.int32, torch.int64) else torch.float32
    values, other = x.to(wide), restored.to(wide)
    low, high = edges or edges_of(x)
    if not (math.isfinite(low) and math.isfinite(high)):
        finite = values.isfinite() & other.isfinite()
        known = values[finite]
        low, high = edges_of(known) if known.numel() else (math.inf, -math.inf)
        values, other = (each.masked_fill(~finite, 0.0) for each in (values, other))
    difference = torch.sub(values, other, out=other)
    least, most = edges_of(difference)
    squares = sums.squares
    for square in _squares(difference.reshape(len(x), -1).numpy()):
        squares += float(square)
    rest = Sums(x.numel(), x.nbytes, 0, 0.0, max(-least, most, 0.0), low, high)
    found = sums + rest
    return Sums(found.values, found.before, found.after, squares, found.largest, found.low, found.high)


def refuse_nan(x: Tensor, edges: Edges, name: str, first: int, codec: str) -> None:
    """For codecs that would spread it. Names the sample, counted from `first`."""
    if all(map(math.isfinite, edges)):
        return
    bad = int((~x.reshape(len(x), -1).isfinite()).any(1).nonzero()[0])
    raise DataError(
        f"'{name}': sample {first + bad} has NaN or Inf, which '{codec}' would spread over its blocks. "
        "Fill them in first, or pack with a codec that keeps them, such as 'bound:rel=1e-3|lorenzo|huffman'"
    )


def _squares(rows: NDArray[Any]) -> NDArray[np.float64]:
    """The sum of squares of each row. In lanes of float32, then in float64, so that it is quick and exact enough."""
    main = rows.shape[1] // _LANE * _LANE
    lanes = rows[:, :main].reshape(-1, _LANE)
    found = _dots(lanes).reshape(len(rows), main // _LANE).astype(np.float64).sum(1)
    found += _dots(rows[:, main:]).astype(np.float64)
    for i in np.flatnonzero(~((found > _SAFE[0]) & (found < _SAFE[1]))):
        if rows[i].any():
            found[i] = np.square(rows[i], dtype=np.float64).sum()
    return found  # type: ignore[no-any-return]  # einsum is untyped


def _dots(rows: NDArray[Any]) -> NDArray[Any]:
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        return np.asarray(np.einsum("ij,ij->i", rows, rows))
