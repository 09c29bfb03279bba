"""The kernels of the block transform: one program for each strip of tiles.

A tile is one block or several, so that Triton's smallest product is no waste. All sizes are powers of two:

    pixels     [tile, tiles*tile]    | tile | tile | tile | tile |
                  |  ^               M @ pixels: down the rows of all tiles at once
    halfway    [kept, tiles*tile]  =  [kept*tiles, tile]
                  |  ^               halfway @ M.T: along the rows of one tile after another
    lines      [kept*tiles, kept]    of each tile the first `tile // block * chop` rows and columns are coefficients

M is `kept x tile`: block-diagonal, then rows of zeros. Encoding goes down, decoding up, with M.T for M.
"""

# Triton comes without types.
# mypy: disallow-untyped-decorators=False

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def transform_strip(
    images: tl.tensor,
    image_stride: tl.tensor,
    row_stride: tl.tensor,
    column_stride: tl.tensor,
    height: tl.tensor,
    width: tl.tensor,
    coefficients: tl.tensor,
    basis: tl.tensor,
    kept_stride: tl.tensor,
    pixel_stride: tl.tensor,
    overflow: tl.tensor | None,
    encode: tl.constexpr,
    block: tl.constexpr,
    chop: tl.constexpr,
    tile: tl.constexpr,
    tiles: tl.constexpr,
    kept: tl.constexpr,
) -> None:
    """Images to coefficients, or with `encode=False` the other way. `overflow` is for float16: see `_store`."""
    image, tile_row, tile_column = _place_of_strip(height, width, tile, tiles)
    rows, columns = _places_of_pixels(tile_row, tile_column, tile, tiles)
    places, inside = _places_of_lines(image, tile_row, tile_column, height, width, block, chop, tile, tiles, kept)
    images += image * image_stride
    matrix = _tile_matrix(basis, kept_stride, pixel_stride, block, chop, tile, kept)
    if encode:
        nearest = tl.minimum(rows, height - 1) * row_stride + tl.minimum(columns, width - 1) * column_stride
        pixels = tl.load(images + nearest).to(tl.float32)
        lines = _to_lines(pixels, matrix, tile, tiles, kept, contain=False)
        if tile > block:  # noqa: SIM102  # Triton leaves the inner one out only where the outer one stands alone
            if _has_nan(lines):
                lines = _to_lines(pixels, matrix, tile, tiles, kept, contain=True)
        _store(coefficients, places, lines, inside, overflow)
    else:
        lines = tl.load(coefficients + places, mask=inside, other=0.0).to(tl.float32)
        pixels = _to_pixels(lines, matrix, tile, tiles, kept, contain=False)
        if tile > block:  # noqa: SIM102  # likewise
            if _has_nan(pixels):
                pixels = _to_pixels(lines, matrix, tile, tiles, kept, contain=True)
        in_image = (rows < height) & (columns < width)
        _store(images, rows * row_stride + columns * column_stride, pixels, in_image, overflow)


# Where things are. Offsets have 64 bits.


@triton.jit
def _place_of_strip(
    height: tl.tensor, width: tl.tensor, tile: tl.constexpr, tiles: tl.constexpr
) -> tuple[tl.tensor, tl.tensor, tl.tensor]:
    """The image, and the row and column of the strip's first tile in it."""
    across, down = tl.cdiv(width, tile * tiles), tl.cdiv(height, tile)
    program = tl.program_id(0)
    image, tile_row, tile_column = program // (across * down), program // across % down, program % across * tiles
    return image.to(tl.int64), tile_row.to(tl.int64), tile_column.to(tl.int64)


@triton.jit
def _places_of_pixels(
    tile_row: tl.tensor, tile_column: tl.tensor, tile: tl.constexpr, tiles: tl.constexpr
) -> tuple[tl.tensor, tl.tensor]:
    rows = tile_row * tile + tl.arange(0, tile)
    columns = tile_column * tile + tl.arange(0, tile * tiles)
    return rows[:, None], columns[None, :]


