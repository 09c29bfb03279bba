"""The grid of `bound` in C++."""

from __future__ import annotations

import torch
from torch import Tensor

from laconic.backends.native import DTYPES
from laconic.backends.native.codes import CORE, FLOATS, takes
from laconic.ops import LIBRARY
from laconic.ops.block import compute_dtype
from laconic.ops.grid import reference_grid


def grid(x: Tensor, scopes: int, kind: int, value: float) -> tuple[Tensor, Tensor, int]:
    if not takes(x) or x.dtype not in FLOATS:
        return reference_grid(x, scopes, kind, value)
    step = torch.empty(scopes, dtype=compute_dtype(x.dtype))
    bound = torch.empty_like(step)
    width = CORE.bound_grid(
        *(x.data_ptr(), DTYPES[x.dtype], scopes, x.numel() // scopes, kind, value),
        *(step.data_ptr(), bound.data_ptr(), torch.get_num_threads()),
    )
    return step, bound, width


LIBRARY.impl("bound_grid", grid, "CPU")
