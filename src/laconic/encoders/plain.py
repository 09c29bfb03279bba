"""What a codec of variable size stores where it would not gain, or need not try: see `Codec.encode`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor

from laconic.encoders.memory import as_bytes, as_integers, claimed, copy_bytes, from_bytes, refuse_wide
from laconic.errors import DataError
from laconic.stage import Context, Kind, Parts, PartSpec, PartsSpec, Stage, TensorSpec, room_for, written


@dataclass(frozen=True)
class Raw(Stage):
    """The bytes as they are in memory. Codecs whose result would be larger store this instead."""

    name: ClassVar[str] = "raw"
    kind: ClassVar[Kind] = Kind.encoder
    example: ClassVar[str] = "raw"

    def out_spec(self, x: TensorSpec) -> PartsSpec:
        refuse_wide(self, x)
        return PartsSpec(PartSpec(TensorSpec((x.nbytes,), torch.uint8)))

    def encode(self, x: Tensor, ctx: Context, out: Parts | None = None) -> Parts:
        data = as_bytes(x)
        main = room_for(TensorSpec.of(data), x.device, None if out is None else out.main)
        return Parts(copy_bytes(main, data))

    def decode(self, parts: Parts, x: TensorSpec, version: int, out: Tensor | None = None) -> Tensor:
        return from_bytes(parts.main, x, out)


@dataclass(frozen=True)
class Constant(Stage):
    """One element, for all of a tensor that does not vary. Codecs of variable size store such tensors so."""

    name: ClassVar[str] = "constant"
    kind: ClassVar[Kind] = Kind.encoder
    example: ClassVar[str] = "constant"

    def out_spec(self, x: TensorSpec) -> PartsSpec:
        refuse_wide(self, x)
        return PartsSpec(PartSpec(TensorSpec((min(x.numel, 1) * x.dtype.itemsize,), torch.uint8)))

    def encode(self, x: Tensor, ctx: Context, out: Parts | None = None) -> Parts:
        data = as_bytes(x[(0,) * x.dim()]) if x.numel() else as_bytes(x)
        if x.numel() and not is_constant(x):
            raise DataError(f"{self}: expected a tensor whose elements are all the same. Try '{Raw.example}'")
        main = room_for(TensorSpec.of(data), x.device, None if out is None else out.main)
        return Parts(main.copy_(data))

    def decode(self, parts: Parts, x: TensorSpec, version: int, out: Tensor | None = None) -> Tensor:
        def write(target: Tensor) -> None:
            if x.numel:
                as_integers(target).copy_(parts.main.clone().view(as_integers(target).dtype))

        return written(x, parts.main.device, out, write, partial(claimed, self))


_SPREAD = 64


def is_constant(x: Tensor) -> bool:
    """Whether all elements are the same, bit for bit. Nearly always a few say no: the first, or some of everywhere."""
    if x.element_size() > 8:
        return False
    few = x[(0,) * (x.dim() - 1)][:4].tolist() if x.dim() else []
    if any(value != few[0] and value == value for value in few):
        return False
    integers = as_integers(x)
    some = integers[:: max(1, len(integers) // _SPREAD)]
    return all(bool((codes == integers[0]).all()) for codes in (some, integers))
