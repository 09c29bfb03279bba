"""Codecs as modules: pure torch, static shapes, matrices as buffers. They export and compile anywhere.

x --Compress--> main                    one tensor, or
                (main, "0.scale", ..)   a tuple in the order of `codec.out_spec`
main --Decompress--> x'
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from laconic.chain import Codec
from laconic.chain import codec as to_codec
from laconic.encoded import boundary_specs, part_specs
from laconic.errors import SpecError
from laconic.stage import TensorSpec, Tiling


class _Portable(nn.Module):
    """What both directions are made of: of each stage's pair of modules, theirs."""

    direction: ClassVar[int]

    def __init__(
        self,
        codec: str | Codec,
        shape: Sequence[int],
        serial: int = 1,
        *,
        span: int | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.codec = to_codec(codec)
        self.spec = TensorSpec(tuple(shape), dtype)
        self.side_counts = [len(promised.side) for promised in self.codec.out_spec(self.spec)]
        self.part_specs = part_specs(self.codec.links, self.spec, "A static compiler needs fixed sizes: the result")
        specs = boundary_specs(self.codec.links, self.spec)
        pairs = [s.portable(x, Tiling(serial, span)) for s, x in zip(self.codec.stages, specs, strict=False)]
        self.stages = nn.ModuleList(pair[self.direction] for pair in pairs)

    def extra_repr(self) -> str:
        return f"'{self.codec}', {self.spec}"


class Compress(_Portable):
    """Encodes a tensor of fixed shape; leading dimensions may differ from those given.

    `serial=s` cuts the image into s x s tiles that run one after another, with matrices s*s times smaller, and
    gives the same values. `span` is the number of pixels that one matrix covers: by default the whole tile, one
    dense product as accelerators like it; on a CPU 32 is faster. Nothing here depends on the data, so nothing is
    checked: a float16 that overflows becomes Inf. Autocast applies, as to any product.

    >>> compress = Compress("dct:chop=4", (3, 64, 64))
    >>> compress(torch.ones(3, 64, 64)).shape
    torch.Size([3, 32, 32])
    """

    direction = 0

    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, ...]:
        _check(x.shape[-2:] == self.spec.shape[-2:] and x.dtype == self.spec.dtype, self.spec, x)
        side: list[Tensor] = []
        for stage in self.stages:
            parts = stage(x)
            x, *own = parts if isinstance(parts, tuple) else (parts,)
            side.extend(own)
        return (x, *side) if side else x


class Decompress(_Portable):
    """Decodes what `Compress` of the same codec, shape and dtype gave, taking its tensors as arguments.

    >>> shape = (3, 64, 64)
    >>> compress, decompress = Compress("dct:chop=8", shape), Decompress("dct:chop=8", shape)
    >>> x = torch.rand(shape)
    >>> torch.allclose(decompress(compress(x)), x, atol=1e-5)
    True
    """

    direction = 1

    def forward(self, main: Tensor, *side: Tensor) -> Tensor:
        expected = self.part_specs["main"]
        _check(main.shape[-2:] == expected.shape[-2:] and main.dtype == expected.dtype, expected, main)
        if len(side) != sum(self.side_counts):
            raise SpecError(f"expected {len(self.part_specs)} tensors: {self.part_specs}, got {1 + len(side)}")
        rest = list(side)
        for stage, count in zip(reversed(list(self.stages)), reversed(self.side_counts), strict=True):
            own = rest[len(rest) - count :]
            rest = rest[: len(rest) - count]
            main = stage(main, *own)
        return main


def _check(fits: bool, expected: TensorSpec, x: Tensor) -> None:
    if not fits:
        raise SpecError(f"expected {expected} (leading dimensions may differ), got {TensorSpec.of(x)}")
