"""The block transform for GPUs. What the kernels do not take runs the reference."""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from laconic.backends.triton.block_kernels import decode_tile, encode_tile
from laconic.ops import LIBRARY
from laconic.ops.block import check_call, raise_on_overflow, reference_decode, reference_encode

BLOCKS = (4, 8, 16, 32)
IMAGE_DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.uint8)

LINE_PIXELS = 512
"""Of a tile's line through all its blocks: four for each thread, 16 bytes of float32."""
MOST_BLOCKS = 64
"""Fewer than threads: Triton then reads a block's coefficient in each of its threads, rather than hand it round."""
WARPS = 4


class Tile(NamedTuple):
    """The blocks one program works on; see `block_kernels.py`."""

    tall: int
    wide: int


def choose_tile(block: int, width: int) -> Tile:
    """As wide as the image, if that is enough."""
    blocks = min(LINE_PIXELS // block, MOST_BLOCKS)
    wide = min(blocks, triton.next_power_of_2(triton.cdiv(width, block)))
    return Tile(blocks // wide, wide)


def encode(x: Tensor, basis: Tensor, chop: int, triangle: bool, out: Tensor) -> None:
    check_call(x, out, basis, chop, triangle)
    if not _takes(x, basis):
        return reference_encode(x, basis, chop, triangle, out)
    target = out if out.is_contiguous() else torch.empty_like(out, memory_format=torch.contiguous_format)
    overflowed = _launch(encode_tile, _as_images(x), target, basis, chop, triangle)
    if target is not out:
        out.copy_(target)
    return raise_on_overflow(overflowed)


def decode(y: Tensor, basis: Tensor, chop: int, triangle: bool, out: Tensor) -> None:
    check_call(out, y, basis, chop, triangle)
    if not _takes(out, basis):
        return reference_decode(y, basis, chop, triangle, out)
    images = _as_images(out)
    overflowed = _launch(decode_tile, images, y.contiguous(), basis.mT, chop, triangle)
    if images.data_ptr() != out.data_ptr():
        out.copy_(images.view(out.shape))
    return raise_on_overflow(overflowed)


def _takes(image: Tensor, basis: Tensor) -> bool:
    return image.dtype in IMAGE_DTYPES and basis.shape[0] in BLOCKS and image.numel() > 0


def _as_images(x: Tensor) -> Tensor:
    """[.., H, W] -> [images, H, W]: a view, with any strides, wherever the leading dimensions allow one."""
    return x.reshape(-1, *x.shape[-2:])


def _launch(
    kernel: triton.JITFunction, images: Tensor, coefficients: Tensor, basis: Tensor, chop: int, triangle: bool
) -> bool:
    """Whether a finite value overflowed. `basis` has a row for each coefficient, in both directions.

    Only float16 overflows so, and only it waits for the GPU. The kernel sets a flag, and only on overflow: that
    costs no traffic, where another look at the result would.
    """
    count, height, width = images.shape
    block = basis.shape[0]
    block_rows = count * triton.cdiv(height, block)
    tile = choose_tile(block, width)
    # One dimension, since a grid's others end at 65535.
    grid = (triton.cdiv(block_rows, tile.tall) * triton.cdiv(width, block * tile.wide),)
    basis = basis.to(images.device)
    overflow = images.new_zeros(1, dtype=torch.int32) if images.dtype == torch.float16 else None
    with torch.cuda.device_of(images):
        kernel[grid](
            *(images, *images.stride(), height, width, block_rows),
            *(coefficients, basis, *basis.stride(), overflow),
            *(block, chop, triangle, width % block == 0),
            *(tl.float64 if images.dtype == torch.float64 else tl.float32, *tile),
            num_warps=WARPS,
        )
    return overflow is not None and bool(overflow)


LIBRARY.impl("block_encode_out", encode, "CUDA")
LIBRARY.impl("block_decode_out", decode, "CUDA")
