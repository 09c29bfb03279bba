"""The block transform for GPUs, in the square layout. What the kernels do not take runs the reference."""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
from torch import Tensor

from laconic.backends.triton.block_kernels import transform_strip
from laconic.ops import LIBRARY
from laconic.ops.block import check_call, raise_on_overflow, reference_decode, reference_encode

BLOCKS = (4, 8, 16, 32)
IMAGE_DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.uint8)

STRIP_PIXELS = 1024
PIXELS_PER_WARP = 256
"""Eight for each thread: its products then need 60 to 100 registers, and enough programs run side by side."""


class Strip(NamedTuple):
    """What one program works on; see `block_kernels.py`."""

    tile: int
    tiles: int
    kept: int

    @property
    def products_per_pixel(self) -> float:
        return self.kept + self.kept * self.kept / self.tile

    @property
    def warps(self) -> int:
        return max(1, self.tile * self.tile * self.tiles // PIXELS_PER_WARP)


def choose_strip(block: int, chop: int, width: int) -> Strip:
    """The tile with the fewest products: 24 for each pixel while chop <= block / 2, then 32 (64 for blocks of 32).

    24 multiply-adds in float32 are 10 operations for each byte moved, where GPUs do 10 to 20 in that time: memory is
    the limit, if barely. Larger tiles would multiply more zeros. More tiles only make each read longer.
    """
    strips = []
    for tile in (16, 32):
        if tile >= block:
            tiles = min(STRIP_PIXELS // tile**2, triton.next_power_of_2(triton.cdiv(width, tile)))
            strips.append(Strip(tile, tiles, max(16, triton.next_power_of_2(tile // block * chop))))
    return min(strips, key=lambda strip: strip.products_per_pixel)


def encode(x: Tensor, basis: Tensor, chop: int, triangle: bool, out: Tensor) -> None:
    check_call(x, out, basis, chop, triangle)
    if triangle or not _takes(x, basis):
        return reference_encode(x, basis, chop, triangle, out)
    target = out if out.is_contiguous() else torch.empty_like(out, memory_format=torch.contiguous_format)
    overflowed = _launch(_as_images(x), target, basis, chop, encode=True)
    if target is not out:
        out.copy_(target)
    return raise_on_overflow(overflowed)


def decode(y: Tensor, basis: Tensor, chop: int, triangle: bool, out: Tensor) -> None:
    check_call(out, y, basis, chop, triangle)
    if triangle or not _takes(out, basis):
        return reference_decode(y, basis, chop, triangle, out)
    images = _as_images(out)
    overflowed = _launch(images, y.contiguous(), basis.mT, chop, encode=False)
    if images.data_ptr() != out.data_ptr():
        out.copy_(images.view(out.shape))
    return raise_on_overflow(overflowed)


def _takes(image: Tensor, basis: Tensor) -> bool:
    return image.dtype in IMAGE_DTYPES and basis.shape[0] in BLOCKS and image.numel() > 0


def _as_images(x: Tensor) -> Tensor:
    """[.., H, W] -> [images, H, W]: a view, with any strides, wherever the leading dimensions allow one."""
    return x.reshape(-1, *x.shape[-2:])


def _launch(images: Tensor, coefficients: Tensor, basis: Tensor, chop: int, encode: bool) -> bool:
    """Whether a finite value overflowed. `basis` has a row for each coefficient, in both directions.

    Only float16 overflows so, and only it waits for the GPU. The kernel sets a flag, and only on overflow: that
    costs no traffic, where another look at the result would.
    """
    count, height, width = images.shape
    strip = choose_strip(basis.shape[0], chop, width)
    # One dimension, since a grid's others end at 65535.
    grid = (count * triton.cdiv(height, strip.tile) * triton.cdiv(width, strip.tile * strip.tiles),)
    basis = basis.to(images.device)
    overflow = images.new_zeros(1, dtype=torch.int32) if images.dtype == torch.float16 else None
    with torch.cuda.device_of(images):
        transform_strip[grid](
            images,
            *images.stride(),
            height,
            width,
            coefficients,
            basis,
            *basis.stride(),
            overflow,
            encode,
            basis.shape[0],
            chop,
            *strip,
            num_warps=strip.warps,
        )
    return overflow is not None and bool(overflow)


LIBRARY.impl("block_encode_out", encode, "CUDA")
LIBRARY.impl("block_decode_out", decode, "CUDA")
