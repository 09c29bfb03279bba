"""Codes as bit planes, in blocks of 32: at the width that a block's largest code needs, or all at one width."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from laconic.encoders.fixed_portable import OPERATORS, FixedDecode, FixedEncode
from laconic.encoders.memory import as_codes, code_dtype, tight
from laconic.errors import SpecError
from laconic.ops import bitpack as ops
from laconic.ops import fixed
from laconic.stage import Context, Kind, Parts, PartSpec, PartsSpec, Stage, TensorSpec, Tiling, room_for, written


@dataclass(frozen=True)
class Bitpack(Stage):
    """Writes codes in as many bits as the largest of 32 needs: one for 32 zeros. Or, `width=4`, all in so many."""

    width: int | None = None

    name: ClassVar[str] = "bitpack"
    kind: ClassVar[Kind] = Kind.encoder
    example: ClassVar[str] = "bound:rel=1e-2|lorenzo|bitpack"
    operators: ClassVar[frozenset[str]] = OPERATORS

    def __post_init__(self) -> None:
        if self.width is not None and not 1 <= self.width <= 8:
            raise SpecError(
                f"bitpack: expected width from 1 to 8, got {self.width}. Try 'affine:bits=4|bitpack:width=4'"
            )

    def out_spec(self, x: TensorSpec) -> PartsSpec:
        if self.width is None:
            dtype = code_dtype(self, x.dtype, widest=4)
            return PartsSpec(PartSpec.up_to(ops.capacity(x.numel, dtype.itemsize), torch.uint8))
        if x.dtype not in (torch.uint8, torch.int8):
            raise SpecError(f"{self}: expected codes of 8 bits, got {x}. Try 'affine:bits=4|bitpack:width=4'")
        return PartsSpec(PartSpec(TensorSpec(fixed.packed_shape(x.shape, self.width), torch.uint8)))

    def encode(self, x: Tensor, ctx: Context, out: Parts | None = None) -> Parts:
        if self.width is not None:
            return self._encode_fixed(x, self.width, out)
        codes = as_codes(x, code_dtype(self, x.dtype, widest=4))
        room = TensorSpec((ops.capacity(codes.numel(), codes.element_size()),), torch.uint8)
        data = room_for(room, x.device, None if out is None else out.main)
        length = torch.ops.laconic.bitpack_encode_out.default(codes, data)
        return Parts(tight(data, length) if out is None else data[:length])

    def _encode_fixed(self, x: Tensor, width: int, out: Parts | None) -> Parts:
        spec = self.out_spec(TensorSpec.of(x)).main.tensor
        ready = out is not None and out.main.is_contiguous()
        data = out.main if out is not None and ready else room_for(spec, x.device)
        torch.ops.laconic.bitpack_fixed_encode_out.default(x.detach().contiguous(), width, data)
        return Parts(data)

    def decode(self, parts: Parts, x: TensorSpec, version: int, out: Tensor | None = None) -> Tensor:
        dtype = code_dtype(self, x.dtype, widest=4)
        if self.width is None:
            ops.check_length(parts.main.nbytes, x.numel, dtype.itemsize)
        data = parts.main.contiguous()

        def write(target: Tensor) -> None:
            if self.width is None:
                torch.ops.laconic.bitpack_decode_out.default(data, target.view(dtype))
            else:
                torch.ops.laconic.bitpack_fixed_decode_out.default(data, self.width, target)

        return written(x, data.device, out, write)

    def portable(self, x: TensorSpec, tiling: Tiling) -> tuple[nn.Module, nn.Module]:
        self.out_spec(x)
        if self.width is None or x.numel == 0 or not x.shape:
            raise SpecError(
                f"{self} has no portable form of {x} for laconic.nn: expected a width and at least one row. "
                "Try 'affine:bits=4|bitpack:width=4'"
            )
        return FixedEncode(self.width), FixedDecode(self.width, x.shape[-1], x.dtype)
