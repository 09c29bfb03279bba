"""Fewer bits for each value: a plain change of dtype."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from laconic.errors import DataError, SpecError
from laconic.stage import Context, Kind, Parts, PartSpec, PartsSpec, Stage, TensorSpec, Tiling


@dataclass(frozen=True)
class Cast(Stage):
    """Stores floats in a narrower dtype. A finite value too large for it is an error, never Inf."""

    dtype: Literal["float16", "bfloat16", "float32"]

    name: ClassVar[str] = "cast"
    kind: ClassVar[Kind] = Kind.transform
    example: ClassVar[str] = "dct:chop=4|cast:dtype=float16"
    operators: ClassVar[frozenset[str]] = frozenset({"to", "_to_copy"})

    @property
    def target(self) -> torch.dtype:
        return getattr(torch, self.dtype)  # type: ignore[no-any-return]

    def out_spec(self, x: TensorSpec) -> PartsSpec:
        if not x.dtype.is_floating_point:
            raise SpecError(f"{self}: expected floats, got {x}. Put a transform such as 'dct:chop=4' before it")
        return PartsSpec(PartSpec(TensorSpec(x.shape, self.target)))

    def encode(self, x: Tensor, ctx: Context, out: Parts | None = None) -> Parts:
        y = x.to(self.target) if out is None else out.main.copy_(x)
        if torch.finfo(self.target).max < torch.finfo(x.dtype).max:
            self._raise_on_overflow(x, y)
        return Parts(y) if out is None else out

    def _raise_on_overflow(self, x: Tensor, y: Tensor) -> None:
        """Inf among the casts is rare: only then are the originals looked at."""
        if bool(y.isinf().any()) and bool((y.isinf() & x.isfinite()).any()):
            largest = torch.finfo(self.target).max
            raise DataError(
                f"{self}: a finite value is too large for {self.dtype} ({largest:g} at most). "
                "Scale the input down, or use cast:dtype=bfloat16"
            )

    def decode(self, parts: Parts, x: TensorSpec, version: int, out: Tensor | None = None) -> Tensor:
        return parts.main.to(x.dtype) if out is None else out.copy_(parts.main)

    def portable(self, x: TensorSpec, tiling: Tiling) -> tuple[nn.Module, nn.Module]:
        self.out_spec(x)
        return To(self.target), To(x.dtype)


class To(nn.Module):
    """`x.to(dtype)` as a module."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, x: Tensor) -> Tensor:
        return x.to(self.dtype)
