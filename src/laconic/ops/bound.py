"""The bounded quantiser: floats to integer codes of a given step, and the places where that would break the bound.

    code = rint(x * (1 / step))        x' = code * step, rounded to the dtype of x

both in float32 (float64 for float64). A place is an exception where `|x - x'| < bound` does not hold in that
arithmetic or the code is larger than `top_code` allows; its code is as rounded where that is finite and fits, else 0.

A scope is a run of `numel / len(step)` elements that share a step and a bound.
"""

from __future__ import annotations

import torch
from torch import Tensor

from laconic.errors import CorruptData
from laconic.ops import LIBRARY, load_bodies
from laconic.ops.block import compute_dtype

CODES = {8: torch.int8, 16: torch.int16, 32: torch.int32}

LIBRARY.define("bound_encode_out(Tensor x, Tensor step, Tensor bound, Tensor(a!) codes) -> Tensor")
LIBRARY.define("bound_decode_out(Tensor codes, Tensor step, Tensor(a!) out) -> ()")


def top_code(codes: torch.dtype, arithmetic: torch.dtype) -> int:
    """The largest code: what the width holds, and what float32 counts to without gaps."""
    widest = 2**24 if arithmetic == torch.float32 else 2**31 - 1
    return min(int(torch.iinfo(codes).max), widest)


def reference_encode(x: Tensor, step: Tensor, bound: Tensor, codes: Tensor) -> Tensor:
    """Fills `codes`; gives the places of the exceptions in the flat tensor, in order."""
    if x.numel() == 0:  # there may be rows all the same
        return torch.empty(0, dtype=torch.int64, device=x.device)
    values = x.detach().reshape(len(step), -1).to(compute_dtype(x.dtype))
    rounded = (values * inverse(step)[:, None]).round()
    fits = rounded.abs() <= top_code(codes.dtype, values.dtype)
    rounded = rounded.where(fits, 0.0)
    restored = (rounded * step[:, None]).to(x.dtype).to(values.dtype)
    kept = fits & ((values - restored).abs() < bound[:, None])
    codes.copy_(rounded.to(codes.dtype).reshape(codes.shape))
    return (~kept).flatten().nonzero().squeeze(1)


def reference_decode(codes: Tensor, step: Tensor, out: Tensor) -> None:
    values = codes.reshape(len(step), -1).to(step.dtype) * step[:, None]
    out.copy_(values.to(out.dtype).reshape(out.shape))


def inverse(step: Tensor) -> Tensor:
    """1 / step, divided in float64: what codes are multiplied out of."""
    return (1.0 / step.double()).to(step.dtype)


def put_exceptions(x: Tensor, index: Tensor, values: Tensor) -> None:
    """Writes what was stored exactly. The places come from strangers: they are checked first."""
    if index.shape != values.shape:
        raise CorruptData(f"exceptions: expected a value for each place, found {len(values)} for {len(index)}")
    if index.numel() == 0:
        return
    least, greatest = (int(edge) for edge in index.aminmax())
    if least < 0 or greatest >= x.numel():
        raise CorruptData(f"exceptions: expected places within {x.numel()} values, found {least} to {greatest}")
    if x.is_contiguous():
        x.view(-1).index_copy_(0, index.long(), values)
    else:
        x.index_put_(torch.unravel_index(index.long(), x.shape), values)


def _fake_encode(x: Tensor, step: Tensor, bound: Tensor, codes: Tensor) -> Tensor:
    count = torch.library.get_ctx().new_dynamic_size()
    return x.new_empty((count,), dtype=torch.int64)


def _fake_decode(codes: Tensor, step: Tensor, out: Tensor) -> None:
    return None


LIBRARY.impl("bound_encode_out", reference_encode, "CompositeExplicitAutograd")
LIBRARY.impl("bound_decode_out", reference_decode, "CompositeExplicitAutograd")
torch.library.register_fake("laconic::bound_encode_out", _fake_encode, lib=LIBRARY)
torch.library.register_fake("laconic::bound_decode_out", _fake_decode, lib=LIBRARY)

load_bodies("bound")
