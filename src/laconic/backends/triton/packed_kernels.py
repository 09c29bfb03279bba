"""The kernels that write `bound`, `lorenzo` and `bitpack` at once: one program for each chunk of 4096 codes.

    pack_chunk       floats -> planes, widths and sizes, each chunk in memory of its own
    place_chunk      them, once all sizes are known, -> the stream
    list_exceptions  floats -> the places of what is stored exactly, in the few chunks that have any

A tensor in the kernels is a chunk's blocks, [128, 32]. Neighbours' codes are not handed round but found anew from
the floats, which lie in the cache: that costs less than memory for codes would.
"""

# Triton comes without types.
# mypy: disallow-untyped-decorators=False

from __future__ import annotations

import triton
import triton.language as tl

from laconic.backends.triton.packed_parts import (
    BLOCK,
    BLOCKS,
    CHUNK,
    FLAG_BYTES,
    SEGMENT,
    SLAB,
    bits_of,
    head_of,
    quantise,
    round_to_code,
    row_and_column,
    scope_of,
    zigzag,
)

HEAD_BYTES = tl.constexpr(FLAG_BYTES.value + BLOCKS.value)
"""What `heads` has for a chunk: its flags, then a byte for each width."""


@triton.jit(do_not_specialize=["width", "height", "scope"])
def pack_chunk(
    x: tl.tensor,
    inverse: tl.tensor,
    step: tl.tensor,
    bound: tl.tensor,
    count: tl.tensor,
    width: tl.tensor,
    height: tl.tensor,
    scope: tl.tensor,
    planes: tl.tensor,
    heads: tl.tensor,
    sizes: tl.tensor,
    filled_blocks: tl.tensor,
    exceptions: tl.tensor,
    bits: tl.constexpr,
    top: tl.constexpr,
    dims: tl.constexpr,
    narrow: tl.constexpr,
    one_scope: tl.constexpr,
    compute: tl.constexpr,
) -> None:
    """`width`, `height`: of the images that are predicted in; `narrow`: a block may reach over several rows."""
    chunk = tl.program_id(0).to(tl.int64)
    start = chunk * CHUNK
    lane = tl.arange(0, BLOCK)[None, :]
    at = tl.arange(0, BLOCKS)[:, None] * BLOCK + lane  # from `start` on: 32 bits are enough
    inside = at < tl.minimum(count - start, CHUNK).to(tl.int32)
    x += start
    own = scope_of(start, at, scope, one_scope)
    code, kept = quantise(x, inverse, step, bound, at, own, inside, top, one_scope, compute)
    tl.store(exceptions + chunk, tl.sum(tl.sum((inside & ~kept).to(tl.int32), axis=1), axis=0))
    if dims > 0:
        row, column = row_and_column(start, width, height, narrow)
        has_west = inside & (column > 0)
        if dims == 1:
            has_west = has_west & (column % SEGMENT != 0)
        code -= round_to_code(x, inverse, at - 1, own, has_west, top, one_scope, compute)[0]
        if dims == 2:
            has_north = inside & (row % SLAB != 0)
            above = own - (scope <= width).to(tl.int32)  # a scope is a row, or at least an image
            code -= round_to_code(x, inverse, at - width, above, has_north, top, one_scope, compute)[0]
            has_both = has_north & has_west
            code += round_to_code(x, inverse, at - width - 1, above, has_both, top, one_scope, compute)[0]
    z = zigzag(code, bits)
    widths = bits_of(tl.max(z.to(tl.uint32), axis=1), bits)
    filled = (widths > 0).to(tl.int32)
    block = tl.arange(0, BLOCKS)
    head = heads + chunk * HEAD_BYTES
    flags = tl.sum(tl.reshape(filled << block % 8, (FLAG_BYTES, 8)), axis=1)
    tl.store(head + tl.arange(0, FLAG_BYTES), flags.to(tl.uint8))
    tl.store(head + FLAG_BYTES + tl.cumsum(filled, axis=0) - 1, (widths - 1).to(tl.uint8), mask=widths > 0)
    first = planes + chunk * (BLOCKS * bits) + tl.cumsum(widths, axis=0) - widths
    for bit in range(tl.max(widths, axis=0)):
        tl.store(first + bit, tl.sum(((z >> bit) & 1) << lane, axis=1), mask=bit < widths)
    blocks_filled = tl.sum(filled, axis=0)
    flag_bytes, width_bytes = head_of(start, count, blocks_filled, bits)
    tl.store(filled_blocks + chunk, blocks_filled)
    tl.store(sizes + chunk, flag_bytes + width_bytes + 4 * tl.sum(widths, axis=0))


