"""`bound`, `lorenzo` and `bitpack` at once for GPUs. What the kernels do not take runs the reference."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn.functional import pad

from laconic.backends.triton.packed_kernels import HEAD_BYTES, list_exceptions, pack_chunk, place_chunk
from laconic.backends.triton.unpacked_kernels import restore, unpack_chunk
from laconic.errors import CorruptData
from laconic.ops import LIBRARY
from laconic.ops.bitpack import BLOCK, CHUNK, RAW
from laconic.ops.bound import CODES, inverse, top_code
from laconic.ops.lorenzo import RESTART
from laconic.ops.packed import reference_pack, reference_restore, reference_unpack

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)

PIECE = 1024
"""Bytes of a chunk that are copied at a time."""
TILE = 4096
"""Codes of a tile that sums go over."""
COLUMNS = 1024
"""Of a segment at least: more programs than that would only sum rows anew."""

WARPS, PACK_WARPS = 4, 8
"""Packing keeps four floats for each code; more threads share them."""
EXACT: dict[str, Any] = {"enable_fp_fusion": False}
"""Products and sums stay two roundings, as in the receiver's arithmetic."""


class Lines(NamedTuple):
    """A tensor as the kernels read it: images of `height` rows, and scopes of so many elements.
    Without prediction, an image is a scope of one row."""

    width: int
    height: int
    scope: int

    @classmethod
    def of(cls, x: Tensor, scopes: int, dims: int) -> Lines:
        scope = x.numel() // scopes
        return cls(x.shape[-1] if dims else scope, x.shape[-2] if dims == 2 else 1, scope)

    def taken(self) -> bool:
        """Whether scopes are rows or whole images, and a chunk's places in a line of 32-bit length have 32 bits."""
        of_rows = self.scope == self.width or self.scope % (self.width * self.height) == 0
        return of_rows and not any(2**31 - CHUNK <= n < 2**31 for n in self)