@triton.jit
def _places_of_lines(
    image: tl.tensor,
    tile_row: tl.tensor,
    tile_column: tl.tensor,
    height: tl.tensor,
    width: tl.tensor,
    block: tl.constexpr,
    chop: tl.constexpr,
    tile: tl.constexpr,
    tiles: tl.constexpr,
    kept: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor]:
    """Where each element of `lines` lies among the coefficients, and whether it is one of them."""
    real: tl.constexpr = tile // block * chop
    line = tl.arange(0, kept * tiles)[:, None]
    element = tl.arange(0, kept)[None, :]
    rows, columns = tl.cdiv(height, block) * chop, tl.cdiv(width, block) * chop
    row = tile_row * real + line // tiles
    column = (tile_column + line % tiles) * real + element
    inside = (line // tiles < real) & (element < real) & (row < rows) & (column < columns)
    return (image * rows + row) * columns + column, inside


# What is done with them.


@triton.jit
def _tile_matrix(
    basis: tl.tensor,
    kept_stride: tl.tensor,
    pixel_stride: tl.tensor,
    block: tl.constexpr,
    chop: tl.constexpr,
    tile: tl.constexpr,
    kept: tl.constexpr,
) -> tl.tensor:
    """M. Only its diagonal blocks are read: fewer bytes than a stored M, zeros and all, would take."""
    coefficient, pixel = tl.arange(0, kept)[:, None], tl.arange(0, tile)[None, :]
    place = coefficient % chop * kept_stride + pixel % block * pixel_stride
    return tl.load(basis + place, mask=coefficient // chop == pixel // block, other=0.0).to(tl.float32)


@triton.jit
def _to_lines(
    pixels: tl.tensor,
    matrix: tl.tensor,
    tile: tl.constexpr,
    tiles: tl.constexpr,
    kept: tl.constexpr,
    contain: tl.constexpr,
) -> tl.tensor:
    halfway = tl.trans(_multiply(tl.trans(pixels), tl.trans(matrix), contain))
    return _multiply(tl.reshape(halfway, (kept * tiles, tile)), tl.trans(matrix), contain)


@triton.jit
def _to_pixels(
    lines: tl.tensor,
    matrix: tl.tensor,
    tile: tl.constexpr,
    tiles: tl.constexpr,
    kept: tl.constexpr,
    contain: tl.constexpr,
) -> tl.tensor:
    halfway = tl.reshape(_multiply(lines, matrix, contain), (kept, tiles * tile))
    return tl.trans(_multiply(tl.trans(halfway), matrix, contain))


@triton.jit
def _multiply(values: tl.tensor, matrix: tl.tensor, contain: tl.constexpr) -> tl.tensor:
    """`values @ matrix`. With `contain`, NaN and Inf give NaN where the matrix is not 0, and nothing where it is.

    Otherwise they would spread to the whole tile, as 0 * Inf is NaN.
    """
    product = tl.zeros((values.shape[0], matrix.shape[1]), tl.float32)
    if contain:
        finite = tl.abs(values) < float("inf")
        # A loop, as the compiler would let two products in a row overlap, and hold half as many registers again.
        for counted in range(2):
            if counted:
                left, right = tl.where(finite, values, 0.0), matrix
            else:
                left, right = tl.where(finite, 0.0, 1.0), (matrix != 0).to(tl.float32)
            product = tl.where(product > 0, float("nan"), 0.0)
            product = tl.dot(left, right, acc=product, input_precision="ieee")
    else:
        product = tl.dot(values, matrix, acc=product, input_precision="ieee")
    return product


@triton.jit
def _has_nan(values: tl.tensor) -> tl.tensor:
    return tl.max((values != values).to(tl.int32)) > 0


@triton.jit
def _store(
    start: tl.tensor, places: tl.tensor, values: tl.tensor, inside: tl.tensor, overflow: tl.tensor | None
) -> None:
    """Rounds to the dtype at `start`, and stores. Sets `overflow`, where given, if that turned finite into Inf."""
    if start.dtype.element_ty == tl.uint8:
        # NaN is not above 0. Adding 1.5 * 2**23 leaves no bits for a fraction, which rounds it half to even.
        values = tl.minimum(tl.where(values > 0, values, 0.0), 255.0) + 12582912.0 - 12582912.0
    rounded = values.to(start.dtype.element_ty)
    tl.store(start + places, rounded, mask=inside)
    if overflow is not None:
        lost = (tl.abs(rounded.to(tl.float32)) == float("inf")) & (tl.abs(values) < float("inf"))
        tl.store(overflow + tl.zeros_like(places), 1, mask=inside & lost)
