"""The bounded quantiser in C++."""

from __future__ import annotations

import torch
from torch import Tensor

from laconic.backends.native import DTYPES
from laconic.backends.native.codes import CODES, CORE, code_shape, floats, places, takes
from laconic.ops import LIBRARY
from laconic.ops.bound import reference_decode, reference_encode, reference_extent

_FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def extent(x: Tensor, scopes: int, squares: bool) -> Tensor:
    if not takes(x) or x.dtype not in _FLOATS:
        return reference_extent(x, scopes, squares)
    size = x.numel() // scopes
    found = CORE.float_extents(x.data_ptr(), DTYPES[x.dtype], scopes, size, squares, torch.get_num_threads())
    return torch.tensor(found, dtype=torch.float64).view(scopes, 4)


def encode(x: Tensor, step: Tensor, bound: Tensor, codes: Tensor) -> Tensor:
    if not takes(x, codes, step, bound) or x.dtype not in _FLOATS or codes.dtype not in CODES:
        return reference_encode(x, step, bound, codes)
    shape = code_shape(x, codes.dtype, 0, flat=len(step) == 1)
    grid = floats(x, step, bound, codes.dtype)
    _, found = CORE.float_encode(grid, shape, False, codes.data_ptr(), torch.get_num_threads())
    return places(found)


def decode(codes: Tensor, step: Tensor, out: Tensor) -> None:
    if not takes(codes, step, out) or out.dtype not in _FLOATS or codes.dtype not in CODES:
        return reference_decode(codes, step, out)
    shape = code_shape(out, codes.dtype, 0, flat=len(step) == 1)
    grid = floats(out, step, None, codes.dtype)
    CORE.float_decode(codes.data_ptr(), -1, shape, grid, torch.get_num_threads())
    return None


LIBRARY.impl("bound_extent", extent, "CPU")
LIBRARY.impl("bound_encode_out", encode, "CPU")
LIBRARY.impl("bound_decode_out", decode, "CPU")
