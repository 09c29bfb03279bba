"""The block transform as modules of matrix products, views, slices and concatenation: for static compilers.

The image is cut into `serial x serial` tiles, which run one after another, so that the matrices and what lies
between the two products are `serial**2` times smaller. Tiles are whole blocks: the coefficients are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import cast

import torch
from torch import Tensor, nn

from laconic.errors import SpecError
from laconic.ops.axis import AxisMap, along_columns, along_rows, decoding_map, encoding_map
from laconic.ops.block import coefficient_dtype, compute_dtype, to_pixels
from laconic.ops.triangle import gather_triangle, scatter_triangle, triangle_index
from laconic.stage import TensorSpec, Tiling

OPERATORS = frozenset(
    {"matmul", "mT", "narrow", "unflatten", "flatten", "cat"}  # float32 or float64, keep=square
    | {"reshape", "index_select", "new_zeros", "index_copy"}  # keep=triangle
    | {"to", "nan_to_num", "round", "clamp"}  # other dtypes
)


class AxisProduct(nn.Module):
    """An `AxisMap` whose matrices are buffers, so that `.to(device)` moves them."""

    body: Tensor | None
    tail: Tensor | None

    def __init__(self, axis_map: AxisMap) -> None:
        super().__init__()
        self.register_buffer("body", axis_map.body, persistent=False)
        self.register_buffer("tail", axis_map.tail, persistent=False)
        self.spans = axis_map.spans

    @property
    def map(self) -> AxisMap:
        return AxisMap(self.body, self.spans, self.tail)


class Axis(nn.Module):
    """One axis cut into `serial` tiles of whole blocks, and the matrices for each.

    All tiles but the last share theirs; so does the last where it is made of whole blocks.
    """

    def __init__(self, size: int, block: int, serial: int, make_map: Callable[[int], AxisMap]) -> None:
        super().__init__()
        blocks = -(-size // block)
        if not 1 <= serial <= blocks or blocks % serial:
            fits = [s for s in range(1, blocks + 1) if blocks % s == 0]
            raise SpecError(f"serial={serial} does not cut {blocks} blocks ({size} pixels) evenly. Try one of {fits}")
        step = blocks // serial * block
        self.blocks = blocks
        self.pixels = [step] * (serial - 1) + [size - step * (serial - 1)]
        self.products = nn.ModuleDict({str(n): AxisProduct(make_map(n)) for n in sorted(set(self.pixels))})

    def maps(self) -> list[AxisMap]:
        return [cast(AxisProduct, self.products[str(n)]).map for n in self.pixels]


def transform_tiles(x: Tensor, rows: list[AxisMap], columns: list[AxisMap], encode: bool) -> Tensor:
    """Applies the maps of both axes tile by tile, the smaller intermediate first, and joins the tiles."""
    strips = []
    for strip, row_map in zip(_cut(x, -2, rows), rows, strict=True):
        tiles = []
        for tile, column_map in zip(_cut(strip, -1, columns), columns, strict=True):
            if encode:
                tiles.append(along_columns(column_map, along_rows(row_map, tile)))
            else:
                tiles.append(along_rows(row_map, along_columns(column_map, tile)))
        strips.append(_join(tiles, -1))
    return _join(strips, -2)


def _cut(x: Tensor, dim: int, maps: list[AxisMap]) -> list[Tensor]:
    if len(maps) == 1:
        return [x]
    starts = accumulate((m.in_size for m in maps), initial=0)
    return [x.narrow(dim, start, m.in_size) for start, m in zip(starts, maps, strict=False)]


def _join(pieces: list[Tensor], dim: int) -> Tensor:
    return pieces[0] if len(pieces) == 1 else torch.cat(pieces, dim)


class _BlockModule(nn.Module):
    """What both directions share: the two axes, the dtypes, and the triangle's index."""

    index: Tensor | None

    def __init__(self, matrix: Tensor, encode: bool, image: TensorSpec, triangle: bool, tiling: Tiling) -> None:
        super().__init__()
        self.image = image
        self.compute = compute_dtype(image.dtype)
        self.chop, block = sorted(matrix.shape)
        exact = matrix.to(self.compute)
        make_map = encoding_map if encode else decoding_map
        height, width = image.shape[-2:]
        self.rows = Axis(height, block, tiling.serial, lambda n: make_map(n, exact, tiling.span))
        self.columns = Axis(width, block, tiling.serial, lambda n: make_map(n, exact, tiling.span))
        index = triangle_index(self.columns.blocks, self.chop) if triangle else None
        self.register_buffer("index", index, persistent=False)


class BlockEncode(_BlockModule):
    """Image to coefficients."""

    def __init__(self, rows: Tensor, image: TensorSpec, triangle: bool, tiling: Tiling) -> None:
        super().__init__(rows, True, image, triangle, tiling)

    def forward(self, x: Tensor) -> Tensor:
        y = transform_tiles(_as(x, self.compute), self.rows.maps(), self.columns.maps(), encode=True)
        if self.index is not None:
            y = gather_triangle(y, self.chop, self.index)
        return _as(y, coefficient_dtype(self.image.dtype))


class BlockDecode(_BlockModule):
    """Coefficients to image."""

    def __init__(self, columns: Tensor, image: TensorSpec, triangle: bool, tiling: Tiling) -> None:
        super().__init__(columns, False, image, triangle, tiling)

    def forward(self, y: Tensor) -> Tensor:
        y = _as(y, self.compute)
        if self.index is not None:
            y = scatter_triangle(y, self.chop, self.index)
        x = transform_tiles(y, self.rows.maps(), self.columns.maps(), encode=False)
        return to_pixels(x) if self.image.dtype == torch.uint8 else _as(x, self.image.dtype)


def _as(x: Tensor, dtype: torch.dtype) -> Tensor:
    """`x.to(dtype)`, which an exporter keeps even where it does nothing."""
    return x if x.dtype == dtype else x.to(dtype)
