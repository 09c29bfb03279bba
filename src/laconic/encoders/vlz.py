"""Vector-based LZ: rows that were there before, as they are in look-ups of an embedding table, are said to be so."""

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
from laconic.ops.vlz import capacity
from laconic.stage import Context, Kind, Parts, PartSpec, PartsSpec, Stage, TensorSpec, room_for, written


@dataclass(frozen=True)
class Vlz(Stage):
    """Runs of rows (of the last dimension) that equal earlier ones become where these are; the others are written by
    `huffman`. A match begins at most `window` rows back, and within the same `block` of rows."""

    window: int | None = None
    block: int = 16384

    name: ClassVar[str] = "vlz"
    kind: ClassVar[Kind] = Kind.encoder
    example: ClassVar[str] = "bound:rel=0.03|vlz:window=32,block=2048"

    def __post_init__(self) -> None:
        for option, rows in (("window", self.window), ("block", self.block)):
            if rows is not None and not 1 <= rows <= MOST_ROWS:
                raise SpecError(
                    f"vlz: expected {option} from 1 to {MOST_ROWS:,} rows, got {rows}. Try '{self.example}'"
                )

    def out_spec(self, x: TensorSpec) -> PartsSpec:
        dtype = code_dtype(self, x.dtype, widest=4)
        if (count := layout_of(x.shape, dtype.itemsize)[0]) > MOST_ROWS:
            raise SpecError(f"{self}: expected at most {MOST_ROWS:,} rows, got {count:,} in {x}")
        return PartsSpec(PartSpec.up_to(capacity(x.nbytes), torch.uint8))

    def encode(self, x: Tensor, ctx: Context, out: Parts | None = None) -> Parts:
        codes = as_codes(x, code_dtype(self, x.dtype, widest=4))
        if out is None:
            return Parts(torch.ops.laconic.vlz_encode.default(codes, *self._reach))
        room = room_for(TensorSpec((capacity(x.nbytes),), torch.uint8), x.device, out.main)
        return Parts(room[: int(torch.ops.laconic.vlz_encode_out.default(codes, *self._reach, room))])

    def decode(self, parts: Parts, x: TensorSpec, version: int, out: Tensor | None = None) -> Tensor:
        dtype, stream = code_dtype(self, x.dtype, widest=4), parts.main.contiguous()

        def write(target: Tensor) -> None:
            torch.ops.laconic.vlz_decode_out.default(stream, target.view(dtype))

        return written(x, stream.device, out, write, partial(claimed, self))

    def encode_many(self, batch: Sequence[Tensor], contexts: Sequence[Context]) -> list[Parts]:
        if len({x.device for x in batch}) != 1:
            return super().encode_many(batch, contexts)
        codes = [as_codes(x, code_dtype(self, x.dtype, widest=4)) for x in batch]
        streams, sizes = torch.ops.laconic.vlz_encode_many.default(codes, *self._reach)
        return [Parts(stream) for stream in streams.split(sizes.tolist())]

    def decode_many(self, batch: Sequence[Parts], specs: Sequence[TensorSpec], version: int) -> list[Tensor]:
        if len({parts.main.device for parts in batch}) != 1:
            return super().decode_many(batch, specs, version)
        found = claimed_all(self, specs, batch[0].main.device)
        targets = [target.view(code_dtype(self, target.dtype, widest=4)) for target in found]
        torch.ops.laconic.vlz_decode_many_out.default([parts.main.contiguous() for parts in batch], targets)
        return found

    @property
    def _reach(self) -> tuple[int, int]:
        return self.window or MOST_ROWS, self.block
