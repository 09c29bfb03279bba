"""The kernels that read `bound|lorenzo|bitpack`.

    unpack_chunk  the stream -> residuals, one program for each chunk. It believes nothing the stream says.
    restore       residuals -> floats, one program for each 64 rows of up to `segment` columns

A tensor in `restore` is a tile, [tall, wide]: as many rows as predict each other, and it goes on to the right.
"""

# Triton comes without types.
# mypy: disallow-untyped-decorators=False

from __future__ import annotations

import triton
import triton.language as tl

from laconic.backends.triton.packed_parts import BLOCK, BLOCKS, CHUNK, head_of


@triton.jit(do_not_specialize=["length"])
def unpack_chunk(
    stream: tl.tensor,
    length: tl.tensor,
    sizes: tl.tensor,
    ends: tl.tensor,
    count: tl.tensor,
    residuals: tl.tensor,
    corrupt: tl.tensor,
    bits: tl.constexpr,
) -> None:
    """Sets `corrupt` where the bytes are not just what such a chunk has. `ends`: of the chunks, in the stream."""
    chunk = tl.program_id(0).to(tl.int64)
    end = tl.load(ends + chunk)
    size = tl.load(sizes + chunk)
    sound = (end <= length) & (tl.load(stream) == 1)  # sizes are not negative: so it begins in the stream, too
    begin = tl.where(sound, end - size, 0)
    size = tl.where(sound, size, 0)
    block = tl.arange(0, BLOCKS)
    flag_bytes, _ = head_of(chunk * CHUNK, count, 0, bits)
    sound = sound & (flag_bytes <= size)
    flags_read = tl.where(sound, flag_bytes, 0)
    flags = tl.load(stream + begin + block // 8, mask=block // 8 < flags_read, other=0).to(tl.int32)
    filled = (flags >> block % 8) & 1
    beyond = (filled > 0) & (chunk * CHUNK + block * BLOCK >= count)
    blocks_filled = tl.sum(filled, axis=0)
    _, width_bytes = head_of(chunk * CHUNK, count, blocks_filled, bits)
    head = flag_bytes + width_bytes
    sound = sound & (head <= size) & (tl.max(beyond.to(tl.int32), axis=0) == 0)
    rank = tl.cumsum(filled, axis=0) - filled
    widths = _width_at(stream + begin + flag_bytes, rank, filled * sound.to(tl.int32) > 0, bits)
    words = tl.sum(widths, axis=0)
    sound = sound & (tl.max(widths, axis=0) <= bits) & (head + 4 * words == size)
    tl.store(corrupt, 1, mask=sound == 0)
    widths *= sound.to(tl.int32)
    first = stream + begin + head + 4 * (tl.cumsum(widths, axis=0) - widths)
    lane = tl.arange(0, BLOCK)[None, :]
    z = tl.zeros((BLOCKS, BLOCK), tl.int32)
    for bit in range(tl.max(widths, axis=0)):
        plane = tl.zeros((BLOCKS,), tl.int32)
        for byte in tl.static_range(4):
            part = tl.load(first + 4 * bit + byte, mask=bit < widths, other=0)
            plane |= part.to(tl.int32) << (8 * byte)
        z |= ((plane[:, None] >> lane) & 1) << bit
    place = chunk * CHUNK + block[:, None] * BLOCK + lane
    code = ((z >> 1) & 0x7FFFFFFF) ^ -(z & 1)
    tl.store(residuals + place, code.to(residuals.dtype.element_ty), mask=place < count)


@triton.jit(do_not_specialize=["height", "scope_rows", "segments"])
def restore(
    residuals: tl.tensor,
    before: tl.tensor | None,
    step: tl.tensor,
    out: tl.tensor,
    height: tl.tensor,
    width: tl.tensor,
    scope_rows: tl.tensor,
    segments: tl.tensor,
    bits: tl.constexpr,
    dims: tl.constexpr,
    compute: tl.constexpr,
    tall: tl.constexpr,
    wide: tl.constexpr,
    segment: tl.constexpr,
) -> None:
    """`before`: each row's sum up to each segment, where that is not 0. A scope has `scope_rows`."""
    program = tl.program_id(0).to(tl.int64)
    slab, piece = program // segments, program % segments
    slabs = tl.cdiv(height, tall)
    down = slab % slabs * tall + tl.arange(0, tall)
    row = slab // slabs * height + down
    in_image = down < height
    steps = tl.load(step + row // scope_rows, mask=in_image, other=0)[:, None]
    west = tl.zeros((tall,), tl.int32)
    if before is not None:
        west = tl.load(before + row * segments + piece, mask=in_image, other=0)
    for tile in range(tl.cdiv(tl.minimum(width - piece * segment, segment), wide)):
        column = piece * segment + tile * wide + tl.arange(0, wide)
        inside = in_image[:, None] & (column < width)[None, :]
        place = row[:, None] * width + column[None, :]
        code = tl.load(residuals + place, mask=inside, other=0).to(tl.int32)
        if dims > 0:
            sums = tl.cumsum(code, axis=1) + west[:, None]
            west += tl.sum(code, axis=1)
            if dims == 2:
                sums = tl.cumsum(sums, axis=0)
            code = (sums << (32 - bits)) >> (32 - bits)
        tl.store(out + place, (code.to(compute) * steps).to(out.dtype.element_ty), mask=inside)


@triton.jit
def _width_at(widths: tl.tensor, rank: tl.tensor, has_one: tl.tensor, bits: tl.constexpr) -> tl.tensor:
    """Those of the blocks, of which `rank` others before have one; 0 where there is none."""
    if bits == 32:
        less = tl.load(widths + rank, mask=has_one, other=0).to(tl.int32)
    else:
        less = tl.load(widths + rank // 2, mask=has_one, other=0).to(tl.int32) >> (rank % 2 * 4) & 15
    return tl.where(has_one, less + 1, 0)
