"""`bound`, `lorenzo` and `bitpack` at once: floats to a stream and back, without the codes ever being in memory.

`dims=0` is without `lorenzo`; `bound_predict` and `bound_restore` are without `bitpack`. `width` is that of the codes.
The bytes are those of one operator after the other.
"""

from __future__ import annotations

import torch
from torch import Tensor

from laconic.ops import LIBRARY, load_bodies
from laconic.ops import bitpack as _bitpack  # noqa: F401  # declares what the reference calls
from laconic.ops import lorenzo as _lorenzo  # noqa: F401
from laconic.ops.bound import CODES

LIBRARY.define(
    "bound_pack_out(Tensor x, Tensor step, Tensor bound, int width, int dims, Tensor(a!) out) -> (SymInt, Tensor)"
)
LIBRARY.define("bound_predict_out(Tensor x, Tensor step, Tensor bound, int dims, Tensor(a!) residuals) -> Tensor")
LIBRARY.define("bound_restore_out(Tensor residuals, Tensor step, int dims, Tensor(a!) out) -> ()")
LIBRARY.define("bound_unpack_out(Tensor data, Tensor step, int width, int dims, Tensor(a!) out) -> ()")


def reference_pack(x: Tensor, step: Tensor, bound: Tensor, width: int, dims: int, out: Tensor) -> tuple[int, Tensor]:
    """The length of the stream, and the places of the exceptions."""
    codes = torch.empty(x.shape, dtype=CODES[width], device=x.device)
    places = torch.ops.laconic.bound_encode_out.default(x, step, bound, codes)
    if dims:
        codes = torch.ops.laconic.lorenzo_encode.default(codes, dims)
    return torch.ops.laconic.bitpack_encode_out.default(codes, out), places


def reference_predict(x: Tensor, step: Tensor, bound: Tensor, dims: int, residuals: Tensor) -> Tensor:
    """Fills `residuals`; gives the places of the exceptions."""
    codes = torch.empty_like(residuals)
    places: Tensor = torch.ops.laconic.bound_encode_out.default(x, step, bound, codes)
    torch.ops.laconic.lorenzo_encode_out.default(codes, dims, residuals)
    return places


def reference_restore(residuals: Tensor, step: Tensor, dims: int, out: Tensor) -> None:
    codes = torch.ops.laconic.lorenzo_decode.default(residuals, dims)
    torch.ops.laconic.bound_decode_out.default(codes, step, out)


def reference_unpack(data: Tensor, step: Tensor, width: int, dims: int, out: Tensor) -> None:
    codes = torch.empty(out.shape, dtype=CODES[width], device=out.device)
    torch.ops.laconic.bitpack_decode_out.default(data, codes)
    if dims:
        codes = torch.ops.laconic.lorenzo_decode.default(codes, dims)
    torch.ops.laconic.bound_decode_out.default(codes, step, out)


def _fake_pack(x: Tensor, step: Tensor, bound: Tensor, width: int, dims: int, out: Tensor) -> tuple[int, Tensor]:
    context = torch.library.get_ctx()
    places = x.new_empty((context.new_dynamic_size(),), dtype=torch.int64)
    return context.new_dynamic_size(), places  # type: ignore[return-value]  # a SymInt: an int yet unknown


def _fake_predict(x: Tensor, step: Tensor, bound: Tensor, dims: int, residuals: Tensor) -> Tensor:
    return x.new_empty((torch.library.get_ctx().new_dynamic_size(),), dtype=torch.int64)


def _fake_restore(residuals: Tensor, step: Tensor, dims: int, out: Tensor) -> None:
    return None


def _fake_unpack(data: Tensor, step: Tensor, width: int, dims: int, out: Tensor) -> None:
    return None


for _name, _reference, _fake in (
    ("bound_pack_out", reference_pack, _fake_pack),
    ("bound_unpack_out", reference_unpack, _fake_unpack),
    ("bound_predict_out", reference_predict, _fake_predict),
    ("bound_restore_out", reference_restore, _fake_restore),
):
    LIBRARY.impl(_name, _reference, "CompositeExplicitAutograd")
    torch.library.register_fake(f"laconic::{_name}", _fake, lib=LIBRARY)

load_bodies("packed")
