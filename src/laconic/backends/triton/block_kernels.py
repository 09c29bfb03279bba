"""The kernels of the block transform: one program for each tile of whole blocks.

A tile is `tall x wide` blocks, and a tensor in the kernels is one line of pixels through all of them:

    row r of every block     [tall*wide, block]     the threads of a block share it, a vector each

The pass along columns multiplies lines by numbers, so nothing moves between threads. Only the pass along rows sums
over the few threads of a block (encoding), or hands a coefficient to all of them (decoding). No block sees another's
pixels, and nothing is multiplied that the transform would not: `chop + chop**2 / block` products for each pixel.
"""

# Triton comes without types, and its tuples grow by assignment.
# mypy: disallow-untyped-decorators=False, disable-error-code="assignment"

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["height", "width", "block_rows"])
def encode_tile(
    images: tl.tensor,
    image_stride: tl.tensor,
    row_stride: tl.tensor,
    column_stride: tl.tensor,
    height: tl.tensor,
    width: tl.tensor,
    block_rows: tl.tensor,
    coefficients: tl.tensor,
    basis: tl.tensor,
    kept_stride: tl.tensor,
    pixel_stride: tl.tensor,
    overflow: tl.tensor | None,
    block: tl.constexpr,
    chop: tl.constexpr,
    triangle: tl.constexpr,
    whole: tl.constexpr,
    compute: tl.constexpr,
    tall: tl.constexpr,
    wide: tl.constexpr,
) -> None:
    """Images to coefficients. `whole`: `block` divides the width; `overflow` is for float16: see `_store`."""
    block_row, block_column, inside = _blocks(width, block_rows, block, tall, wide)
    image, top = _place_in_image(block_row, height, block)
    element = tl.arange(0, block)[None, :]
    columns = block_column[:, None] * block + element
    if not whole:
        columns = tl.minimum(columns, width - 1)
    lines = ()
    for r in tl.static_range(block):
        start = image * image_stride + tl.minimum(top + r, height - 1) * row_stride
        line = tl.load(images + start[:, None] + columns * column_stride, mask=inside[:, None], other=0)
        lines = lines + (line.to(compute),)  # noqa: RUF005  # Triton does not unpack
    waves = basis + tl.arange(0, block) * pixel_stride
    for i in range(chop):
        analysed = tl.zeros(columns.shape, compute)
        for r in tl.static_range(block):
            analysed += lines[r] * tl.load(basis + i * kept_stride + r * pixel_stride).to(compute)
        kept = tl.zeros(columns.shape, compute)
        for j in tl.static_range(chop):
            wave = tl.load(waves + j * kept_stride).to(compute)
            coefficient = tl.sum(analysed * wave[None, :], axis=1)
            kept = tl.where(element == j, coefficient[:, None], kept)
        start, count = _line_of_coefficients(block_row, block_column, width, i, block, chop, triangle)
        _store(coefficients, start[:, None] + element, kept, inside[:, None] & (element < count), overflow)


@triton.jit(do_not_specialize=["height", "width", "block_rows"])
def decode_tile(
    images: tl.tensor,
    image_stride: tl.tensor,
    row_stride: tl.tensor,
    column_stride: tl.tensor,
    height: tl.tensor,
    width: tl.tensor,
    block_rows: tl.tensor,
    coefficients: tl.tensor,
    basis: tl.tensor,
    kept_stride: tl.tensor,
    pixel_stride: tl.tensor,
    overflow: tl.tensor | None,
    block: tl.constexpr,
    chop: tl.constexpr,
    triangle: tl.constexpr,
    whole: tl.constexpr,
    compute: tl.constexpr,
    tall: tl.constexpr,
    wide: tl.constexpr,
) -> None:
    """Coefficients to images."""
    block_row, block_column, inside = _blocks(width, block_rows, block, tall, wide)
    image, top = _place_in_image(block_row, height, block)
    columns = block_column[:, None] * block + tl.arange(0, block)[None, :]
    waves = basis + tl.arange(0, block) * pixel_stride
    pixels = ()
    for _ in tl.static_range(block):
        pixels = pixels + (tl.zeros(columns.shape, compute),)  # noqa: RUF005  # likewise
    for i in range(chop):
        start, count = _line_of_coefficients(block_row, block_column, width, i, block, chop, triangle)
        line = tl.zeros(columns.shape, compute)
        for j in tl.static_range(chop):
            coefficient = tl.load(coefficients + start + j, mask=inside & (j < count), other=0).to(compute)
            line += coefficient[:, None] * tl.load(waves + j * kept_stride).to(compute)[None, :]
        sums = ()
        for r in tl.static_range(block):
            weight = tl.load(basis + i * kept_stride + r * pixel_stride).to(compute)
            sums = sums + (pixels[r] + weight * line,)  # noqa: RUF005
        pixels = sums
    for r in tl.static_range(block):
        place = (image * image_stride + (top + r) * row_stride)[:, None] + columns * column_stride
        in_image = (inside & (top + r < height))[:, None]
        if not whole:
            in_image &= columns < width
        _store(images, place, pixels[r], in_image, overflow)


# Where things are. Offsets have 64 bits.


@triton.jit
def _blocks(
    width: tl.tensor, block_rows: tl.tensor, block: tl.constexpr, tall: tl.constexpr, wide: tl.constexpr
) -> tuple[tl.tensor, tl.tensor, tl.tensor]:
    """The blocks of this program's tile: row, counted over all images, and column, and whether there is one."""
    across = tl.cdiv(width, block)
    tiles = tl.cdiv(across, wide)
    program, at = tl.program_id(0).to(tl.int64), tl.arange(0, tall * wide)
    row, column = program // tiles * tall + at // wide, program % tiles * wide + at % wide
    return row, column, (row < block_rows) & (column < across)


@triton.jit
def _place_in_image(block_row: tl.tensor, height: tl.tensor, block: tl.constexpr) -> tuple[tl.tensor, tl.tensor]:
    """The image that a block row belongs to, and its first row of pixels there."""
    down = tl.cdiv(height, block)
    return block_row // down, block_row % down * block


@triton.jit
def _line_of_coefficients(
    block_row: tl.tensor,
    block_column: tl.tensor,
    width: tl.tensor,
    i: tl.tensor,
    block: tl.constexpr,
    chop: tl.constexpr,
    triangle: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor]:
    """Where a block's coefficients (i, 0), (i, 1), .. begin, and how many are kept."""
    across = tl.cdiv(width, block)
    if triangle:
        before = i * chop - i * (i - 1) // 2
        return (block_row * (chop * (chop + 1) // 2) + before) * across + block_column * (chop - i), chop - i
    else:  # Triton takes only one of the two
        return (block_row * chop + i) * across * chop + block_column * chop, chop


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
