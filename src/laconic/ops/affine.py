"""The quantiser of a fixed number of bits: floats to codes on an even grid, and back.

    code = rint((x - offset) / scale)      x' = code * scale + offset

each operation rounded in float32 (float64 for float64). A tensor is read as rows of `row` elements, each cut into
scopes of `group`, the last of a row perhaps shorter. A scope's grid goes from its least value to its greatest, or,
where there is no offset, from -max|x| to max|x|.

With a seed, rounding is stochastic: up with a probability of the part that rounding down would cut off. What is
drawn depends on the seed and the flat place in the tensor alone, see `noise`.
"""

from __future__ import annotations

import math
from typing import TypeVar

import torch
from torch import Tensor

from laconic.errors import SpecError
from laconic.ops import LIBRARY, load_bodies
from laconic.ops.block import compute_dtype

LIBRARY.define(
    "affine_encode_out(Tensor x, int bits, SymInt row, SymInt group, int? seed, "
    "Tensor(a!) codes, Tensor(b!) scale, Tensor(c!)? offset) -> ()"
)
LIBRARY.define(
    "affine_decode_out(Tensor codes, Tensor scale, Tensor? offset, SymInt row, SymInt group, Tensor(a!) out) -> ()"
)

IntOrTensor = TypeVar("IntOrTensor", int, Tensor)
_LOW_BITS = 2**32 - 1


def top_code(bits: int, symmetric: bool) -> int:
    """The greatest code; the least is 0, or its opposite where the grid is symmetric."""
    return (1 << (bits - symmetric)) - 1


def reference_encode(
    x: Tensor, bits: int, row: int, group: int, seed: int | None, codes: Tensor, scale: Tensor, offset: Tensor | None
) -> None:
    """Fills the codes and the grid. A scope that is not finite, or whose range is not, has a scale that is not."""
    check_call(x, codes, scale, offset, row, group)
    rows, top = x.detach().reshape(-1, row).to(scale.dtype), top_code(bits, offset is None)
    found, low = grid(*group_edges(rows, group), top, symmetric=offset is None)
    drawn = None if seed is None else noise(seed, x.numel(), x.device).to(rows.dtype).view(rows.shape) * 2.0**-24
    steps = to_steps(rows, spread_groups(found, group, row), None if low is None else spread_groups(low, group, row))
    codes.copy_(to_codes(steps, top, codes.dtype, drawn).view(codes.shape))
    scale.copy_(found.view(scale.shape))
    if offset is not None and low is not None:
        offset.copy_(low.view(offset.shape))


def reference_decode(codes: Tensor, scale: Tensor, offset: Tensor | None, row: int, group: int, out: Tensor) -> None:
    check_call(out, codes, scale, offset, row, group)
    spread = [
        None if part is None else spread_groups(_by_row(part, row, group), group, row) for part in (scale, offset)
    ]
    values = from_codes(codes.reshape(-1, row), *spread)  # type: ignore[arg-type]  # there always is a scale
    out.copy_(values.to(out.dtype).view(out.shape))


def check_call(x: Tensor, codes: Tensor, scale: Tensor, offset: Tensor | None, row: int, group: int) -> None:
    """Raises unless the tensors fit together: a kernel believes the sizes it is told."""
    check_grid(x, scale, offset, row, group)
    if codes.shape != x.shape or codes.dtype != (torch.int8 if offset is None else torch.uint8):
        raise SpecError(f"affine: expected codes for {list(x.shape)}, got {codes.dtype}, {list(codes.shape)}")


def check_grid(x: Tensor, scale: Tensor, offset: Tensor | None, row: int, group: int) -> None:
    scopes = x.numel() // row * math.ceil(row / group) if 1 <= group <= row and x.numel() % row == 0 else -1
    for part in (scale,) if offset is None else (scale, offset):
        if (part.numel(), part.dtype) != (scopes, compute_dtype(x.dtype)):
            raise SpecError(
                f"affine: expected {scopes} scales for {list(x.shape)} in groups of {group} in rows of {row}, "
                f"got {part.dtype}, {list(part.shape)}"
            )


