"""The block transform for GPUs, in the square layout. What it does not take runs the reference.

A program transforms one strip of tiles. A tile is one or several blocks, so that the products are large enough:

    pixels     [tile, tiles*tile]    | tile | tile | tile | tile |
                  |  ^               M @ pixels: the rows of all tiles at once
    halfway    [kept, tiles*tile]  =  [kept*tiles, tile]
                  |  ^               halfway @ M.T: one line of one tile after another
    lines      [kept*tiles, kept]    of which the coefficients are the first tile/block*chop, both ways

M is `kept x tile`, block-diagonal, filled up with rows of zeros to a power of two. Decoding goes upwards with M.T.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from laconic.ops import LIBRARY
from laconic.ops.block import (
    coefficient_dtype,
    coefficient_shape,
    raise_on_overflow,
    reference_decode,
    reference_encode,
)

BLOCKS = (4, 8, 16, 32)
IMAGE_DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.uint8)
STRIP_PIXELS = 2048
PIXELS_PER_WARP = 512


class Strip(NamedTuple):
    """What one program works on; all powers of two, as Triton wants them."""

    tile: int
    tiles: int
    kept: int

    @property
    def products_per_pixel(self) -> float:
        return self.kept + self.kept * self.kept / self.tile


def choose_strip(block: int, chop: int, width: int) -> Strip:
    """The tile with the fewest products: 24 per pixel up to half the block's rows, then 32 (64 for blocks of 32).

    In float32 these 24 are 10 operations per byte moved, where GPUs have 10 to 20 to spend. Larger tiles would
    multiply more zeros. That a strip has several tiles makes the lines read long, and costs no arithmetic.
    """
    strips = []
    for tile in (16, 32):
        if tile >= block:
            tiles = min(STRIP_PIXELS // tile**2, triton.next_power_of_2(triton.cdiv(width, tile)))
            strips.append(Strip(tile, tiles, max(16, triton.next_power_of_2(tile // block * chop))))
    return min(strips, key=lambda strip: strip.products_per_pixel)


# The kernels.


@triton.jit
def _place_of_strip(height: Any, width: Any, tile: tl.constexpr, tiles: tl.constexpr) -> Any:
    """The image, and the place of its strip's first tile, for this program. Offsets from them need 64 bits.

    All lie on the grid's first axis, the only one that goes beyond 65535.
    """
    across = tl.cdiv(width, tile * tiles)
    down = tl.cdiv(height, tile)
    program = tl.program_id(0)
    image, tile_row, tile_column = program // (across * down), program // across % down, program % across * tiles
    return image.to(tl.int64), tile_row.to(tl.int64), tile_column.to(tl.int64)


@triton.jit
def _places_of_pixels(tile_row: Any, tile_column: Any, tile: tl.constexpr, tiles: tl.constexpr) -> Any:
    rows = tile_row * tile + tl.arange(0, tile)
    columns = tile_column * tile + tl.arange(0, tile * tiles)
    return rows[:, None], columns[None, :]


@triton.jit
def _places_of_lines(
    image: Any,
    tile_row: Any,
    tile_column: Any,
    height: Any,
    width: Any,
    block: tl.constexpr,
    chop: tl.constexpr,
    tile: tl.constexpr,
    tiles: tl.constexpr,
    kept: tl.constexpr,
) -> Any:
    """Where each element of `lines` lies among the coefficients, and whether it is one."""
    real: tl.constexpr = tile // block * chop
    line = tl.arange(0, kept * tiles)[:, None]
    element = tl.arange(0, kept)[None, :]
    rows, columns = tl.cdiv(height, block) * chop, tl.cdiv(width, block) * chop
    row = tile_row * real + line // tiles
    column = (tile_column + line % tiles) * real + element
    is_coefficient = (line // tiles < real) & (element < real) & (row < rows) & (column < columns)
    return (image * rows + row) * columns + column, is_coefficient


@triton.jit
def _tile_matrix(
    basis: Any,
    kept_stride: Any,
    pixel_stride: Any,
    block: tl.constexpr,
    chop: tl.constexpr,
    tile: tl.constexpr,
    kept: tl.constexpr,
) -> Any:
    """M. Only what lies on the diagonal is read: fewer bytes than a matrix with its zeros would be."""
    coefficient = tl.arange(0, kept)[:, None]
    pixel = tl.arange(0, tile)[None, :]
    place = coefficient % chop * kept_stride + pixel % block * pixel_stride
    return tl.load(basis + place, mask=coefficient // chop == pixel // block, other=0.0).to(tl.float32)


@triton.jit
def _multiply(values: Any, matrix: Any, contain: tl.constexpr) -> Any:
    """`values @ matrix`. With `contain`, zeros in the matrix stop NaN and Inf, and where these do count, NaN comes."""
    if not contain:
        return tl.dot(values, matrix, input_precision="ieee")
    finite = tl.abs(values) < float("inf")
    product = tl.dot(tl.where(finite, values, 0.0), matrix, input_precision="ieee")
    spoilt = tl.dot(tl.where(finite, 0.0, 1.0), (matrix != 0).to(tl.float32), input_precision="ieee")
    return tl.where(spoilt > 0, float("nan"), product)


@triton.jit
def _to_lines(pixels: Any, m: Any, tile: tl.constexpr, tiles: tl.constexpr, kept: tl.constexpr, contain: tl.constexpr) -> Any:
    halfway = tl.trans(_multiply(tl.trans(pixels), tl.trans(m), contain))
    return _multiply(tl.reshape(halfway, (kept * tiles, tile)), tl.trans(m), contain)