@triton.jit(do_not_specialize=["count", "chunks"])
def place_chunk(
    planes: tl.tensor,
    heads: tl.tensor,
    sizes: tl.tensor,
    filled_blocks: tl.tensor,
    ends: tl.tensor,
    count: tl.tensor,
    chunks: tl.tensor,
    stream: tl.tensor,
    bits: tl.constexpr,
    piece: tl.constexpr,
) -> None:
    """`planes` as bytes, which lie at any address in the stream; `piece` of them at a time."""
    chunk = tl.program_id(0).to(tl.int64)
    size, filled = tl.load(sizes + chunk), tl.load(filled_blocks + chunk)
    tl.store(stream, 1, mask=chunk == 0)
    byte = tl.arange(0, 4)
    tl.store(stream + 1 + 4 * chunk + byte, (size >> 8 * byte).to(tl.uint8))
    to = stream + 1 + 4 * chunks.to(tl.int64) + tl.load(ends + chunk) - size
    flag_bytes, width_bytes = head_of(chunk * CHUNK, count, filled, bits)
    head = heads + chunk * HEAD_BYTES
    flag = tl.arange(0, FLAG_BYTES)
    tl.store(to + flag, tl.load(head + flag), mask=flag < flag_bytes)
    at = tl.arange(0, BLOCKS)
    if bits == 32:
        less = tl.load(head + FLAG_BYTES + at, mask=at < filled, other=0)
    else:
        low = tl.load(head + FLAG_BYTES + 2 * at, mask=2 * at < filled, other=0)
        less = low | tl.load(head + FLAG_BYTES + 2 * at + 1, mask=2 * at + 1 < filled, other=0) << 4
    tl.store(to + flag_bytes + at, less, mask=at < width_bytes)
    to += flag_bytes + width_bytes
    plane_bytes = size - flag_bytes - width_bytes
    for begin in range(0, plane_bytes, piece):
        from_first = begin + tl.arange(0, piece)
        there = from_first < plane_bytes
        tl.store(to + from_first, tl.load(planes + chunk * (4 * BLOCKS * bits) + from_first, mask=there), mask=there)


@triton.jit(do_not_specialize=["count", "scope"])
def list_exceptions(
    x: tl.tensor,
    inverse: tl.tensor,
    step: tl.tensor,
    bound: tl.tensor,
    count: tl.tensor,
    scope: tl.tensor,
    exceptions: tl.tensor,
    ends: tl.tensor,
    places: tl.tensor,
    top: tl.constexpr,
    one_scope: tl.constexpr,
    compute: tl.constexpr,
) -> None:
    """`exceptions`: how many each chunk has; `ends`: how many there are up to and with it."""
    chunk = tl.program_id(0).to(tl.int64)
    found = tl.load(exceptions + chunk)
    if found > 0:
        start = chunk * CHUNK
        at = tl.arange(0, CHUNK)
        inside = start + at < count
        own = scope_of(start, at, scope, one_scope)
        _, kept = quantise(x, inverse, step, bound, start + at, own, inside, top, one_scope, compute)
        lost = inside & ~kept
        rank = tl.load(ends + chunk) - found + tl.cumsum(lost.to(tl.int32), axis=0) - 1
        tl.store(places + rank, start + at, mask=lost)
