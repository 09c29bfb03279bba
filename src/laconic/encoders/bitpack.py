"""Each block of 32 codes at the width its largest code needs: the fastest encoder there is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from laconic.encoders.memory import as_codes, code_dtype
from laconic.ops import bitpack as ops
from laconic.stage import Context, Kind, Parts, PartSpec, PartsSpec, Stage, TensorSpec, room_for


@dataclass(frozen=True)
class Bitpack(Stage):
    """Writes codes in as many bits as the largest of 32 needs. Few bits for small codes, one for 32 zeros."""

    name: ClassVar[str] = "bitpack"
    kind: ClassVar[Kind] = Kind.encoder
    example: ClassVar[str] = "bound:rel=1e-2|lorenzo|bitpack"

    def out_spec(self, x: TensorSpec) -> PartsSpec:
        dtype = code_dtype(self, x.dtype, widest=4)
        return PartsSpec(PartSpec.up_to(ops.capacity(x.numel, dtype.itemsize), torch.uint8))

    def encode(self, x: Tensor, ctx: Context, out: Parts | None = None) -> Parts:
        codes = as_codes(x, code_dtype(self, x.dtype, widest=4))
        room = TensorSpec((ops.capacity(codes.numel(), codes.element_size()),), torch.uint8)
        data = room_for(room, x.device, None if out is None else out.main)
        length = torch.ops.laconic.bitpack_encode_out.default(codes, data)
        return Parts(data[:length].clone() if out is None else data[:length])

    def decode(self, parts: Parts, x: TensorSpec, version: int, out: Tensor | None = None) -> Tensor:
        dtype = code_dtype(self, x.dtype, widest=4)
        target = out if out is not None and out.is_contiguous() else room_for(x, parts.main.device)
        torch.ops.laconic.bitpack_decode_out.default(parts.main.contiguous(), target.view(dtype))
        return target if out is None or target is out else out.copy_(target)
