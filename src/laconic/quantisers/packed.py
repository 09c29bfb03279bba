"""`bound|bitpack` and `bound|lorenzo|bitpack` as one operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor

from laconic.fusion import Fusion, Side
from laconic.ops import bound as bound_ops
from laconic.ops import packed as ops  # noqa: F401  # declares the operators
from laconic.ops.bitpack import capacity
from laconic.predictors.lorenzo import Lorenzo
from laconic.quantisers.bound import CODES, Bound
from laconic.stage import Context, Parts, Stage, TensorSpec, room_for


class BoundBitpack(Fusion):
    """Floats to planes of bits in one pass over memory."""

    def encode(self, stages: Sequence[Stage], x: Tensor, ctx: Context, room: Tensor | None) -> list[Parts]:
        bound = cast(Bound, stages[0])
        x = x.detach().contiguous()
        grid = bound.grid(x)
        codes = torch.empty(x.shape, dtype=CODES[grid.width], device="meta")
        data = room_for(TensorSpec((capacity(x.numel(), codes.element_size()),), torch.uint8), x.device, room)
        length, places = torch.ops.laconic.bound_pack_out.default(
            x, grid.step, grid.bound, grid.width, _dims(stages, TensorSpec.of(x)), data
        )
        main = data[:length].clone() if room is None else data[:length]
        between = [Parts(codes) for _ in stages[1:-1]]
        return [Parts(codes, bound.side(x, grid, places)), *between, Parts(main)]

    def decode(
        self,
        stages: Sequence[Stage],
        main: Tensor,
        sides: Sequence[Side],
        specs: Sequence[TensorSpec],
        out: Tensor | None,
    ) -> Tensor:
        x, width = specs[0], 8 * specs[1].dtype.itemsize
        target = out if out is not None and out.is_contiguous() else room_for(x, main.device)
        step = sides[0]["step"].reshape(-1).contiguous()
        torch.ops.laconic.bound_unpack_out.default(main.contiguous(), step, width, _dims(stages, x), target)
        bound_ops.put_exceptions(target, sides[0]["index"], sides[0]["values"])
        return target if out is None or target is out else out.copy_(target)


def _dims(stages: Sequence[Stage], x: TensorSpec) -> int:
    return sum(stage.dims_of(x) for stage in stages if isinstance(stage, Lorenzo))
