"""`bound|lorenzo`, `bound|bitpack` and `bound|lorenzo|bitpack`, each as one operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor

from laconic.encoders.memory import tight
from laconic.fusion import Fusion, Side
from laconic.ops import packed as ops  # noqa: F401  # declares the operators
from laconic.ops.bitpack import capacity, check_length
from laconic.ops.bound import CODES
from laconic.predictors.lorenzo import Lorenzo
from laconic.quantisers.bound import Bound, restored
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
        main = tight(data, length) if room is None else data[:length]
        between = [Parts(codes) for _ in stages[1:-1]]
        return [Parts(codes, bound.side(x, grid.step, places)), *between, Parts(main)]

    def decode(
        self,
        stages: Sequence[Stage],
        main: Tensor,
        sides: Sequence[Side],
        specs: Sequence[TensorSpec],
        out: Tensor | None,
    ) -> Tensor:
        width, dims = 8 * specs[1].dtype.itemsize, _dims(stages, specs[0])
        check_length(main.nbytes, specs[0].numel, width // 8)
        unpack = torch.ops.laconic.bound_unpack_out.default
        return restored(main.contiguous(), sides[0], specs[0], out, unpack, width, dims)


class BoundLorenzo(Fusion):
    """Floats to what prediction leaves of their codes, in one pass over memory."""

    def takes(self, stages: Sequence[Stage], x: TensorSpec) -> bool:
        return x.numel > 0 and _dims(stages, x) > 0

    def encode(self, stages: Sequence[Stage], x: Tensor, ctx: Context, room: Tensor | None) -> list[Parts]:
        bound = cast(Bound, stages[0])
        x = x.detach().contiguous()
        grid, spec = bound.grid(x), TensorSpec.of(x)
        codes = torch.empty(x.shape, dtype=CODES[grid.width], device="meta")
        residuals = room_for(TensorSpec.of(codes), x.device, room)
        places = torch.ops.laconic.bound_predict_out.default(x, grid.step, grid.bound, _dims(stages, spec), residuals)
        return [Parts(codes, bound.side(x, grid.step, places)), Parts(residuals)]

    def decode(
        self,
        stages: Sequence[Stage],
        main: Tensor,
        sides: Sequence[Side],
        specs: Sequence[TensorSpec],
        out: Tensor | None,
    ) -> Tensor:
        restore = torch.ops.laconic.bound_restore_out.default
        return restored(main.contiguous(), sides[0], specs[0], out, restore, _dims(stages, specs[0]))


def _dims(stages: Sequence[Stage], x: TensorSpec) -> int:
    return sum(stage.dims_of(x) for stage in stages if isinstance(stage, Lorenzo))
