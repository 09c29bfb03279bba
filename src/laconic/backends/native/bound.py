"""The bounded quantiser in C++."""

from __future__ import annotations

import torch
from torch import Tensor

from laconic.backends.native.codes import CODES, CORE, FLOATS, code_shape, floats, places, takes
from laconic.ops import LIBRARY
from laconic.ops.bound import reference_decode, reference_encode, top_code


def encode(x: Tensor, step: Tensor, bound: Tensor, codes: Tensor) -> Tensor:
    if not takes(x, codes, step, bound) or x.dtype not in FLOATS or codes.dtype not in CODES:
        return reference_encode(x, step, bound, codes)
    shape = code_shape(x, codes.dtype, 0, flat=len(step) == 1)
    grid = floats(x, step, bound, top_code(codes.dtype, step.dtype))
    _, found = CORE.float_encode(grid, shape, False, codes.data_ptr(), torch.get_num_threads())
    return places(found)


def decode(codes: Tensor, step: Tensor, out: Tensor) -> None:
    if not takes(codes, step, out) or out.dtype not in FLOATS or codes.dtype not in CODES:
        return reference_decode(codes, step, out)
    shape = code_shape(out, codes.dtype, 0, flat=len(step) == 1)
    grid = floats(out, step)
    CORE.float_decode(codes.data_ptr(), -1, shape, grid, torch.get_num_threads())
    return None


LIBRARY.impl("bound_encode_out", encode, "CPU")
LIBRARY.impl("bound_decode_out", decode, "CPU")
