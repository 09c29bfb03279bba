"""Rows as embedding look-ups give them: few of a table, again and again."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import strategies as st

DTYPES = [torch.int8, torch.uint8, torch.int16, torch.int32]


def looked_up(
    rows: int, columns: int, different: int, dtype: torch.dtype = torch.int8, skew: float = 0.0, seed: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Some rows of a table, and which ones they are. The larger the skew, the more often are they the same."""
    rng = np.random.default_rng(seed)
    low = 0 if dtype == torch.uint8 else -9
    table = torch.from_numpy(rng.integers(low, 9, (different, columns))).to(dtype)
    chance = np.arange(1, different + 1) ** -float(skew)
    indices = torch.from_numpy(rng.choice(different, rows, p=chance / chance.sum()))
    return table[indices], indices


@st.composite
def lookups(draw: st.DrawFn) -> tuple[torch.Tensor, torch.Tensor]:
    return looked_up(
        draw(st.integers(0, 70) | st.integers(250, 700)),
        draw(st.sampled_from([1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 33, 64, 65, 100, 128, 300])),
        draw(st.integers(1, 600)),
        draw(st.sampled_from(DTYPES)),
        draw(st.sampled_from([0.0, 1.0, 3.0])),
        draw(st.integers(0, 99)),
    )
