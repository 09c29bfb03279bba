"""An entropy coder that needs no whole bits: for codes of which one is more frequent than all others together."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
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
        groups = _places([x.element_size() for x in batch])
        books = {
            str(size): torch.ops.laconic.rans_share([self._codes(batch[place]) for place in places])
            for size, places in groups.items()
        }
        return {size: book for size, book in books.items() if book.numel() > 0}

    def encode(self, x: Tensor, ctx: Context, out: Parts | None = None) -> Parts:
        codes = self._codes(x)
        book = ctx.shared.get(str(x.element_size()))
        if out is None:
            main = torch.ops.laconic.rans_encode(codes, book)
        else:
            room = room_for(TensorSpec((1 + x.nbytes,), torch.uint8), x.device, out.main)
            main = room[: int(torch.ops.laconic.rans_encode_out(codes, room, book))]
        if book is None or int(main[0]) & 3 != SHARED:
            book = main.new_empty(0)
        return Parts(main, {"book": book})

    def encode_many(self, batch: Sequence[Tensor], contexts: Sequence[Context]) -> list[Parts]:
        """All codes of a size that share a book, or do without one, in one call."""
        books = [ctx.shared.get(str(x.element_size())) for x, ctx in zip(batch, contexts, strict=True)]
        keys = [(x.element_size(), x.device, id(book)) for x, book in zip(batch, books, strict=True)]
        found: dict[int, Parts] = {}
        for places in _places(keys).values():
            codes, book = [self._codes(batch[place]) for place in places], books[places[0]]
            memory, lengths = torch.ops.laconic.rans_encode_many(codes, book)
            modes = (memory[lengths.cumsum(0) - lengths] & 3).tolist()
            none = memory.new_empty(0)
            for place, main, mode in zip(places, memory.split(lengths.tolist()), modes, strict=True):
                found[place] = Parts(main, {"book": book if book is not None and mode == SHARED else none})
        return [found[place] for place in range(len(batch))]

    def decode(self, parts: Parts, x: TensorSpec, version: int, out: Tensor | None = None) -> Tensor:
        dtype = code_dtype(self, x.dtype, widest=4)
        stream, book = parts.main.contiguous(), parts.side.get("book")

        def write(target: Tensor) -> None:
            torch.ops.laconic.rans_decode_out(stream, target.view(dtype), book)

        return written(x, stream.device, out, write, partial(claimed, self))

    def decode_many(self, batch: Sequence[Parts], specs: Sequence[TensorSpec], version: int) -> list[Tensor]:
        """All streams of codes of a size that share a book, or have none, in one call."""
        books = [_given(parts) for parts in batch]
        keys = [
            (x.dtype.itemsize, parts.main.device, None if book is None else (book.data_ptr(), book.numel()))
            for parts, x, book in zip(batch, specs, books, strict=True)
        ]
        outs = [claimed(self, x, parts.main.device) for parts, x in zip(batch, specs, strict=True)]
        for places in _places(keys).values():
            streams = [batch[place].main.contiguous() for place in places]
            torch.ops.laconic.rans_decode_many(streams, [outs[place] for place in places], books[places[0]])
        return outs

    def _codes(self, x: Tensor) -> Tensor:
        return as_codes(x, code_dtype(self, x.dtype, widest=4))


def _given(parts: Parts) -> Tensor | None:
    """The book beside a stream, if there is one."""
    book = parts.side.get("book")
    return book if book is not None and book.numel() > 0 else None


def _places(keys: Sequence[Hashable]) -> dict[Hashable, list[int]]:
    """Where each key is found."""
    places: dict[Hashable, list[int]] = {}
    for place, key in enumerate(keys):
        places.setdefault(key, []).append(place)
    return places
