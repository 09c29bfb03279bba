"""`bound`, `lorenzo` and `bitpack` at once: floats to a stream and back, without the codes ever being in memory.

`dims=0` is without `lorenzo`. `width` is that of the codes. The bytes are those of one operator after the other.
"""

from __future__ import annotations

import torch
from torch import Tensor

from laconic.ops import LIBRARY, load_bodies
from laconic.ops import bitpack as _bitpack  # noqa: F401  # declares what the reference calls
from laconic.ops import bound as _bound  # noqa: F401
from laconic.ops import lorenzo as _lorenzo  # noqa: F401

CODES = {8: torch.int8, 16: torch.int16, 32: torch.int32}

LIBRARY.define(
    "bound_pack_out(Tensor x, Tensor step, Tensor bound, int width, int dims, Tensor(a!) out) -> (int, Tensor)"
)
LIBRARY.define("bound_unpack_out(Tensor data, Tensor step, int width, int dims, Tensor(a!) out) -> ()")


def reference_pack(x: Tensor, step: Tensor, bound: Tensor, width: int, dims: int, out: Tensor) -> tuple[int, Tensor]:
    """The length of the stream, and the places of the exceptions."""
    codes = torch.empty(x.shape, dtype=CODES[width], device=x.device)
    places = torch.ops.laconic.bound_encode_out.default(x, step, bound, codes)
    if dims:
        codes = torch.ops.laconic.lorenzo_encode.default(codes, dims)
    return torch.ops.laconic.bitpack_encode_out.default(codes, out), places


def reference_unpack(data: Tensor, step: Tensor, width: int, dims: int, out: Tensor) -> None:
    codes = torch.empty(out.shape, dtype=CODES[width], device=out.device)
    torch.ops.laconic.bitpack_decode_out.default(data, codes)
    if dims:
        codes = torch.ops.laconic.lorenzo_decode.default(codes, dims)
    torch.ops.laconic.bound_decode_out.default(codes, step, out)


def _fake_pack(x: Tensor, step: Tensor, bound: Tensor, width: int, dims: int, out: Tensor) -> tuple[int, Tensor]:
    context = torch.library.get_ctx()
    return int(context.new_dynamic_size()), x.new_empty((context.new_dynamic_size(),), dtype=torch.int64)


def _fake_unpack(data: Tensor, step: Tensor, width: int, dims: int, out: Tensor) -> None:
    return None


LIBRARY.impl("bound_pack_out", reference_pack, "CompositeExplicitAutograd")
LIBRARY.impl("bound_unpack_out", reference_unpack, "CompositeExplicitAutograd")
torch.library.register_fake("laconic::bound_pack_out", _fake_pack, lib=LIBRARY)
torch.library.register_fake("laconic::bound_unpack_out", _fake_unpack, lib=LIBRARY)

load_bodies("packed")
