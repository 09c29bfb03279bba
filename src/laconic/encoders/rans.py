"""An entropy coder that needs no whole bits: for codes of which one is more frequent than all others together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor

from laconic.encoders.memory import as_codes, claimed, code_dtype
from laconic.ops.rans import MOST_SHARED_BYTES
from laconic.ops.rans_stream import SHARED
from laconic.stage import Context, Kind, Parts, PartSpec, PartsSpec, Stage, TensorSpec, room_for, written


@dataclass(frozen=True)
class Rans(Stage):
    """Codes at their entropy, also where that is less than a bit each, by interleaved range coders (rANS)."""

    name: ClassVar[str] = "rans"
    kind: ClassVar[Kind] = Kind.encoder
    example: ClassVar[str] = "affine|rans"

    def out_spec(self, x: TensorSpec) -> PartsSpec:
        code_dtype(self, x.dtype, widest=4)
        main = PartSpec.up_to(1 + x.nbytes, torch.uint8)
        return PartsSpec(main, {"book": PartSpec.up_to(MOST_SHARED_BYTES, torch.uint8)})

    def share(self, batch: Sequence[Tensor]) -> Mapping[str, Tensor]:
        """A book for all codes of a size, by that size; none where it would save less than it takes."""
        groups: dict[int, list[Tensor]] = {}
        for x in batch:
            groups.setdefault(x.element_size(), []).append(as_codes(x, code_dtype(self, x.dtype, widest=4)))
        shared = {str(size): torch.ops.laconic.rans_share(codes) for size, codes in groups.items()}
        return {size: book for size, book in shared.items() if book.numel() > 0}

    def encode(self, x: Tensor, ctx: Context, out: Parts | None = None) -> Parts:
        codes = as_codes(x, code_dtype(self, x.dtype, widest=4))
        book = ctx.shared.get(str(x.element_size()))
        if out is None:
            main = torch.ops.laconic.rans_encode(codes, book)
        else:
            room = room_for(TensorSpec((1 + x.nbytes,), torch.uint8), x.device, out.main)
            main = room[: int(torch.ops.laconic.rans_encode_out(codes, room, book))]
        if book is None or int(main[0]) & 3 != SHARED:
            book = main.new_empty(0)
        return Parts(main, {"book": book})

    def decode(self, parts: Parts, x: TensorSpec, version: int, out: Tensor | None = None) -> Tensor:
        dtype = code_dtype(self, x.dtype, widest=4)
        stream, book = parts.main.contiguous(), parts.side.get("book")

        def write(target: Tensor) -> None:
            torch.ops.laconic.rans_decode_out(stream, target.view(dtype), book)

        return written(x, stream.device, out, write, partial(claimed, self))
