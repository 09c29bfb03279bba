"""What the native bodies of `bound`, `lorenzo` and `bitpack` share: one kernel does any of them, or all at once."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from laconic.backends.native import DTYPES, core

CORE: Any = core()
if CORE is None:
    raise ImportError("laconic's native part is not there; ask native.available() before importing its bodies")

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
CODES = (torch.int8, torch.uint8, torch.int16, torch.int32)

Shape = tuple[int, int, int, int, int, int, bool]


def code_shape(x: Tensor, codes: torch.dtype, dims: int, *, flat: bool = False) -> Shape:
    """As C++ reads it: how many, depth, height, width, the dimensions predicted along, bytes of a code, signed.
    `flat`: lines need not end where rows do."""
    sizes = [1, 1, 1, *x.shape][-3:]
    kept = max(dims, 1)
    depth, height, width = [1, 1, x.numel()] if flat else [1] * (3 - kept) + sizes[3 - kept :]
    return x.numel(), depth, height, width, dims, codes.itemsize, codes.is_signed


def floats(x: Tensor, step: Tensor, bound: Tensor | None = None, top: int = 0) -> tuple[int, ...]:
    """The floats to read or to write, with the grid of their scopes, and the largest code."""
    bound_ptr = 0 if bound is None else bound.data_ptr()
    return x.data_ptr(), DTYPES[x.dtype], step.data_ptr(), bound_ptr, math.ceil(x.numel() / len(step)), top


def line(x: Tensor) -> int:
    """The elements of a row: what `affine` cuts into groups, and planes of one width are packed by."""
    return x.shape[-1] if x.dim() else 1


def places(found: bytes) -> Tensor:
    """The exceptions' places, as C++ gave them."""
    return torch.frombuffer(bytearray(found), dtype=torch.int64) if found else torch.empty(0, dtype=torch.int64)


def takes(*tensors: Tensor) -> bool:
    """Whether C++ may have their memory: contiguous, at multiples of their element's size, and not empty."""
    return all(x.is_contiguous() and x.numel() > 0 and x.data_ptr() % x.element_size() == 0 for x in tensors)
