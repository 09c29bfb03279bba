"""How far samples are from what came back of them, in C++."""

from __future__ import annotations

import torch
from torch import Tensor

from laconic.backends.native import DTYPES
from laconic.backends.native.codes import CORE, takes
from laconic.ops import LIBRARY
from laconic.ops.deviation import reference_deviation


def deviation(x: Tensor, y: Tensor) -> Tensor:
    if x.dtype not in DTYPES or x.shape != y.shape or x.dtype != y.dtype or not (takes(x) and takes(y)):
        return reference_deviation(x, y)
    found = torch.empty((len(x), 4), dtype=torch.float64)
    CORE.deviation(x.data_ptr(), y.data_ptr(), DTYPES[x.dtype], len(x), x.numel() // len(x), found.data_ptr())
    return found


LIBRARY.impl("deviation", deviation, "CPU")
