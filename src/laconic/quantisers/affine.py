"""Integer codes on an even grid, in a size known before the data is: `x' = code * scale + offset`.

The scale's shape is the leading shape that `per` names, so that it follows its images through slices and stacks:

    per=tensor   []                 one grid
    per=sample   x.shape[:-3]       one for each C x H x W
    per=channel  x.shape[:-2]       one for each H x W
    per=row      x.shape[:-1]       one for each row
    group=128    x.shape[:-1] + [ceil(W / 128)]    one for each run of 128 in a row of W
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from laconic.errors import DataError, SpecError
from laconic.ops import affine as ops
from laconic.ops.block import compute_dtype
from laconic.quantisers.affine_portable import AffineDecode, AffineEncode, Scopes
from laconic.stage import Context, Kind, Parts, PartSpec, PartsSpec, Stage, TensorSpec, Tiling, room_for, written

_INNER_DIMS = {"sample": 3, "channel": 2, "row": 1}


@dataclass(frozen=True)
class Affine(Stage):
    """Rounds to `2**bits` even steps between the least and the greatest value (or between -max|x| and max|x|)."""

    bits: int = 8
    per: Literal["tensor", "sample", "channel", "row"] = "tensor"
    symmetric: bool = False
    group: int | None = None
    stochastic: bool | None = None
    seed: int | None = None

    name: ClassVar[str] = "affine"
    kind: ClassVar[Kind] = Kind.quantiser
    example: ClassVar[str] = "dct:chop=4|affine:bits=8"
    operators: ClassVar[frozenset[str]] = frozenset(
        {"to", "amin", "amax", "neg", "maximum", "sub", "div", "mul", "add", "round", "clamp", "reshape"}
        | {"eq", "ones_like", "where"}  # a flat input's scale
        | {"narrow", "unflatten", "flatten", "cat", "unsqueeze", "expand"}  # groups
    )

    def __post_init__(self) -> None:
        least = 2 if self.symmetric else 1
        if not least <= self.bits <= 8:
            kind = "symmetric affine" if self.symmetric else "affine"
            raise SpecError(f"{kind}: expected bits from {least} to 8, got {self.bits}. Try '{self.example}'")
        if self.group is not None and not (32 <= self.group <= 256 and self.per == "tensor"):
            raise SpecError(
                f"affine: expected group from 32 to 256 and no per= beside it, got group={self.group}, "
                f"per={self.per}. Try 'affine:bits=4,group=128'"
            )
        if self.seed is not None and not (0 <= self.seed < 2**63 and self.stochastic):
            raise SpecError(
                f"affine: expected a seed from 0 to 2**63 - 1 beside stochastic=true, got {self.seed}. "
                "Try 'affine:bits=4,stochastic=true,seed=1'"
            )

    @property
    def code_dtype(self) -> torch.dtype:
        return torch.int8 if self.symmetric else torch.uint8

    @property
    def top_code(self) -> int:
        """The greatest code; the least is 0, or its opposite where the grid is symmetric."""
        return ops.top_code(self.bits, self.symmetric)

    @property
    def draws(self) -> int | None:
        """The seed of what is drawn, 0 unless given; None where rounding is to the nearest."""
        return (self.seed or 0) if self.stochastic else None

    def out_spec(self, x: TensorSpec) -> PartsSpec:
        if not x.dtype.is_floating_point:
            raise SpecError(f"{self}: expected floats, got {x}. Put a transform such as 'dct:chop=4' before it")
        scale = PartSpec(TensorSpec(self.grid_shape(x.shape), compute_dtype(x.dtype)))
        side = {"scale": scale} if self.symmetric else {"scale": scale, "offset": scale}
        return PartsSpec(PartSpec(TensorSpec(x.shape, self.code_dtype)), side)

    def grid_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A scale for each scope."""
        if self.group is not None and shape:
            return (*shape[:-1], math.ceil(shape[-1] / self.group))
        return shape[: -_INNER_DIMS[self.per]] if self.per in _INNER_DIMS else ()

    def runs(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """The elements of a row, and of a scope in it."""
        if self.group is not None and shape:
            return shape[-1], min(self.group, shape[-1])
        row = math.prod(shape[len(self.grid_shape(shape)) :])
        return row, row

    def encode(self, x: Tensor, ctx: Context, out: Parts | None = None) -> Parts:
        x = x.detach().contiguous()
        parts = self.room(x, out)
        scale, offset = parts.side["scale"], parts.side.get("offset")
        if x.numel():
            row, group = self.runs(tuple(x.shape))
            torch.ops.laconic.affine_encode_out.default(x, self.bits, row, group, self.draws, parts.main, scale, offset)
            self.check_grid(scale)
        else:
            scale.fill_(1)
            if offset is not None:
                offset.zero_()
        return parts

    def room(self, x: Tensor, out: Parts | None) -> Parts:
        """Where to write: `out`, unless an operator would not take it."""
        if out is not None and all(part.is_contiguous() for part in (out.main, *out.side.values())):
            return out
        return Parts(room_for(TensorSpec(x.shape, self.code_dtype), x.device), self.empty_grid(x))

    def empty_grid(self, x: Tensor) -> dict[str, Tensor]:
        """Room for the side parts."""
        side = self.out_spec(TensorSpec.of(x)).side
        return {name: room_for(part.tensor, x.device) for name, part in side.items()}

    def check_grid(self, scale: Tensor) -> None:
        """A scope's scale is finite unless a value or their range is not."""
        if not bool(scale.isfinite().all()):
            raise DataError(
                f"{self}: expected finite values of a range that {scale.dtype} holds, got NaN, Inf or more. "
                "A fixed grid has no place for them"
            )

    def decode(self, parts: Parts, x: TensorSpec, version: int, out: Tensor | None = None) -> Tensor:
        codes = parts.main.contiguous()

        def write(target: Tensor) -> None:
            if x.numel:
                grid = (*grid_of(parts.side), *self.runs(x.shape))
                torch.ops.laconic.affine_decode_out.default(codes, *grid, target)

        return written(x, codes.device, out, write)

    def portable(self, x: TensorSpec, tiling: Tiling) -> tuple[nn.Module, nn.Module]:
        self.out_spec(x)
        if self.stochastic:
            raise SpecError(f"{self} has no portable form for laconic.nn: it draws bits. Leave stochastic= out")
        self.refuse_empty(x)
        scopes = Scopes(_INNER_DIMS.get(self.per), self.group if x.shape else None)
        return AffineEncode(self.top_code, self.code_dtype, scopes), AffineDecode(x.dtype, scopes)


def grid_of(side: Mapping[str, Tensor]) -> tuple[Tensor, Tensor | None]:
    """The scales, and the offsets where there are any, as operators take them."""
    offset = side.get("offset")
    return side["scale"].contiguous(), None if offset is None else offset.contiguous()
