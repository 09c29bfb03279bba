"""Rows that repeat, as those of an embedding table do that are looked up again and again: each is kept once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor

from laconic.encoders.memory import as_codes, claimed, claimed_all, code_dtype
from laconic.errors import SpecError
from laconic.ops.repeats import MOST_ROWS, layout_of
from laconic.ops.rows import index_capacity
from laconic.stage import Context, Kind, Parts, PartSpec, PartsSpec, Stage, TensorSpec, room_for, written

_WHOLE = {torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64}


@dataclass(frozen=True)
class Rows(Stage):
    """Keeps the different rows (of the last dimension) and an index. Quicker where `codec.encode(x, rows=indices)` says
    which row of a table each one is: these are believed, but checked."""

    name: ClassVar[str] = "rows"
    kind: ClassVar[Kind] = Kind.predictor
    example: ClassVar[str] = "bound:rel=0.03|rows|huffman"
    uses_rows: ClassVar[bool] = True

    def out_spec(self, x: TensorSpec) -> PartsSpec:
        dtype = code_dtype(self, x.dtype)
        if (count := layout_of(x.shape, dtype.itemsize)[0]) > MOST_ROWS:
            raise SpecError(f"{self}: expected at most {MOST_ROWS:,} rows, got {count:,} in {x}")
        index = PartSpec.up_to(index_capacity(x.nbytes), torch.uint8)
        return PartsSpec(PartSpec.up_to(x.numel, dtype), {"index": index})

    def splits(self, x: TensorSpec) -> bool:
        return False

    def encode(self, x: Tensor, ctx: Context, out: Parts | None = None) -> Parts:
        codes = as_codes(x, code_dtype(self, x.dtype))
        main, index = torch.ops.laconic.rows_encode.default(codes, self._given(x, ctx))
        if out is not None:
            main = room_for(TensorSpec.of(main), x.device, out.main).copy_(main)
        return Parts(main, {"index": index})

    def decode(self, parts: Parts, x: TensorSpec, version: int, out: Tensor | None = None) -> Tensor:
        main, index = parts.main.contiguous(), parts.side["index"].contiguous()

        def write(target: Tensor) -> None:
            torch.ops.laconic.rows_decode_out.default(main, index, target.view(main.dtype))

        return written(x, main.device, out, write, partial(claimed, self))

    def encode_many(self, batch: Sequence[Tensor], contexts: Sequence[Context]) -> list[Parts]:
        if len({(x.dtype, x.device) for x in batch}) != 1:
            return super().encode_many(batch, contexts)
        codes = [as_codes(x, code_dtype(self, x.dtype)) for x in batch]
        given = [self._given(x, ctx) for x, ctx in zip(batch, contexts, strict=True)]
        main, index, sizes = torch.ops.laconic.rows_encode_many.default(codes, given)
        mains, indices = (whole.split(own) for whole, own in zip((main, index), sizes.T.tolist(), strict=True))
        return [Parts(main, {"index": index}) for main, index in zip(mains, indices, strict=True)]

    def decode_many(self, batch: Sequence[Parts], specs: Sequence[TensorSpec], version: int) -> list[Tensor]:
        if len({parts.main.device for parts in batch}) != 1:
            return super().decode_many(batch, specs, version)
        found = claimed_all(self, specs, batch[0].main.device)
        mains = [parts.main.contiguous() for parts in batch]
        targets = [target.view(main.dtype) for target, main in zip(found, mains, strict=True)]
        indices = [parts.side["index"].contiguous() for parts in batch]
        torch.ops.laconic.rows_decode_many_out.default(mains, indices, targets)
        return found

    def _given(self, x: Tensor, ctx: Context) -> Tensor | None:
        """The look-up indices, one for each row."""
        given = ctx.rows
        if given is None:
            return None
        count, _ = layout_of(x.shape, 1)
        if given.numel() != count or given.dtype not in _WHOLE:
            raise SpecError(
                f"rows=: expected a whole number for each of {count} rows of {list(x.shape)}, "
                f"got {TensorSpec.of(given)}. Give the indices that the rows were looked up with, in their order"
            )
        return given.to(x.device, torch.int64).contiguous()
