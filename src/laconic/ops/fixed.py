"""Codes of one width as bit planes: `bitpack:width=N`. See docs/format.md.

The last dimension is packed, and the others are kept. Of every 32 codes of a row, bit i of plane b is bit b of code
i; a plane is a 32-bit word, the lowest plane first. The last block of a row may be short: its planes have as many
bytes as they need. Signed codes are kept in two's complement.
"""

from __future__ import annotations

import torch
from torch import Tensor

from laconic.errors import DataError, SpecError
from laconic.ops import LIBRARY, load_bodies

BLOCK = 32

LIBRARY.define("bitpack_fixed_encode_out(Tensor codes, int width, Tensor(a!) out) -> ()")
LIBRARY.define("bitpack_fixed_decode_out(Tensor data, int width, Tensor(a!) out) -> ()")


def packed_shape(shape: tuple[int, ...], width: int) -> tuple[int, ...]:
    """A byte for each plane of 8 codes, or fewer, of a row."""
    *leading, row = shape or (1,)
    return (*leading, -(-row // 8) * width)


def reference_encode(codes: Tensor, width: int, out: Tensor) -> None:
    check_call(codes, out, width)
    raise_on_misfit(bool(fits(codes, width).all()), width)
    row = codes.shape[-1] if codes.dim() else 1
    if codes.numel():
        bits = codes.reshape(-1, row, 1).to(torch.int32) >> torch.arange(width, device=codes.device) & 1
        padded = torch.nn.functional.pad(bits.mT, (0, -row % 8)).unflatten(-1, (-1, 8))
        planes = (padded << torch.arange(8, device=codes.device)).sum(-1).to(torch.uint8)
        out.copy_(by_block(planes).reshape(out.shape))


def reference_decode(data: Tensor, width: int, out: Tensor) -> None:
    check_call(out, data, width)
    row = out.shape[-1] if out.dim() else 1
    if out.numel():
        planes = by_plane(data.reshape(-1, data.shape[-1]), width).to(torch.int32)
        bits = (planes.unsqueeze(-1) >> torch.arange(8, device=data.device) & 1).flatten(-2)
        weights = 1 << torch.arange(width, dtype=torch.int32, device=data.device)
        if out.dtype == torch.int8:
            weights[-1] = -weights[-1]  # the sign's
        codes = (bits * weights[:, None]).sum(-2).narrow(-1, 0, row)
        out.copy_(codes.to(out.dtype).reshape(out.shape))


def by_block(planes: Tensor) -> Tensor:
    """[.., planes, bytes] -> [.., bytes], block by block: the planes of a block are four bytes each."""
    count = planes.shape[-1]
    blocks = count // 4
    pieces = (
        [planes.narrow(-1, 0, 4 * blocks).unflatten(-1, (blocks, 4)).transpose(-3, -2).flatten(-3)] if blocks else []
    )
    if count % 4:
        pieces.append(planes.narrow(-1, 4 * blocks, count % 4).flatten(-2))
    return pieces[0] if len(pieces) == 1 else torch.cat(pieces, -1)


def by_plane(data: Tensor, width: int) -> Tensor:
    """The way back of `by_block`."""
    count = data.shape[-1] // width
    whole, left = count // 4 * 4 * width, count % 4
    pieces = []
    if whole:
        pieces.append(data.narrow(-1, 0, whole).unflatten(-1, (count // 4, width, 4)).transpose(-3, -2).flatten(-2))
    if left:
        pieces.append(data.narrow(-1, whole, left * width).unflatten(-1, (width, left)))
    return pieces[0] if len(pieces) == 1 else torch.cat(pieces, -1)


def fits(codes: Tensor, width: int) -> Tensor:
    least, most = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if codes.dtype == torch.int8 else (0, (1 << width) - 1)
    return (codes >= least) & (codes <= most)


def raise_on_misfit(fit: bool, width: int) -> None:
    if not fit:
        raise DataError(
            f"bitpack:width={width}: expected codes of at most {width} bits, got larger ones. Give it the quantiser's "
            "own bits, as in 'affine:bits=4|bitpack:width=4', or leave width= out"
        )


def check_call(codes: Tensor, data: Tensor, width: int) -> None:
    """Raises unless the tensors fit together: a kernel believes the sizes it is told."""
    check_packed(tuple(codes.shape), data, width)
    if codes.dtype not in (torch.uint8, torch.int8):
        raise SpecError(f"bitpack:width={width}: expected codes of 8 bits, got {codes.dtype}")


def check_packed(shape: tuple[int, ...], data: Tensor, width: int) -> None:
    expected = packed_shape(shape, width)
    if not 1 <= width <= 8 or (data.shape, data.dtype) != (expected, torch.uint8):
        raise SpecError(f"bitpack:width={width}: expected {expected} bytes, got {data.dtype}, {list(data.shape)}")


def _fake(source: Tensor, width: int, out: Tensor) -> None:
    return None


LIBRARY.impl("bitpack_fixed_encode_out", reference_encode, "CompositeExplicitAutograd")
LIBRARY.impl("bitpack_fixed_decode_out", reference_decode, "CompositeExplicitAutograd")
torch.library.register_fake("laconic::bitpack_fixed_encode_out", _fake, lib=LIBRARY)
torch.library.register_fake("laconic::bitpack_fixed_decode_out", _fake, lib=LIBRARY)

load_bodies("fixed")
