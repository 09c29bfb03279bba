"""Integer codes on an even grid, so fine that no value is further off than the bound, in the receiver's arithmetic.

    x' = code * step        for all values but the exceptions
    x'[index] = values      NaN, Inf, codes out of range, and what rounding would take over the bound: stored exactly

The bound is of one kind: `abs`, or a part of the scope's range (`rel`, of max - min), or of its root mean square
(`rms`), over its finite values. A scope is what `per` names:

    per=tensor   []              all of it
    per=channel  x.shape[:-2]    each H x W
    per=row      x.shape[:-1]    each row
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from laconic.errors import SpecError
from laconic.ops import bound as ops
from laconic.ops.block import compute_dtype
from laconic.quantisers import grid
from laconic.stage import Context, Kind, Parts, PartSpec, PartsSpec, Stage, TensorSpec, room_for

_INNER_DIMS = {"channel": 2, "row": 1}
_DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class Bound(Stage):
    """Rounds to codes of 8, 16 or 32 bits, so that every value keeps within a bound: `|x - x'| <= bound`."""

    abs: float | None = None
    rel: float | None = None
    rms: float | None = None
    per: Literal["tensor", "channel", "row"] = "tensor"
    width: Literal["auto", 8, 16, 32] = "auto"

    name: ClassVar[str] = "bound"
    kind: ClassVar[Kind] = Kind.quantiser
    example: ClassVar[str] = "bound:rel=1e-3|lorenzo|huffman"

    def __post_init__(self) -> None:
        given = [value for value in (self.abs, self.rel, self.rms) if value is not None]
        if len(given) != 1:
            raise SpecError(
                f"bound: expected exactly one of abs=, rel= and rms=, got {len(given)}. Try '{self.example}'"
            )
        if not (given[0] > 0 and math.isfinite(given[0])):
            raise SpecError(f"bound: expected a bound above 0, got {given[0]}. For lossless, try 'lorenzo|huffman'")

    def out_spec(self, x: TensorSpec) -> PartsSpec:
        if x.dtype not in _DTYPES:
            raise SpecError(f"{self}: expected floats, got {x}. For lossless, try 'lorenzo|huffman'")
        widths = (8, 16, 32) if self.width == "auto" else (self.width,)
        main = PartSpec.one_of(x.shape, tuple(grid.WIDTHS[width] for width in widths))
        step = PartSpec(TensorSpec(self.leading_shape(x.shape), compute_dtype(x.dtype)))
        index = PartSpec.up_to(x.numel, _index_dtype(x))
        return PartsSpec(main, {"step": step, "index": index, "values": PartSpec.up_to(x.numel, x.dtype)})

    def leading_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape[: -_INNER_DIMS[self.per]] if self.per in _INNER_DIMS else ()

    def encode(self, x: Tensor, ctx: Context, out: Parts | None = None) -> Parts:
        x = x.detach().contiguous()
        found = self.grid(x)
        spec = TensorSpec(tuple(x.shape), self.code_dtype(found))
        codes = room_for(spec, x.device, None if out is None else out.main)
        index = torch.ops.laconic.bound_encode_out.default(x, found.step, found.bound, codes)
        return Parts(codes, self.side(x, found, index, out))

    def grid(self, x: Tensor) -> grid.Grid:
        """The step and bound of each scope, for this very tensor."""
        scopes = math.prod(self.leading_shape(tuple(x.shape)))
        if x.numel() == 0:
            nothing = torch.ones(scopes, dtype=compute_dtype(x.dtype), device=x.device)
            return grid.Grid(nothing, nothing, 8)
        extent = torch.ops.laconic.bound_extent.default(x, scopes, self.rms is not None)
        low, high, squares, count = extent.cpu().numpy().T
        step, bound, width = grid.choose(self.bound_of(low, high, squares, count), low, high, x.dtype)
        return grid.Grid(step.to(x.device), bound.to(x.device), width)

    def bound_of(self, low: grid.Floats, high: grid.Floats, squares: grid.Floats, count: grid.Floats) -> grid.Floats:
        """In absolute terms, per scope; 0 where a scope has no range."""
        if self.abs is not None:
            return np.full_like(low, self.abs)
        with np.errstate(all="ignore"):
            reach = high - low if self.rms is None else np.sqrt(squares / count)
            return np.asarray((self.rel or self.rms) * np.nan_to_num(np.maximum(reach, 0), nan=0.0))

    def code_dtype(self, found: grid.Grid) -> torch.dtype:
        return grid.WIDTHS[found.width if self.width == "auto" else self.width]

    def side(self, x: Tensor, found: grid.Grid, index: Tensor, out: Parts | None = None) -> dict[str, Tensor]:
        """The parts beside the codes; in the memory of `out` when given."""
        step = found.step.reshape(self.leading_shape(tuple(x.shape)))
        side = {"step": step, "index": index.to(_index_dtype(TensorSpec.of(x))), "values": x.view(-1)[index]}
        if out is None:
            return side
        return {name: room_for(TensorSpec.of(p), p.device, out.side[name]).copy_(p) for name, p in side.items()}

    def decode(self, parts: Parts, x: TensorSpec, version: int, out: Tensor | None = None) -> Tensor:
        target = out if out is not None and out.is_contiguous() else room_for(x, parts.main.device)
        if x.numel:
            step = parts.side["step"].reshape(-1).contiguous()
            torch.ops.laconic.bound_decode_out.default(parts.main.contiguous(), step, target)
            ops.put_exceptions(target, parts.side["index"], parts.side["values"])
        return target if out is None or target is out else out.copy_(target)


def _index_dtype(x: TensorSpec) -> torch.dtype:
    return torch.int32 if x.numel < 2**31 else torch.int64
