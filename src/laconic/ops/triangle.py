"""`keep=triangle`: of each block the coefficients with i + j < chop, gathered into dense rows and scattered back."""

from __future__ import annotations

import torch
from torch import Tensor


def triangle_index(blocks: int, chop: int, device: torch.device | None = None) -> Tensor:
    """Which of a block row's `chop * blocks * chop` coefficients lie in the triangles. One index for all rows."""
    i = torch.arange(chop, device=device)
    inside = (i[:, None] + i < chop)[:, None, :].expand(chop, blocks, chop)
    return inside.flatten().nonzero().squeeze(-1)


def gather_triangle(y: Tensor, chop: int, index: Tensor) -> Tensor:
    """[.., Hb*chop, Wb*chop] -> [.., Hb, Wb*chop*(chop+1)/2]"""
    *leading, rows, columns = y.shape
    return y.reshape([*leading, rows // chop, chop * columns]).index_select(-1, index)


def scatter_triangle(values: Tensor, chop: int, index: Tensor) -> Tensor:
    """The way back, with zeros where nothing was kept."""
    *leading, block_rows, kept = values.shape
    columns = kept // (chop * (chop + 1) // 2) * chop
    y = values.new_zeros([*leading, block_rows, chop * columns]).index_copy(-1, index, values)
    return y.reshape([*leading, block_rows * chop, columns])
