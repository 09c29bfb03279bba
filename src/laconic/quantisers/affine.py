"""Integer codes on an even grid, in a size known before the data is: `x' = code * scale + offset`.

The scale's shape is the leading shape that `per` names, so that it follows its images through slices and stacks:

    per=tensor   []                 one grid
    per=sample   x.shape[:-3]       one for each C x H x W
    per=channel  x.shape[:-2]       one for each H x W
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from laconic.errors import DataError, SpecError
from laconic.stage import Context, Kind, Parts, PartSpec, PartsSpec, Stage, TensorSpec, Tiling

_INNER_DIMS = {"sample": 3, "channel": 2}


@dataclass(frozen=True)
class Affine(Stage):
    """Rounds to `2**bits` even steps between the least and the greatest value (or between -max|x| and max|x|)."""

    bits: int = 8
    per: Literal["tensor", "sample", "channel"] = "tensor"
    symmetric: bool = False

    name: ClassVar[str] = "affine"
    kind: ClassVar[Kind] = Kind.quantiser
    example: ClassVar[str] = "dct:chop=4|affine:bits=8"
    operators: ClassVar[frozenset[str]] = frozenset(
        {"to", "amin", "amax", "neg", "maximum", "sub", "div", "mul", "add", "round", "clamp", "reshape"}
        | {"eq", "ones_like", "where"}  # a flat input's scale
    )

    def __post_init__(self) -> None:
        least = 2 if self.symmetric else 1
        if not least <= self.bits <= 8:
            kind = "symmetric affine" if self.symmetric else "affine"
            raise SpecError(f"{kind}: expected bits from {least} to 8, got {self.bits}. Try '{self.example}'")

    @property
    def code_dtype(self) -> torch.dtype:
        return torch.int8 if self.symmetric else torch.uint8

    @property
    def top_code(self) -> int:
        """The greatest code; the least is 0, or its opposite where the grid is symmetric."""
        return (1 << (self.bits - self.symmetric)) - 1

    def out_spec(self, x: TensorSpec) -> PartsSpec:
        if not x.dtype.is_floating_point:
            raise SpecError(f"{self}: expected floats, got {x}. Put a transform such as 'dct:chop=4' before it")
        scale = PartSpec(TensorSpec(self.leading_shape(x.shape), grid_dtype(x.dtype)))
        side = {"scale": scale} if self.symmetric else {"scale": scale, "offset": scale}
        return PartsSpec(PartSpec(TensorSpec(x.shape, self.code_dtype)), side)

    def leading_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape[: -_INNER_DIMS[self.per]] if self.per in _INNER_DIMS else ()

    def encode(self, x: Tensor, ctx: Context, out: Parts | None = None) -> Parts:
        scale, offset = self.grid(x)
        if not bool(scale.isfinite().all()):
            raise DataError(
                f"{self}: expected finite values of a range that {scale.dtype} holds, got NaN, Inf or more. "
                "A fixed grid has no place for them"
            )
        codes = self.to_codes(x, scale, offset)
        side = {"scale": scale} if offset is None else {"scale": scale, "offset": offset}
        if out is None:
            return Parts(codes, side)
        out.main.copy_(codes)
        for name, tensor in side.items():
            out.side[name].copy_(tensor)
        return out

    def decode(self, parts: Parts, x: TensorSpec, version: int, out: Tensor | None = None) -> Tensor:
        values = self.from_codes(parts.main, parts.side["scale"], parts.side.get("offset")).to(x.dtype)
        return values if out is None else out.copy_(values)

    def portable(self, x: TensorSpec, tiling: Tiling) -> tuple[nn.Module, nn.Module]:
        self.out_spec(x)
        return AffineEncode(self), AffineDecode(self, x.dtype)

    def grid(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """The step, and the least value where the grid is not symmetric."""
        shape = self.leading_shape(tuple(x.shape))
        if x.numel() == 0:
            ones = x.new_ones(shape, dtype=grid_dtype(x.dtype))
            return ones, None if self.symmetric else ones - ones
        inner = tuple(range(len(shape), x.dim()))
        low, high = (edge.to(grid_dtype(x.dtype)) for edge in (x.amin(inner), x.amax(inner)))
        span = torch.maximum(-low, high) if self.symmetric else high - low
        scale = span / self.top_code
        scale = torch.where(scale == 0, torch.ones_like(scale), scale)
        return scale, None if self.symmetric else low

    def to_codes(self, x: Tensor, scale: Tensor, offset: Tensor | None) -> Tensor:
        steps = x.to(scale.dtype)
        if offset is not None:
            steps = steps - _spread(offset, x)
        steps = torch.round(steps / _spread(scale, x))  # half to even, so that no sum drifts
        least = -self.top_code if self.symmetric else 0
        return steps.clamp(least, self.top_code).to(self.code_dtype)

    def from_codes(self, codes: Tensor, scale: Tensor, offset: Tensor | None) -> Tensor:
        values = codes.to(scale.dtype) * _spread(scale, codes)
        return values if offset is None else values + _spread(offset, codes)


def grid_dtype(dtype: torch.dtype) -> torch.dtype:
    """Scales and offsets are float32, and float64 for float64."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def _spread(scale: Tensor, x: Tensor) -> Tensor:
    """A scale of leading shape, as it broadcasts against x."""
    return scale.reshape([*scale.shape, *[1] * (x.dim() - scale.dim())])


class AffineEncode(nn.Module):
    """Floats to codes, scale and, unless symmetric, offset."""

    def __init__(self, stage: Affine) -> None:
        super().__init__()
        self.stage = stage

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        scale, offset = self.stage.grid(x)
        codes = self.stage.to_codes(x, scale, offset)
        return (codes, scale) if offset is None else (codes, scale, offset)


class AffineDecode(nn.Module):
    """The way back."""

    def __init__(self, stage: Affine, dtype: torch.dtype) -> None:
        super().__init__()
        self.stage = stage
        self.dtype = dtype

    def forward(self, codes: Tensor, scale: Tensor, offset: Tensor | None = None) -> Tensor:
        return self.stage.from_codes(codes, scale, offset).to(self.dtype)
