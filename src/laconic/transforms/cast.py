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
        self.refuse_empty(x)
        return PartsSpec(PartSpec(TensorSpec(x.shape, self.target)))

    def encode(self, x: Tensor, ctx: Context, out: Parts | None = None) -> Parts:
        parts = Parts(x.to(self.target, copy=True)) if out is None else out
        if out is not None:
            out.main.copy_(x)
        if self.dtype != "float32" or x.dtype == torch.float64:
            self._raise_on_overflow(x, parts.main)
        return parts

    def _raise_on_overflow(self, x: Tensor, y: Tensor) -> None:
        """Also of the way back: float16's largest values round up in bfloat16. Inf is rare, so x is seldom read."""
        infinite = y.to(x.dtype).isinf()
        if bool(infinite.any()) and bool((infinite & x.isfinite()).any()):
            raise DataError(
                f"{self}: a finite value of {x.dtype} becomes Inf ({self.dtype} holds up to "
                f"{torch.finfo(self.target).max:g}). Scale the input down, or use cast:dtype=bfloat16"
            )

    def decode(self, parts: Parts, x: TensorSpec, version: int, out: Tensor | None = None) -> Tensor:
        return parts.main.to(x.dtype, copy=True) if out is None else out.copy_(parts.main)

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
