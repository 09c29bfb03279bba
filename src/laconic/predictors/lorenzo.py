"""Smooth data: what is left of each code, once its neighbours before it have foretold it, is small."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from laconic.encoders.memory import as_codes, code_dtype
from laconic.ops import lorenzo as _lorenzo  # noqa: F401  # declares the operators
from laconic.stage import Context, Kind, Parts, PartSpec, PartsSpec, Stage, TensorSpec, room_for, written

_SIGNED = {
    torch.uint8: torch.int8,
    torch.uint16: torch.int16,
    torch.uint32: torch.int32,
    torch.uint64: torch.int64,
}


@dataclass(frozen=True)
class Lorenzo(Stage):
    """Stores how each code differs from what its neighbours in the last `dims` dimensions foretell."""

    dims: Literal[1, 2, 3] = 2

    name: ClassVar[str] = "lorenzo"
    kind: ClassVar[Kind] = Kind.predictor
    example: ClassVar[str] = "bound:rel=1e-3|lorenzo|huffman"

    def dims_of(self, x: TensorSpec) -> int:
        """Those that a tensor has, where it has fewer."""
        return min(self.dims, len(x.shape))

    def out_spec(self, x: TensorSpec) -> PartsSpec:
        dtype = code_dtype(self, x.dtype)
        return PartsSpec(PartSpec(TensorSpec(x.shape, _SIGNED.get(dtype, dtype))))

    def splits(self, x: TensorSpec) -> bool:
        return len(x.shape) > self.dims

    def encode(self, x: Tensor, ctx: Context, out: Parts | None = None) -> Parts:
        main = self.out_spec(spec := TensorSpec.of(x)).main.tensor
        codes = as_codes(x, main.dtype)
        target = room_for(TensorSpec.of(codes), x.device, None if out is None else out.main)
        if x.numel() and (dims := self.dims_of(spec)):
            torch.ops.laconic.lorenzo_encode_out.default(codes, dims, target)
        else:
            target.copy_(codes)
        return Parts(target)

    def decode(self, parts: Parts, x: TensorSpec, version: int, out: Tensor | None = None) -> Tensor:
        residuals, dims = parts.main.contiguous(), self.dims_of(x)

        def write(target: Tensor) -> None:
            codes = target.view(residuals.dtype)
            if residuals.numel() and dims:
                torch.ops.laconic.lorenzo_decode_out.default(residuals, dims, codes)
            else:
                codes.copy_(residuals)

        return written(x, residuals.device, out, write)
