"""`bound`, `lorenzo` and `bitpack`, two or three of them, in one pass of C++."""

from __future__ import annotations

import torch
from torch import Tensor

from laconic.backends.native.codes import CORE, code_shape, floats, places, takes
from laconic.errors import CorruptData
from laconic.ops import LIBRARY
from laconic.ops.bound import CODES, top_code
from laconic.ops.packed import reference_pack, reference_predict, reference_restore, reference_unpack


def pack(x: Tensor, step: Tensor, bound: Tensor, width: int, dims: int, out: Tensor) -> tuple[int, Tensor]:
    if not takes(x, step, bound, out):
        return reference_pack(x, step, bound, width, dims, out)
    shape = code_shape(x, CODES[width], dims, flat=dims == 0 and len(step) == 1)
    grid = floats(x, step, bound, top_code(CODES[width], step.dtype))
    length, found = CORE.float_encode(grid, shape, True, out.data_ptr(), torch.get_num_threads())
    return length, places(found)


def unpack(data: Tensor, step: Tensor, width: int, dims: int, out: Tensor) -> None:
    if not takes(data, step, out):
        return reference_unpack(data, step, width, dims, out)
    shape = code_shape(out, CODES[width], dims, flat=dims == 0 and len(step) == 1)
    grid = floats(out, step)
    if not CORE.float_decode(data.data_ptr(), data.nbytes, shape, grid, torch.get_num_threads()):
        raise CorruptData(f"bitpack: these {data.nbytes} bytes are not a stream of {out.numel()} codes")
    return None


def predict(x: Tensor, step: Tensor, bound: Tensor, dims: int, residuals: Tensor) -> Tensor:
    if not takes(x, step, bound, residuals):
        return reference_predict(x, step, bound, dims, residuals)
    shape = code_shape(x, residuals.dtype, dims)
    grid = floats(x, step, bound, top_code(residuals.dtype, step.dtype))
    _, found = CORE.float_encode(grid, shape, False, residuals.data_ptr(), torch.get_num_threads())
    return places(found)


def restore(residuals: Tensor, step: Tensor, dims: int, out: Tensor) -> None:
    if not takes(residuals, step, out):
        return reference_restore(residuals, step, dims, out)
    shape = code_shape(out, residuals.dtype, dims)
    CORE.float_decode(residuals.data_ptr(), -1, shape, floats(out, step), torch.get_num_threads())
    return None


LIBRARY.impl("bound_predict_out", predict, "CPU")
LIBRARY.impl("bound_restore_out", restore, "CPU")
LIBRARY.impl("bound_pack_out", pack, "CPU")
LIBRARY.impl("bound_unpack_out", unpack, "CPU")
