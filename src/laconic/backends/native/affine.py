"""The quantiser of a fixed number of bits in C++."""

from __future__ import annotations

import torch
from torch import Tensor

from laconic.backends.native import DTYPES
from laconic.backends.native.codes import CORE, FLOATS, line, takes
from laconic.ops import LIBRARY
from laconic.ops.affine import check_call, reference_decode, reference_encode, top_code

Grid = tuple[int, int, int, int, int, int]


def encode(
    x: Tensor, bits: int, row: int, group: int, seed: int | None, codes: Tensor, scale: Tensor, offset: Tensor | None
) -> None:
    if not takes_grid(x, scale, offset, row, group) or not takes(codes):
        return reference_encode(x, bits, row, group, seed, codes, scale, offset)
    check_call(x, codes, scale, offset, row, group)
    grid = grid_of(x, scale, offset, row, group, top_code(bits, offset is None))
    shape = x.numel(), line(x), 0, codes.dtype.is_signed
    CORE.affine_encode(x.data_ptr(), shape, grid, seed_of(seed), codes.data_ptr(), torch.get_num_threads())
    return None


def decode(codes: Tensor, scale: Tensor, offset: Tensor | None, row: int, group: int, out: Tensor) -> None:
    if not takes_grid(out, scale, offset, row, group) or not takes(codes):
        return reference_decode(codes, scale, offset, row, group, out)
    check_call(out, codes, scale, offset, row, group)
    grid = grid_of(out, scale, offset, row, group)
    shape = out.numel(), line(out), 0, codes.dtype.is_signed
    CORE.affine_decode(codes.data_ptr(), shape, grid, out.data_ptr(), torch.get_num_threads())
    return None


def takes_grid(x: Tensor, scale: Tensor, offset: Tensor | None, row: int, group: int) -> bool:
    """Whether C++ does it: what it cuts into groups is the last dimension, and they are no longer than 256."""
    tensors = (x, scale) if offset is None else (x, scale, offset)
    return takes(*tensors) and x.dtype in FLOATS and (group == row or (group <= 256 and row == line(x)))


def grid_of(x: Tensor, scale: Tensor, offset: Tensor | None, row: int, group: int, top: int = 0) -> Grid:
    """As C++ reads it."""
    return DTYPES[x.dtype], scale.data_ptr(), 0 if offset is None else offset.data_ptr(), row, group, top


def seed_of(seed: int | None) -> int:
    return -1 if seed is None else seed


LIBRARY.impl("affine_encode_out", encode, "CPU")
LIBRARY.impl("affine_decode_out", decode, "CPU")
