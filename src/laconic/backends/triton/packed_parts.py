"""What the kernels of `bound|lorenzo|bitpack` share: where a code is, what it is, and how a chunk is laid out.

Compile them without contraction of products and sums (`enable_fp_fusion=False`): the receiver's arithmetic has none.
"""

# Triton comes without types.
# mypy: disallow-untyped-decorators=False

from __future__ import annotations

import triton
import triton.language as tl

from laconic.ops import bitpack
from laconic.ops.lorenzo import RESTART

CHUNK = tl.constexpr(bitpack.CHUNK)
BLOCK = tl.constexpr(bitpack.BLOCK)
BLOCKS = tl.constexpr(bitpack.CHUNK // bitpack.BLOCK)
FLAG_BYTES = tl.constexpr(bitpack.CHUNK // bitpack.BLOCK // 8)
"""Of a whole chunk."""
SEGMENT = tl.constexpr(RESTART[1])
SLAB = tl.constexpr(RESTART[2])
"""After how many codes, or rows of them, prediction starts anew."""


@triton.jit
def quantise(
    x: tl.tensor,
    inverse: tl.tensor,
    step: tl.tensor,
    bound: tl.tensor,
    place: tl.tensor,
    scope: tl.tensor,
    inside: tl.tensor,
    top: tl.constexpr,
    one_scope: tl.constexpr,
    compute: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor]:
    """The codes, and whether what a receiver makes of them keeps the bound."""
    code, fits, value = round_to_code(x, inverse, place, scope, inside, top, one_scope, compute)
    restored = code.to(compute) * of_scope(step, scope, inside, one_scope)
    off = tl.abs(value - restored.to(x.dtype.element_ty).to(compute))
    return code, fits & (off < of_scope(bound, scope, inside, one_scope))


@triton.jit
def round_to_code(
    x: tl.tensor,
    inverse: tl.tensor,
    place: tl.tensor,
    scope: tl.tensor,
    inside: tl.tensor,
    top: tl.constexpr,
    one_scope: tl.constexpr,
    compute: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor, tl.tensor]:
    """Codes, whether they fit in `top`, and what they are of.

    Adding 1.5 * 2**23 (2**52) leaves no bits for a fraction, which rounds it half to even; numbers over 2**22 (2**51)
    may lose more, but stay over a `top` that is less. Where it is not, 2**23 does for the size of all below 2**23,
    and what is above has no fraction.
    """
    value = tl.load(x + place, mask=inside, other=0).to(compute)
    scaled = value * of_scope(inverse, scope, inside, one_scope)
    if compute == tl.float64:
        rounded = scaled + 6755399441055744.0 - 6755399441055744.0
    elif top < 4194304.0:
        rounded = scaled + 12582912.0 - 12582912.0
    else:
        size = tl.abs(scaled)
        rounded = tl.where(size < 8388608.0, size + 8388608.0 - 8388608.0, size)
        rounded = tl.where(scaled < 0, -rounded, rounded)
    fits = tl.abs(rounded) <= top  # NaN does not
    return tl.where(fits, rounded, 0.0).to(tl.int32), fits, value


@triton.jit
def of_scope(numbers: tl.tensor, scope: tl.tensor, inside: tl.tensor, one_scope: tl.constexpr) -> tl.tensor:
    if one_scope:
        return tl.load(numbers)
    else:  # Triton takes only one of the two
        return tl.load(numbers + scope, mask=inside, other=1)


@triton.jit
def scope_of(start: tl.tensor, at: tl.tensor, scope: tl.tensor, one_scope: tl.constexpr) -> tl.tensor:
    """Which scope each place is in. Divides 32 bits where scopes have no more: 64 are slow."""
    if one_scope:
        return tl.zeros_like(at)
    else:
        return start // scope + ((start % scope).to(scope.dtype) + at) // scope


@triton.jit
def row_and_column(
    start: tl.tensor, width: tl.tensor, height: tl.tensor, narrow: tl.constexpr
) -> tuple[tl.tensor, tl.tensor]:
    """Of each code of a chunk, in its image. One division for each block, where a row ends at most once in it."""
    row, column = (start // width % height).to(height.dtype), (start % width).to(width.dtype)
    lane = tl.arange(0, BLOCK)[None, :]
    at = column + tl.arange(0, BLOCKS)[:, None] * BLOCK
    if narrow:
        at += lane
        down = at // width
        return (row + down) % height, at - down * width
    else:
        down = at // width
        columns = at - down * width + lane
        rows = (row + down) % height + (columns >= width).to(tl.int32)
        return tl.where(rows == height, 0, rows), tl.where(columns >= width, columns - width, columns)


@triton.jit
def zigzag(code: tl.tensor, bits: tl.constexpr) -> tl.tensor:
    """Wraps in the width, and turns 0, -1, 1, -2 into 0, 1, 2, 3."""
    wrapped = (code << (32 - bits)) >> (32 - bits)
    return (wrapped << 1) ^ (wrapped >> 31)


@triton.jit
def bits_of(largest: tl.tensor, bits: tl.constexpr) -> tl.tensor:
    needed = tl.zeros_like(largest).to(tl.int32)
    for bit in tl.static_range(bits):
        needed += ((largest >> bit) != 0).to(tl.int32)
    return needed


@triton.jit
def head_of(start: tl.tensor, count: tl.tensor, filled: tl.tensor, bits: tl.constexpr) -> tuple[tl.tensor, tl.tensor]:
    """How many bytes of flags and of widths the chunk that begins at `start` has."""
    blocks = tl.cdiv(tl.minimum(count - start, CHUNK), BLOCK).to(tl.int32)
    if bits == 32:
        return tl.cdiv(blocks, 8), filled
    else:
        return tl.cdiv(blocks, 8), tl.cdiv(filled, 2)
