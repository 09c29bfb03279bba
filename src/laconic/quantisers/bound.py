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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import torch
from torch import Tensor

from laconic.errors import SpecError
from laconic.ops import bound as ops
from laconic.ops import grid as _grid  # noqa: F401  # declares the operator
from laconic.ops.block import compute_dtype
from laconic.ops.bound import CODES
from laconic.quantisers.stacked import decode_alike, encode_alike
from laconic.stage import Context, Kind, Parts, PartSpec, PartsSpec, Stage, TensorSpec, room_for, written

_INNER_DIMS = {"channel": 2, "row": 1}
_DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


class Grid(NamedTuple):
    """What a tensor is quantised on."""

    step: Tensor
    bound: Tensor
    width: int


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
        main = PartSpec.one_of(x.shape, tuple(CODES[width] for width in widths))
        step = PartSpec(TensorSpec(self.leading_shape(x.shape), compute_dtype(x.dtype)))
        index = PartSpec.up_to(x.numel, _index_dtype(x))
        return PartsSpec(main, {"step": step, "index": index, "values": PartSpec.up_to(x.numel, x.dtype)})

    def leading_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape[: -_INNER_DIMS[self.per]] if self.per in _INNER_DIMS else ()

    def encode(self, x: Tensor, ctx: Context, out: Parts | None = None) -> Parts:
        x = x.detach().contiguous()
        grid = self.grid(x)
        spec = TensorSpec(tuple(x.shape), CODES[grid.width])
        codes = room_for(spec, x.device, None if out is None else out.main)
        places = torch.ops.laconic.bound_encode_out.default(x, grid.step, grid.bound, codes)
        return Parts(codes, self.side(x, grid.step, places))

    def encode_many(self, batch: Sequence[Tensor], contexts: Sequence[Context]) -> list[Parts]:
        alike = encode_alike(self, batch)
        return [alike.get(i) or self.encode(x, ctx) for i, (x, ctx) in enumerate(zip(batch, contexts, strict=True))]

    def grid(self, x: Tensor, scopes: int | None = None) -> Grid:
        """The step and the bound of each scope, and the width of codes, for this very tensor."""
        if scopes is None:
            scopes = math.prod(self.leading_shape(tuple(x.shape)))
        if x.numel() == 0:
            nothing = torch.ones(scopes, dtype=compute_dtype(x.dtype), device=x.device)
            return Grid(nothing, nothing, 8 if self.width == "auto" else self.width)
        kind, value = next((i, v) for i, v in enumerate((self.abs, self.rel, self.rms)) if v is not None)
        step, bound, width = torch.ops.laconic.bound_grid.default(x, scopes, kind, value)
        return Grid(step, bound, width if self.width == "auto" else self.width)

    def side(self, x: Tensor, step: Tensor, places: Tensor) -> dict[str, Tensor]:
        """The parts beside the codes."""
        values = x.view(-1)[places] if places.numel() else x.new_empty(0)
        step = step.view(self.leading_shape(tuple(x.shape)))
        return {"step": step, "index": places.to(_index_dtype(TensorSpec.of(x))), "values": values}

    def decode(self, parts: Parts, x: TensorSpec, version: int, out: Tensor | None = None) -> Tensor:
        main = parts.main.contiguous()
        return restored(main, parts.side, x, out, torch.ops.laconic.bound_decode_out.default)

    def decode_many(self, batch: Sequence[Parts], specs: Sequence[TensorSpec], version: int) -> list[Tensor]:
        alike = decode_alike(batch, specs)
        return [
            alike[i] if i in alike else self.decode(parts, x, version)
            for i, (parts, x) in enumerate(zip(batch, specs, strict=True))
        ]


def restored(
    main: Tensor,
    side: Mapping[str, Tensor],
    x: TensorSpec,
    out: Tensor | None,
    decode: Callable[..., None],
    *options: int,
) -> Tensor:
    """A tensor of spec `x`: what `decode(main, step, *options, out)` makes of the codes, and the exceptions."""

    def write(target: Tensor) -> None:
        if x.numel:
            decode(main, side["step"].reshape(-1).contiguous(), *options, target)
            ops.put_exceptions(target, side["index"], side["values"])

    return written(x, main.device, out, write)


def _index_dtype(x: TensorSpec) -> torch.dtype:
    return torch.int32 if x.numel < 2**31 else torch.int64
