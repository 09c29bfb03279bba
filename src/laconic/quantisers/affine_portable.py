"""`affine` as modules of reductions, arithmetic and views: for static compilers."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from laconic.ops import affine as ops
from laconic.ops.block import compute_dtype


class Scopes(NamedTuple):
    """What shares a grid: the last `inner` dimensions (None: all), or each run of `group` along the last one."""

    inner: int | None
    group: int | None

    def edges(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The least and the greatest value of each."""
        if self.group is not None:
            return ops.group_edges(x, self.group)
        inner = tuple(range(x.dim() - min(x.dim() if self.inner is None else self.inner, x.dim()), x.dim()))
        return x.amin(inner), x.amax(inner)

    def spread(self, grid: Tensor, x: Tensor) -> Tensor:
        """One value for each scope, as it broadcasts against x."""
        if self.group is not None:
            return ops.spread_groups(grid, self.group, x.shape[-1])
        return grid.reshape([*grid.shape, *[1] * (x.dim() - grid.dim())])


class AffineEncode(nn.Module):
    """Floats to codes, scale and, unless symmetric, offset."""

    def __init__(self, top_code: int, code_dtype: torch.dtype, scopes: Scopes) -> None:
        super().__init__()
        self.top_code = top_code
        self.code_dtype = code_dtype
        self.scopes = scopes

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        low, high = (edge.to(compute_dtype(x.dtype)) for edge in self.scopes.edges(x))
        scale, offset = ops.grid(low, high, self.top_code, symmetric=self.code_dtype == torch.int8)
        shift = None if offset is None else self.scopes.spread(offset, x)
        codes = ops.to_codes(ops.to_steps(x, self.scopes.spread(scale, x), shift), self.top_code, self.code_dtype)
        return (codes, scale) if offset is None else (codes, scale, offset)


class AffineDecode(nn.Module):
    """The way back."""

    def __init__(self, dtype: torch.dtype, scopes: Scopes) -> None:
        super().__init__()
        self.dtype = dtype
        self.scopes = scopes

    def forward(self, codes: Tensor, scale: Tensor, offset: Tensor | None = None) -> Tensor:
        shift = None if offset is None else self.scopes.spread(offset, codes)
        return ops.from_codes(codes, self.scopes.spread(scale, codes), shift).to(self.dtype)
