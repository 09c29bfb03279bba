"""Lorenzo prediction on integers, in 1 to 3 dimensions: each code less what its neighbours before it foretell.

    dims=1:  r = c - west                            dims=2:  r = c - west - north + northwest

Differences wrap around in the codes' own width, so that every step can be undone. The slowest
of the predicted dimensions starts anew every `RESTART[dims]` places: what lies between decodes on its own.
"""

from __future__ import annotations

import torch
from torch import Tensor

from laconic.ops import LIBRARY, load_bodies

RESTART = {1: 4096, 2: 64, 3: 16}

LIBRARY.define("lorenzo_encode_out(Tensor codes, int dims, Tensor(a!) out) -> ()")
LIBRARY.define("lorenzo_decode_out(Tensor residuals, int dims, Tensor(a!) out) -> ()")
LIBRARY.define("lorenzo_encode(Tensor codes, int dims) -> Tensor")
LIBRARY.define("lorenzo_decode(Tensor residuals, int dims) -> Tensor")


def reference_encode(codes: Tensor, dims: int, out: Tensor) -> None:
    r = codes.clone()
    for dim in range(-dims, 0):
        shifted = torch.zeros_like(r)
        shifted.narrow(dim, 1, r.shape[dim] - 1).copy_(r.narrow(dim, 0, r.shape[dim] - 1))
        if dim == -dims:
            shifted.index_fill_(dim, torch.arange(0, r.shape[dim], RESTART[dims], device=r.device), 0)
        r = r - shifted
    out.copy_(r)


def reference_decode(residuals: Tensor, dims: int, out: Tensor) -> None:
    c = residuals.to(torch.int64)
    for dim in range(-dims, 0):
        c = _sums(c, dim, RESTART[dims]) if dim == -dims else c.cumsum(dim)
    out.copy_(c.to(out.dtype))  # drops the upper bits: sums wrap as the differences did


def _sums(c: Tensor, dim: int, restart: int) -> Tensor:
    """Up to and with each place, anew after `restart` of them; `dim` is counted from the last."""
    size = c.shape[dim]
    if size <= restart:
        return c.cumsum(dim)
    whole = torch.nn.functional.pad(c, (0, 0) * (-dim - 1) + (0, -size % restart))
    pieces: Tensor = whole.unflatten(dim, (-1, restart))
    return pieces.cumsum(dim).flatten(dim - 1, dim).narrow(dim, 0, size)


def lorenzo_encode(codes: Tensor, dims: int) -> Tensor:
    out = torch.empty_like(codes, memory_format=torch.contiguous_format)
    torch.ops.laconic.lorenzo_encode_out.default(codes, dims, out)
    return out


def lorenzo_decode(residuals: Tensor, dims: int) -> Tensor:
    out = torch.empty_like(residuals, memory_format=torch.contiguous_format)
    torch.ops.laconic.lorenzo_decode_out.default(residuals, dims, out)
    return out


def _fake(codes: Tensor, dims: int) -> Tensor:
    return torch.empty_like(codes, memory_format=torch.contiguous_format)


def _fake_out(codes: Tensor, dims: int, out: Tensor) -> None:
    return None


for _name, _whole, _into in (
    ("lorenzo_encode", lorenzo_encode, reference_encode),
    ("lorenzo_decode", lorenzo_decode, reference_decode),
):
    LIBRARY.impl(_name, _whole, "CompositeExplicitAutograd")
    LIBRARY.impl(f"{_name}_out", _into, "CompositeExplicitAutograd")
    torch.library.register_fake(f"laconic::{_name}", _fake, lib=LIBRARY)
    torch.library.register_fake(f"laconic::{_name}_out", _fake_out, lib=LIBRARY)

load_bodies("lorenzo")
