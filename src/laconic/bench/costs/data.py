"""Codes on which encoders are timed, each kind with another mix of what they live on."""

from __future__ import annotations

import math

import torch
from torch import Tensor

SEED = 0
DTYPES = {1: torch.int8, 2: torch.int16, 4: torch.int32}
ROW = 64
"""Codes of a row, where rows repeat."""
SIGMAS = {
    1: (0.25, 0.6, 2.0, 8.0, 40.0),
    2: (0.5, 5.0, 50.0, 800.0, 8000.0),
    4: (0.5, 5.0, 500.0, 5e4, 1e8),
}
"""From nearly all zeros to nearly noise, by the bytes of a code."""


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(SEED)


def normal(count: int, itemsize: int, sigma: float) -> Tensor:
    """Rounded, as what predictors leave."""
    dtype = DTYPES[itemsize]
    most = torch.iinfo(dtype).max
    drawn = torch.randn(min(count, 1 << 20), generator=_generator(), dtype=torch.float64).mul(sigma).round()
    codes = drawn.clamp(-most, most).to(dtype)
    return codes.repeat(math.ceil(count / len(codes)))[:count] if count else codes[:0]


def uniform(count: int, itemsize: int) -> Tensor:
    """Noise, which no encoder makes smaller."""
    drawn = torch.randint(0, 256, (count * itemsize,), generator=_generator(), dtype=torch.uint8)
    return drawn.view(DTYPES[itemsize])


def runs(count: int, itemsize: int, length: int = 64) -> Tensor:
    """Each code as often as 64 times in a row."""
    kinds = torch.randint(-3, 4, (math.ceil(count / length),), generator=_generator())
    return kinds.repeat_interleave(length)[:count].to(DTYPES[itemsize])


def rows(count: int, itemsize: int, kinds: int = 500) -> Tensor:
    """Rows of which each is one of so many kinds; where there are few, of fewer."""
    total = max(1, count // ROW)
    kinds = min(kinds, max(1, total // 32))
    distinct = normal(kinds * ROW, itemsize, 5.0).view(kinds, ROW)
    return distinct[torch.randint(0, kinds, (total,), generator=_generator())]
