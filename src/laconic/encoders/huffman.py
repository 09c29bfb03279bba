"""An entropy coder for codes of which some are much more frequent than others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

import laconic.ops.huffman  # noqa: F401  # declares the operators
from laconic.encoders.memory import as_codes, claimed, code_dtype
from laconic.stage import Context, Kind, Parts, PartSpec, PartsSpec, Stage, TensorSpec, room_for


@dataclass(frozen=True)
class Huffman(Stage):
    """Frequent codes in few bits, by canonical Huffman codes: for what predictors leave, mostly small numbers."""

    name: ClassVar[str] = "huffman"
    kind: ClassVar[Kind] = Kind.encoder
    example: ClassVar[str] = "affine|huffman"

    def out_spec(self, x: TensorSpec) -> PartsSpec:
        code_dtype(self, x.dtype, widest=4)
        return PartsSpec(PartSpec.up_to(1 + x.nbytes, torch.uint8))

    def encode(self, x: Tensor, ctx: Context, out: Parts | None = None) -> Parts:
        codes = as_codes(x, code_dtype(self, x.dtype, widest=4))
        if out is None:
            return Parts(torch.ops.laconic.huffman_encode(codes))
        room = room_for(TensorSpec((1 + x.nbytes,), torch.uint8), x.device, out.main)
        return Parts(room[: int(torch.ops.laconic.huffman_encode_out(codes, room))])

    def decode(self, parts: Parts, x: TensorSpec, version: int, out: Tensor | None = None) -> Tensor:
        dtype = code_dtype(self, x.dtype, widest=4)
        target = out.detach() if out is not None and out.is_contiguous() else claimed(self, x, parts.main.device)
        torch.ops.laconic.huffman_decode_out(parts.main.contiguous(), target.view(dtype))
        return target if out is None else out if out.is_contiguous() else out.copy_(target)
