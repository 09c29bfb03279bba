"""`affine` and `bitpack:width=N` in one pass of C++."""

from __future__ import annotations

import torch
from torch import Tensor

from laconic.backends.native.affine import grid_of, seed_of, takes_grid
from laconic.backends.native.codes import CORE, line, takes
from laconic.ops import LIBRARY
from laconic.ops.affine import check_grid, top_code
from laconic.ops.fixed import check_packed
from laconic.ops.packed_affine import check_bits, reference_pack, reference_unpack


def pack(
    x: Tensor,
    bits: int,
    row: int,
    group: int,
    seed: int | None,
    width: int,
    out: Tensor,
    scale: Tensor,
    offset: Tensor | None,
) -> None:
    if not takes_grid(x, scale, offset, row, group) or not takes(out):
        return reference_pack(x, bits, row, group, seed, width, out, scale, offset)
    check_bits(bits, width)
    check_grid(x, scale, offset, row, group)
    check_packed(tuple(x.shape), out, width)
    grid = grid_of(x, scale, offset, row, group, top_code(bits, offset is None))
    shape = x.numel(), line(x), width, offset is None
    CORE.affine_encode(x.data_ptr(), shape, grid, seed_of(seed), out.data_ptr(), torch.get_num_threads())
    return None


def unpack(data: Tensor, scale: Tensor, offset: Tensor | None, row: int, group: int, width: int, out: Tensor) -> None:
    if not takes_grid(out, scale, offset, row, group) or not takes(data):
        return reference_unpack(data, scale, offset, row, group, width, out)
    check_grid(out, scale, offset, row, group)
    check_packed(tuple(out.shape), data, width)
    grid = grid_of(out, scale, offset, row, group)
    shape = out.numel(), line(out), width, offset is None
    CORE.affine_decode(data.data_ptr(), shape, grid, out.data_ptr(), torch.get_num_threads())
    return None


LIBRARY.impl("affine_pack_out", pack, "CPU")
LIBRARY.impl("affine_unpack_out", unpack, "CPU")