class Chunks(NamedTuple):
    """What `pack_chunk` leaves: each chunk's planes and head as if it were of the greatest length, and counts."""

    planes: Tensor
    heads: Tensor
    sizes: Tensor
    filled_blocks: Tensor
    exceptions: Tensor

    @classmethod
    def empty(cls, count: int, width: int, device: torch.device) -> Chunks:
        chunks = triton.cdiv(count, CHUNK)
        planes = torch.empty(chunks * CHUNK * width // 32, dtype=torch.int32, device=device)
        heads = torch.empty(chunks * HEAD_BYTES.value, dtype=torch.uint8, device=device)
        return cls(planes, heads, *(torch.empty(chunks, dtype=torch.int32, device=device) for _ in range(3)))


def pack(x: Tensor, step: Tensor, bound: Tensor, width: int, dims: int, out: Tensor) -> tuple[int, Tensor]:
    raw = 1 + x.numel() * width // 8
    if not _takes(x, dims, step, bound, out) or out.numel() < raw:
        return reference_pack(x, step, bound, width, dims, out)
    x = x.detach()
    with torch.cuda.device_of(x):
        chunks = Chunks.empty(x.numel(), width, x.device)
        lines = Lines.of(x, len(step), dims)
        grid = (x, inverse(step), step, bound, x.numel())
        top, one_scope, compute = float(top_code(CODES[width], step.dtype)), len(step) == 1, _compute(step)
        pack_chunk[(len(chunks.sizes),)](
            *(*grid, *lines, *chunks, width, top, dims, lines.width < BLOCK, one_scope, compute),
            num_warps=PACK_WARPS,
            **EXACT,
        )
        ends, lost = (counts.cumsum(0, dtype=torch.int64) for counts in (chunks.sizes, chunks.exceptions))
        length, count = torch.stack((ends[-1], lost[-1])).tolist()  # waits for the GPU
        places = torch.empty(count, dtype=torch.int64, device=x.device)
        if count:
            list_exceptions[(len(lost),)](
                *(*grid, lines.scope, chunks.exceptions, lost, places, top, one_scope, compute),
                num_warps=WARPS,
                **EXACT,
            )
        length += 1 + 4 * len(ends)
        if length <= raw:
            _write_chunks(chunks, ends, x.numel(), width, out)
        else:
            _write_raw(x, step, bound, width, dims, out[:raw])
    return min(length, raw), places


def unpack(data: Tensor, step: Tensor, width: int, dims: int, out: Tensor) -> None:
    if not _takes(out, dims, step, data):
        return reference_unpack(data, step, width, dims, out)
    with torch.cuda.device_of(out):
        if data.numel() == 1 + out.numel() * width // 8 and int(data[0]) == RAW:
            residuals = data[1:].clone().view(CODES[width])
        else:
            residuals = _unpack_chunks(data, width, out)
        _restore(residuals, step, width, dims, out)
    return None


def restore_residuals(residuals: Tensor, step: Tensor, dims: int, out: Tensor) -> None:
    if not _takes(out, dims, step, residuals):
        return reference_restore(residuals, step, dims, out)
    with torch.cuda.device_of(out):
        _restore(residuals, step, 8 * residuals.element_size(), dims, out)
    return None


def _takes(x: Tensor, dims: int, step: Tensor, *others: Tensor) -> bool:
    """Whether the kernels may have their memory, and know their shape."""
    if not all(tensor.is_contiguous() and tensor.numel() > 0 for tensor in (x, step, *others)):
        return False
    known = x.dtype in FLOATS and dims <= min(2, x.dim()) and x.numel() % len(step) == 0
    return known and Lines.of(x, len(step), dims).taken()


def _compute(step: Tensor) -> Any:
    return tl.float64 if step.dtype == torch.float64 else tl.float32


def _write_chunks(chunks: Chunks, ends: Tensor, count: int, width: int, out: Tensor) -> None:
    planes = chunks.planes.view(torch.uint8)
    rest = (chunks.heads, chunks.sizes, chunks.filled_blocks, ends, count, len(ends), out, width, PIECE)
    place_chunk[(len(ends),)](planes, *rest, num_warps=WARPS, **EXACT)


def _write_raw(x: Tensor, step: Tensor, bound: Tensor, width: int, dims: int, out: Tensor) -> None:
    """Rare, and so without a kernel of its own."""
    codes = torch.empty(x.shape, dtype=CODES[width], device=x.device)
    torch.ops.laconic.bound_encode_out.default(x, step, bound, codes)
    if dims:
        codes = torch.ops.laconic.lorenzo_encode.default(codes, dims)
    out[:1].fill_(RAW)
    out[1:].copy_(codes.view(-1).view(torch.uint8))


def _unpack_chunks(data: Tensor, width: int, out: Tensor) -> Tensor:
    """The residuals. One wait for the GPU tells whether all chunks were sound."""
    chunks = triton.cdiv(out.numel(), CHUNK)
    head = 1 + 4 * chunks
    if data.numel() < head:
        raise _corrupt(data, out)
    sizes = data[1:head].clone().view(torch.int32).long() & 0xFFFFFFFF
    ends = sizes.cumsum(0) + head
    residuals = torch.empty(out.numel(), dtype=CODES[width], device=out.device)
    corrupt = (ends[-1:] != data.numel()).int()
    unpack_chunk[(chunks,)](
        data, data.numel(), sizes, ends, out.numel(), residuals, corrupt, width, num_warps=WARPS, **EXACT
    )
    if corrupt.item():
        raise _corrupt(data, out)
    return residuals


def _restore(residuals: Tensor, step: Tensor, width: int, dims: int, out: Tensor) -> None:
    lines = Lines.of(out, len(step), dims)
    rows = out.numel() // lines.width
    height = lines.height if dims == 2 else rows
    tall = min(RESTART[2], triton.next_power_of_2(height))
    wide = TILE // tall
    segment = max(wide, COLUMNS) if dims == 2 else TILE
    segments = triton.cdiv(lines.width, segment)
    before = _sums_before(residuals.view(rows, -1), segment) if dims == 2 and segments > 1 else None
    programs = rows // height * triton.cdiv(height, tall) * segments
    restore[(programs,)](
        *(residuals, before, step, out, height, lines.width, lines.scope // lines.width, segments),
        *(width, dims, _compute(step), tall, wide, segment),
        num_warps=WARPS,
        **EXACT,
    )


def _sums_before(residuals: Tensor, segment: int) -> Tensor:
    """Of each row, up to each segment of it, as 32 bits hold them."""
    whole = pad(residuals, (0, -residuals.shape[1] % segment)).view(len(residuals), -1, segment)
    sums = whole.sum(2, dtype=torch.int64)
    return (sums.cumsum(1) - sums).to(torch.int32)


def _corrupt(data: Tensor, out: Tensor) -> CorruptData:
    return CorruptData(f"bitpack: these {data.nbytes} bytes are not a stream of {out.numel()} codes")


LIBRARY.impl("bound_pack_out", pack, "CUDA")
LIBRARY.impl("bound_unpack_out", unpack, "CUDA")
LIBRARY.impl("bound_restore_out", restore_residuals, "CUDA")
