"""`affine|bitpack:width=N` as one operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor

from laconic.encoders.bitpack import Bitpack
from laconic.fusion import Fusion, Side
from laconic.ops import packed_affine as ops  # noqa: F401  # declares the operators
from laconic.quantisers.affine import Affine, grid_of
from laconic.stage import Context, Parts, Stage, TensorSpec, room_for, written


class AffineBitpack(Fusion):
    """Floats to planes of bits, in one pass over memory where scopes are small."""

    def takes(self, stages: Sequence[Stage], x: TensorSpec) -> bool:
        affine, bitpack = _pair(stages)
        return super().takes(stages, x) and bitpack.width is not None and bitpack.width >= affine.bits

    def encode(self, stages: Sequence[Stage], x: Tensor, ctx: Context, room: Tensor | None) -> list[Parts]:
        affine, bitpack = _pair(stages)
        x = x.detach().contiguous()
        codes = torch.empty(x.shape, dtype=affine.code_dtype, device="meta")
        spec = bitpack.out_spec(TensorSpec.of(codes)).main.tensor
        data = room if room is not None and room.is_contiguous() else room_for(spec, x.device)
        side = affine.empty_grid(x)
        scale, offset = side["scale"], side.get("offset")
        row, group = affine.runs(tuple(x.shape))
        torch.ops.laconic.affine_pack_out.default(
            x, affine.bits, row, group, affine.draws, bitpack.width, data, scale, offset
        )
        affine.check_grid(scale)
        return [Parts(codes, side), Parts(data)]

    def decode(
        self,
        stages: Sequence[Stage],
        main: Tensor,
        sides: Sequence[Side],
        specs: Sequence[TensorSpec],
        out: Tensor | None,
    ) -> Tensor:
        affine, bitpack = _pair(stages)
        x = specs[0]
        scale, offset = grid_of(sides[0])
        row, group = affine.runs(x.shape)
        grid, unpack = (scale, offset, row, group, bitpack.width), torch.ops.laconic.affine_unpack_out.default
        return written(x, main.device, out, lambda target: unpack(main.contiguous(), *grid, target))


def _pair(stages: Sequence[Stage]) -> tuple[Affine, Bitpack]:
    affine, bitpack = stages
    return cast(Affine, affine), cast(Bitpack, bitpack)