def group_edges(x: Tensor, group: int) -> tuple[Tensor, Tensor]:
    """The least and the greatest value of each group along the last dimension."""
    width = x.shape[-1]
    whole = width // group * group
    pieces = [x.narrow(-1, 0, whole).unflatten(-1, (width // group, group))] if whole else []
    if whole < width:
        pieces.append(x.narrow(-1, whole, width - whole).unsqueeze(-2))
    edges = [piece.amin(-1) for piece in pieces], [piece.amax(-1) for piece in pieces]
    low, high = (edge[0] if len(edge) == 1 else torch.cat(edge, -1) for edge in edges)
    return low, high


def spread_groups(grid: Tensor, group: int, width: int) -> Tensor:
    """One value for each group to one for each element."""
    return grid.unsqueeze(-1).expand(*grid.shape, group).flatten(-2).narrow(-1, 0, width)


def grid(low: Tensor, high: Tensor, top: int, symmetric: bool) -> tuple[Tensor, Tensor | None]:
    """The step between these edges, and the least value where the grid is not symmetric."""
    span = torch.maximum(-low, high) if symmetric else high - low
    scale = span / top
    scale = torch.where(scale == 0, torch.ones_like(scale), scale)
    return scale, None if symmetric else low + 0.0  # a zero has no sign


def to_steps(x: Tensor, scale: Tensor, offset: Tensor | None) -> Tensor:
    values = x.to(scale.dtype)
    return (values if offset is None else values - offset) / scale


def to_codes(steps: Tensor, top: int, dtype: torch.dtype, drawn: Tensor | None = None) -> Tensor:
    """To the nearest, half to even, so that no sum drifts; or up where what was drawn is less than what is cut off."""
    if drawn is None:
        rounded = torch.round(steps)
    else:
        below = torch.floor(steps)
        rounded = below + (drawn < steps - below)
    return rounded.clamp(-top if dtype == torch.int8 else 0, top).to(dtype)


def from_codes(codes: Tensor, scale: Tensor, offset: Tensor | None) -> Tensor:
    values = codes.to(scale.dtype) * scale
    return values if offset is None else values + offset


def noise(seed: int, count: int, device: torch.device) -> Tensor:
    """24 bits for each place of a flat tensor: a hash of its index and the seed, both of 64 bits."""
    index = torch.arange(count, device=device)
    first = _mixed(_mixed(_mixed(seed & _LOW_BITS) ^ seed >> 32) ^ index >> 32)
    second = _mixed(first ^ 0x9E3779B9)
    return _mixed((_mixed((index & _LOW_BITS) ^ first) + second) & _LOW_BITS) >> 8


def _mixed(v: IntOrTensor) -> IntOrTensor:
    """A bijection of 32 bits in which each bit that goes in changes half of those that come out."""
    v = ((v ^ v >> 16) * 0x7FEB352D) & _LOW_BITS
    v = ((v ^ v >> 15) * 0x846CA68B) & _LOW_BITS
    return v ^ v >> 16


def _by_row(part: Tensor, row: int, group: int) -> Tensor:
    return part.reshape(-1, math.ceil(row / group))


def _fake_encode(
    x: Tensor, bits: int, row: int, group: int, seed: int | None, codes: Tensor, scale: Tensor, offset: Tensor | None
) -> None:
    return None


def _fake_decode(codes: Tensor, scale: Tensor, offset: Tensor | None, row: int, group: int, out: Tensor) -> None:
    return None


LIBRARY.impl("affine_encode_out", reference_encode, "CompositeExplicitAutograd")
LIBRARY.impl("affine_decode_out", reference_decode, "CompositeExplicitAutograd")
torch.library.register_fake("laconic::affine_encode_out", _fake_encode, lib=LIBRARY)
torch.library.register_fake("laconic::affine_decode_out", _fake_decode, lib=LIBRARY)

load_bodies("affine")
